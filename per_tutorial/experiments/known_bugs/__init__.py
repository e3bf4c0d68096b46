"""Known bugs: how prioritised replay has failed in silence, each as a small part of ours.

Each bug overrides one method of a real sampler, storage, buffer or learner. No bug is registered,
and only studies and examinations use them.

- `priorities`, `weights`, `trees`, `life_cycle`: bugs of a buffer, made by `Bug.buffer`.
- `learners`: bugs of an agent, made by `Bug.train`.
- `examined`: a buffer with a bug as `per_tutorial.conformance` takes it.

`experiments.cliffwalk.known_bugs` measures what bugs of a buffer cost on the Blind Cliffwalk, and
`experiments.studies.declared.broken` declares what is asked of agents.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from per_tutorial.experiments.known_bugs import learners, life_cycle, priorities, trees, weights
from per_tutorial.experiments.known_bugs.bug import Bug
from per_tutorial.replay.registry import SAMPLERS, register_sampler
from per_tutorial.replay.samplers.proportional import ProportionalSampler

__all__ = ["KNOWN_BUGS", "Bug", "registered_bugs"]

KNOWN_BUGS: dict[str, Bug] = {
    bug.name: bug
    for module in (priorities, weights, trees, life_cycle, learners)
    for bug in module.KNOWN_BUGS
}


@contextmanager
def registered_bugs() -> Iterator[None]:
    """Within this context, `DQNConfig.sampler` may be "broken-NAME" for each bug of a sampler."""
    before = dict(SAMPLERS)
    for name, bug in KNOWN_BUGS.items():
        if bug.sampler is not ProportionalSampler:
            register_sampler(f"broken-{name}", bug.sampler)
    try:
        yield
    finally:
        SAMPLERS.clear()
        SAMPLERS.update(before)
