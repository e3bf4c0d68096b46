"""Known bugs: silent failures of prioritised replay, each as a small change of our own code.

A bug is a subclass of a real sampler, storage, buffer or learner, or a change of settings. No bug
is registered; only studies and examinations use them.

- `priorities`, `weights`, `trees`, `life_cycle`: bugs of a buffer, made by `Bug.buffer`.
- `learners`: bugs of an agent, made by `Bug.train`.
- `examined`: the adapter that examines a buffer with a bug (`per_tutorial.conformance`).

`cliffwalk` measures what bugs of a buffer cost on the Blind Cliffwalk. The studies of agents were
run at an earlier commit: `notebooks/results/RESULTS.md`, broken-cartpole and broken-mountaincar.
"""

from per_tutorial.experiments.known_bugs import learners, life_cycle, priorities, trees, weights
from per_tutorial.experiments.known_bugs.bug import Bug

__all__ = ["KNOWN_BUGS", "Bug"]

KNOWN_BUGS: dict[str, Bug] = {
    bug.name: bug
    for module in (priorities, weights, trees, life_cycle, learners)
    for bug in module.KNOWN_BUGS
}
