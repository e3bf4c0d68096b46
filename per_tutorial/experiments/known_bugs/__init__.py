"""Known bugs: how prioritised replay has failed in silence, each as a small part of ours.

Each bug overrides one method of a real sampler, storage, buffer or learner. No bug is registered,
and only studies and examinations use them.

- `priorities`, `weights`, `trees`, `life_cycle`: bugs of a buffer, made by `Bug.buffer`.
- `learners`: bugs of an agent, made by `Bug.train`.
- `examined`: a buffer with a bug as `per_tutorial.conformance` takes it.

`experiments.cliffwalk.known_bugs` measures what bugs of a buffer cost on the Blind Cliffwalk, and
`experiments.studies.declared.broken` declares what is asked of agents.
"""

from per_tutorial.experiments.known_bugs import learners, life_cycle, priorities, trees, weights
from per_tutorial.experiments.known_bugs.bug import Bug

__all__ = ["KNOWN_BUGS", "Bug"]

KNOWN_BUGS: dict[str, Bug] = {
    bug.name: bug
    for module in (priorities, weights, trees, life_cycle, learners)
    for bug in module.KNOWN_BUGS
}
