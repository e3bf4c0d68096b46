"""The museum: every way in which prioritised replay has failed in silence, as a small part of ours.

Each exhibit takes a real sampler, storage, buffer or learner and puts one mistake in. None is registered,
and nothing outside studies and examinations uses one.

- `priorities`, `weights`, `trees`, `life_cycle`: bugs that live in a buffer, `Exhibit.buffer`.
- `learners`: bugs that live in an agent, `Exhibit.train`.
- `examined`: an exhibit as `per_tutorial.conformance` takes it.
- `cliffwalk`: what bugs of a buffer cost on the Blind Cliffwalk; `experiments.studies.broken` declares what
  is asked of agents.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from per_tutorial.experiments.museum import learners, life_cycle, priorities, trees, weights
from per_tutorial.experiments.museum.exhibit import Exhibit
from per_tutorial.replay.registry import SAMPLERS, register_sampler
from per_tutorial.replay.samplers.proportional import ProportionalSampler

__all__ = ["EXHIBITS", "Exhibit", "open_museum"]

EXHIBITS: dict[str, Exhibit] = {
    exhibit.name: exhibit
    for room in (priorities, weights, trees, life_cycle, learners)
    for exhibit in room.EXHIBITS
}


@contextmanager
def open_museum() -> Iterator[None]:
    """Within it, `DQNConfig.sampler` may be "broken-NAME" for each exhibit that is a sampler."""
    before = dict(SAMPLERS)
    for name, exhibit in EXHIBITS.items():
        if exhibit.sampler is not ProportionalSampler:
            register_sampler(f"broken-{name}", exhibit.sampler)
    try:
        yield
    finally:
        SAMPLERS.clear()
        SAMPLERS.update(before)
