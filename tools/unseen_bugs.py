"""Put bugs before the examination that its authors did not have in mind when they wrote it.

python tools/unseen_bugs.py              ask all buffers, and write docs/unseen_bugs.json and .md
python tools/unseen_bugs.py NAME [NAME]  ask these, and keep the others' answers

A plain prioritised replay buffer, twenty mistakes in it, and three buffers that are unusual but
correct. They were written without a look at the examination's questions. `expected` says what a
report that names the mistake rightly would say; it was written before the first examination.

What the first examination of a buffer found stays in the JSON as it was, with a reader's judgement,
`named_rightly` and `comment`. Questions that were written for these bugs (`LATER`) are apart, in
`later`: their answers say nothing about other bugs. The page's table is made of both.
"""

import json
import pickle
import sys
from pathlib import Path

import numpy as np

from per_tutorial.conformance import Adapter, Drawn, Verdict, examine
from per_tutorial.conformance.answers import cause_of

DOCS = Path(__file__).parents[1] / "docs"
RESULTS, PAGE = DOCS / "unseen_bugs.json", DOCS / "unseen_bugs.md"
START, END = "<!-- table: written by tools/unseen_bugs.py -->", "<!-- end of the table -->"
EPSILON = 1e-6
# Written after these bugs were seen, for the three that were missed.
LATER = ("newcomers-last-update", "arrays-added", "arrays-drawn")


