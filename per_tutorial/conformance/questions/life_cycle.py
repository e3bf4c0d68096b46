"""The life of a transition: its contents, the end of its episode, and what the seed decides."""

import numpy as np

from per_tutorial.conformance.answers import Finding, NotOffered, fails, holds, question
from per_tutorial.conformance.context import CAPACITY, TestContext
from per_tutorial.conformance.harness import BufferHarness, plain

# Fields of a minibatch, and of the transitions that were added.
CONTENTS = {
    "actions": "action",
    "rewards": "reward",
    "next_observations": "next_observation",
    "terminated": "terminated",
}


@question(
    "contents",
    "Do observation, action, reward and next observation come back together?",
    section="Algorithm 1, line 6",
    effect="The agent is told of steps that nobody took, most often where the buffer wraps around.",
    needs=("only-stored",),
)
def contents(context: TestContext) -> Finding:
    for added in (CAPACITY // 2 + 3, CAPACITY + 21):
        harness = context.harness(added, discount=1.0)
        found = contents_fault(harness, 40)
        if found:
            return fails(found)
    return holds("in 80 minibatches, before and after the buffer wrapped around")


@question(
    "truncation",
    "Is a time limit distinguished from a terminal state?",
    section="not in the paper; Pardo et al. 2018",
    effect="The value after a time limit is taken for 0: a good state at the limit is learned to "
    "be bad.",
    needs=("contents",),
)
def truncation(context: TestContext) -> Finding:
    harness = context.harness(discount=1.0).add(CAPACITY - 8, truncated=True)
    found = contents_fault(harness, 40)
    if found:
        return fails(f"with episodes that end by a time limit: {found}")
    return holds("truncated steps come back as not terminated, with their true next observation")


@question(
    "seeds",
    "Does the seed decide what is drawn?",
    section="not in the paper",
    effect="Runs cannot be repeated; or all runs are the same one, and thirty seeds are one.",
    needs=("only-stored",),
)
def seeds(context: TestContext) -> Finding:
    if not context.adapter.seeded:
        raise NotOffered("it takes no seed")

    def run(seed: int) -> list[int]:
        harness = context.harness(CAPACITY, seed=seed)
        drawn, first, _ = harness.sample()
        harness.update(drawn, np.linspace(0.1, 2, len(first)))
        return [*first.tolist(), *harness.draw(100).ravel().tolist()]

    first, again, other = run(7), run(7), run(8)
    if first != again:
        return fails("the same seed twice draws different transitions")
    if first == other:
        return fails("two seeds draw the same transitions")
    return holds("equal seeds draw the same, two seeds differ")


def contents_fault(harness: BufferHarness, batches: int) -> str | None:
    """What is wrong with the contents of drawn transitions, or None."""
    checked: set[str] = set()
    size = harness.settings.batch_size
    for _ in range(batches):
        drawn, serials, _ = harness.sample()
        harness.count(serials)
        added = [harness.history[serial] for serial in serials.tolist()]
        for name, field in CONTENTS.items():
            value = getattr(drawn, name)
            if value is None:
                continue
            checked.add(name)
            shape = (size, 2) if name == "next_observations" else (size,)
            got = plain(name, value, shape)
            wanted = np.array([getattr(one, field) for one in added], dtype=np.float64)
            wrong = np.abs(got - wanted).reshape(size, -1).max(axis=1) > 1e-4
            if wrong.any():
                k = int(np.flatnonzero(wrong)[0])
                where = {harness.stored[0]: ", the oldest", harness.stored[-1]: ", the newest"}
                return (
                    f"of transition {serials[k]}{where.get(serials[k], '')}, {name} is "
                    f"{np.asarray(got[k]).tolist()}, not {wanted[k].tolist()}"
                )
    if not checked:
        raise NotOffered("the adapter hands out nothing but observations")
    return None
