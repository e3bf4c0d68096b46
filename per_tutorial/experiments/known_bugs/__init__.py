"""The museum: every way in which prioritised replay has failed in silence, as a small part of ours.

Each exhibit takes a real sampler, storage, buffer or learner and puts one mistake in. None is registered,
and nothing outside studies and examinations uses one.

- `priorities`, `weights`, `trees`, `life_cycle`: bugs that live in a buffer, `Bug.buffer`.
- `learners`: bugs that live in an agent, `Bug.train`.
- `examined`: an exhibit as `per_tutorial.conformance` takes it.
- `cliffwalk`: what bugs of a buffer cost on the Blind Cliffwalk; `experiments.studies.declared.broken` declares what
  is asked of agents.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from per_tutorial.experiments.known_bugs import learners, life_cycle, priorities, trees, weights
from per_tutorial.experiments.known_bugs.bug import Bug
from per_tutorial.replay.registry import SAMPLERS, register_sampler
from per_tutorial.replay.samplers.proportional import ProportionalSampler

__all__ = ["KNOWN_BUGS", "Bug", "registered_bugs"]

KNOWN_BUGS: dict[str, Bug] = {
    exhibit.name: exhibit
    for room in (priorities, weights, trees, life_cycle, learners)
    for exhibit in room.KNOWN_BUGS
}


@contextmanager
def registered_bugs() -> Iterator[None]:
    """Within it, `DQNConfig.sampler` may be "broken-NAME" for each exhibit that is a sampler."""
    before = dict(SAMPLERS)
    for name, exhibit in KNOWN_BUGS.items():
        if exhibit.sampler is not ProportionalSampler:
            register_sampler(f"broken-{name}", exhibit.sampler, "#777777")
    try:
        yield
    finally:
        SAMPLERS.clear()
        SAMPLERS.update(before)