class Buffer:
    """Correct: a sum tree over p^α, stratified draws, weights by the minibatch's largest."""

    expected = ""
    correct = True

    def __init__(self, capacity, alpha, seed):
        self.capacity, self.alpha, self.seed = capacity, alpha, seed
        self.rng = np.random.default_rng(seed)
        self.leaves = 1 << (capacity - 1).bit_length()
        self.tree = np.zeros(2 * self.leaves)
        self.max_priority, self.next, self.size = 1.0, 0, 0
        self.observations = self.column((2,))
        self.next_observations = self.column((2,))
        self.actions = np.zeros(capacity, np.int64)
        self.rewards = np.zeros(capacity)
        self.terminated = np.zeros(capacity, bool)

    def column(self, shape):
        return np.zeros((self.capacity, *shape), np.float32)

    def add(self, transition):
        self.store(self.next, transition)
        self.enter(self.next)
        self.size = min(self.size + 1, self.capacity)
        self.advance()

    def store(self, i, transition):
        self.observations[i] = transition.observation
        self.next_observations[i] = transition.next_observation
        self.actions[i] = transition.action
        self.rewards[i] = transition.reward
        self.terminated[i] = transition.terminated

    def enter(self, i):
        self.set(np.array([i]), self.new_leaf())

    def new_leaf(self):
        return self.max_priority**self.alpha

    def advance(self):
        self.next = (self.next + 1) % self.capacity

    def set(self, indices, values):
        nodes = indices + self.leaves
        self.tree[nodes] = values
        while nodes[0] > 1:
            nodes = np.unique(nodes // 2)
            self.tree[nodes] = self.tree[2 * nodes] + self.tree[2 * nodes + 1]

    def sample(self, batch_size, beta):
        indices = self.descend(self.targets(batch_size))
        return self.hand_out(indices, self.weights(indices, beta))

    def targets(self, batch_size):
        strata = np.arange(batch_size) + self.rng.random(batch_size)
        return strata / batch_size * self.tree[1]

    def descend(self, targets):
        nodes = np.ones(len(targets), np.int64)
        while nodes[0] < self.leaves:
            left = self.tree[2 * nodes]
            right = (targets >= left) & (self.tree[2 * nodes + 1] > 0)
            targets = np.where(right, targets - left, targets)
            nodes = 2 * nodes + right
        return nodes - self.leaves

    def weights(self, indices, beta):
        probabilities = self.tree[self.leaves + indices] / self.tree[1]
        weights = (self.size * probabilities) ** -beta
        return weights / weights.max()

    def hand_out(self, indices, weights):
        return Drawn(
            self.gather(self.observations, indices),
            weights,
            indices,
            self.gather(self.actions, indices),
            self.gather(self.rewards, indices),
            next_observations=self.gather(self.next_observations, indices),
            terminated=self.gather(self.terminated, indices),
        )

    def gather(self, column, indices):
        return np.stack(column[indices])

    def update(self, indices, td_errors):
        priorities = self.priorities(np.asarray(td_errors, float))
        self.remember(priorities)
        self.set(indices, priorities**self.alpha)

    def priorities(self, td_errors):
        return np.abs(td_errors) + EPSILON

    def remember(self, priorities):
        self.max_priority = max(self.max_priority, priorities.max())

    def state(self):
        return dict(self.__dict__)

    def save(self, path):
        Path(path).write_bytes(pickle.dumps(self.state()))

    def load(self, path):
        self.__dict__.update(pickle.loads(Path(path).read_bytes()))


class CumulativeSums(Buffer):
    """Correct: no tree but cumulative sums and `np.searchsorted`; draws are independent."""

    def set(self, indices, values):
        self.tree[self.leaves + indices] = values
        self.tree[1] = self.tree[self.leaves :].sum()

    def targets(self, batch_size):
        return self.rng.random(batch_size)

    def descend(self, targets):
        sums = np.cumsum(self.tree[self.leaves :])
        return np.searchsorted(sums, targets * sums[-1], side="right")


class WeightsOfTheMemory(Buffer):
    """Correct: weights are divided by the largest that any stored transition could have."""

    def weights(self, indices, beta):
        leaves = self.tree[self.leaves : self.leaves + self.size]
        return (leaves[indices] / leaves.min()) ** -beta


class NewAtTheMean(Buffer):
    """Correct: a new transition gets the mean of p^α, instead of the largest."""

    def new_leaf(self):
        return self.tree[1] / self.size if self.size else 1.0


class Bug(Buffer):
    correct = False


class WeightsOfPriorities(Bug):
    """Weights are (N·p)^-β of the priority p, and not of the probability p^α / Σp^α."""

    expected = "The weights' exponent is wrong: they follow p, where they should follow p^α."

    def weights(self, indices, beta):
        priorities = self.tree[self.leaves + indices] ** (1 / self.alpha)
        weights = (self.size * priorities) ** -beta
        return weights / weights.max()


class ShuffledApart(Bug):
    """The minibatch is shuffled after its weights were computed, and they are not."""

    expected = "Weights belong to other transitions of the minibatch than they are handed out with."

    def hand_out(self, indices, weights):
        return super().hand_out(self.rng.permutation(indices), weights)


class BetaByItself(Bug):
    """The buffer anneals a β of its own by 0.001 at each draw, and ignores the one it is given."""

    expected = "The weights do not follow the β asked for; it changes from draw to draw."
    beta = 0.4

    def weights(self, indices, beta):
        self.beta = min(1.0, self.beta + 0.001)
        return super().weights(indices, self.beta)


class NegativeIsZero(Bug):
    """A negative TD error counts as none: max(δ, 0) + ε."""

    expected = "Negative TD errors do not count by their size; the absolute value is missing."

    def priorities(self, td_errors):
        return np.maximum(td_errors, 0.0) + EPSILON


class NewNotRaised(Bug):
    """A new transition's leaf is the largest p, and not p^α as all others'."""

    expected = "A new transition is drawn more often than p^α of the largest priority says."

    def new_leaf(self):
        return self.max_priority


class MaximumOfLastBatch(Bug):
    """The largest priority is that of the last update, and not of all so far."""

    expected = "New transitions get less than the largest priority seen, after a smaller update."

    def remember(self, priorities):
        self.max_priority = priorities.max()


class OldPriorityStays(Bug):
    """A transition that overwrites another inherits its priority."""

    expected = "After wrap-around a new transition has the overwritten one's priority."

    def enter(self, i):
        if self.tree[self.leaves + i] == 0:
            super().enter(i)


class RingOneShort(Bug):
    """The write position wraps one slot early."""

    expected = "The buffer holds one transition fewer than its capacity, or loses them too early."

    def advance(self):
        self.next = (self.next + 1) % max(1, self.capacity - 1)


class EmptySlots(Bug):
    """All slots start with priority 1, so a part-full buffer draws empty ones."""

    expected = "A part-full buffer hands out transitions that were never added."

    def __init__(self, capacity, alpha, seed):
        super().__init__(capacity, alpha, seed)
        self.set(np.arange(capacity), 1.0)


class DuplicatesTwice(Bug):
    """Sums get the change of each entry, so an index twice in a minibatch changes them twice."""

    expected = "A transition that is in a minibatch twice spoils the sums, so the proportions."

    def set(self, indices, values):
        nodes = indices + self.leaves
        change = values - self.tree[nodes]
        self.tree[nodes] = values
        while nodes[0] > 1:
            nodes = nodes // 2
            np.add.at(self.tree, nodes, change)


class LastNotUpdated(Bug):
    """The update's loop ends one early: the minibatch's last transition keeps its priority."""

    expected = "The last transition of a minibatch is not updated."

    def update(self, indices, td_errors):
        if len(indices) > 1:
            super().update(indices[:-1], td_errors[:-1])


class UniqueIndices(Bug):
    """Repeated indices are dropped before the update, but not their TD errors."""

    expected = "With a transition twice in a minibatch, TD errors go to the wrong transitions."

    def update(self, indices, td_errors):
        unique = np.unique(indices)
        super().update(unique, td_errors[: len(unique)])


class TotalWithoutLast(Bug):
    """Draws go up to the sum of all but the last slot, as in OpenAI Baselines."""

    expected = "The last slot, or the newest transition of a part-full buffer, is never drawn."

    def targets(self, batch_size):
        without = self.tree[1] - self.tree[self.leaves + self.size - 1]
        return super().targets(batch_size) / self.tree[1] * without


class SinglePrecision(Bug):
    """Sums are float32 and get changes, so a huge priority leaves its rounding error behind."""

    expected = "Proportions are wrong after a huge priority came and went: the sums' precision."

    def set(self, indices, values):
        values = np.broadcast_to(values, len(indices))
        for node, value in zip(indices + self.leaves, values, strict=True):
            change = np.float32(value - self.tree[node])
            while node >= 1:
                self.tree[node] = np.float32(self.tree[node]) + change
                node //= 2


class KeepsReferences(Bug):
    """Observations are stored without a copy; the environment writes over its own array."""

    expected = "A stored observation changes when the caller changes the array it added."

    def column(self, shape):
        return np.empty(self.capacity, object)


class OneArrayForAll(Bug):
    """Each minibatch is written to the same arrays, so the next draw changes the one before."""

    expected = "A minibatch changes when the next one is drawn."

    def gather(self, column, indices):
        outputs = self.__dict__.setdefault("outputs", {})
        shape = (len(indices), *column.shape[1:])
        output = outputs.setdefault((id(column), shape), np.empty(shape, column.dtype))
        return np.take(column, indices, axis=0, out=output)


class SeededAtEachDraw(Bug):
    """The generator is made anew from the seed at each draw."""

    expected = "The same random numbers come again at each draw: minibatches repeat."

    def targets(self, batch_size):
        self.rng = np.random.default_rng(self.seed)
        return super().targets(batch_size)


class TruncatedIsTerminated(Bug):
    """The end of an episode by its time limit is stored as a terminal state."""

    expected = "A truncated transition is handed out as terminated."

    def store(self, i, transition):
        super().store(i, transition)
        self.terminated[i] = transition.terminated or transition.truncated


class NextFromTheRing(Bug):
    """To save memory the next observation is read from the next slot, whatever stands there."""

    expected = "The next observation is another's: at the write position or at an episode's end."

    def hand_out(self, indices, weights):
        following = self.gather(self.observations, (indices + 1) % self.capacity)
        return super().hand_out(indices, weights)._replace(next_observations=following)


class PositionNotSaved(Bug):
    """The write position is not saved: a loaded buffer overwrites from slot 0."""

    expected = "A loaded buffer overwrites other transitions than the saved one would have."

    def state(self):
        return {key: value for key, value in super().state().items() if key != "next"}


BUGS = Bug.__subclasses__()
CORRECT = [Buffer, CumulativeSums, WeightsOfTheMemory, NewAtTheMean]
BUFFERS = {buffer.__name__: buffer for buffer in [*CORRECT, *BUGS]}


class Handling(Adapter):
    """How the examination handles one of these buffers."""

    epsilon = EPSILON
    packages = ("numpy",)

    def __init__(self, name):
        self.name = name

    def make(self, settings):
        return BUFFERS[self.name](settings.capacity, settings.alpha, settings.seed)

    def add(self, buffer, transition):
        buffer.add(transition)

    def sample(self, buffer, batch_size, beta):
        return buffer.sample(batch_size, beta)

    def update(self, buffer, keys, td_errors):
        buffer.update(keys, td_errors)

    def save(self, buffer, path):
        buffer.save(path)

    def load(self, buffer, path):
        buffer.load(path)


def first(name, plain):
    """The entry of a buffer that was never examined: what all questions find.

    It is caught if it fails a question that the plain one didn't fail, see `plain`.
    """
    report = examine(Handling(name))
    print(f"{name}: {BUFFERS[name].__doc__}\n{report}\n", flush=True)
    failures = [answer.question.name for answer in report.failures]
    return {
        "name": name,
        "mistake": "" if BUFFERS[name].correct else BUFFERS[name].__doc__,
        "expected": BUFFERS[name].expected,
        "correct": BUFFERS[name].correct,
        "caught": bool(set(failures) - set(plain)),
        "failures": failures,
        "reported": [
            answer.question.name for answer in report.answers if answer.verdict is Verdict.REPORTED
        ],
        "seconds": round(report.seconds, 1),
        "named_rightly": None,
        "comment": "not judged yet",
    }


def later(name, failed):
    """Which of `LATER` a buffer fails, but for what depends on a question that it failed before."""
    # `update-positions`, which they depend on, was changed as well.
    report = examine(Handling(name), questions=["update-positions", *LATER])
    print(f"{name}: {BUFFERS[name].__doc__}\n{report}\n", flush=True)
    failures = [one.question.name for one in report.failures if one.question.name in LATER]
    known = dict.fromkeys(failed, Verdict.FAILS)
    return [question for question in failures if cause_of(question, known) is None]


def table(buffers):
    """Mistakes down, and what they failed at first and of `LATER`: Markdown."""
    plain = next(entry for entry in buffers if entry["name"] == "Buffer")

    def listed(names, usual=()):
        names = [f"`{name}`" for name in names if name not in usual]
        shown = names[:2] if len(names) > 3 else names
        more = f" and {len(names) - 2} more" if len(names) > 3 else ""
        return (", ".join(shown) or "–") + more

    lines = [
        "| Mistake | Named rightly? | Failed at first | Fails later ones |",
        "|---|---|---|---|",
    ]
    for entry in buffers:
        if entry["correct"]:
            continue
        named = "yes" if entry["named_rightly"] else "caught, not named"
        lines.append(
            f"| {entry['mistake']} | {named if entry['caught'] else 'missed'} "
            f"| {listed(entry['failures'], plain['failures'])} | {listed(entry['later'])} |"
        )
    return "\n".join(lines)


def write(content):
    """The JSON, and the table of the page."""
    text = json.dumps(content, indent=1, ensure_ascii=False)
    RESULTS.write_text(f"{text}\n", encoding="utf-8")
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    _, _, after = rest.partition(END)
    rows = table(content["buffers"])
    PAGE.write_text(f"{before}{START}\n{rows}\n{END}{after}", encoding="utf-8")


def main(names):
    content = json.loads(RESULTS.read_text(encoding="utf-8"))
    entries = {entry["name"]: entry for entry in content["buffers"]}
    plain = entries["Buffer"]["failures"]
    for name in names or BUFFERS:
        entry = entries.get(name) or first(name, plain)
        entries[name] = entry | {"later": later(name, entry["failures"])}
    content["later"] = list(LATER)
    content["buffers"] = [entries[name] for name in BUFFERS if name in entries]
    write(content)


if __name__ == "__main__":
    main(sys.argv[1:])
