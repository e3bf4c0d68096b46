"""Each exercise: its right answer passes, in other forms as well, and mistakes hear their hints.

The mistakes are those of the exercises' own tables. Here stand answers in other forms, and wrong
ones whose hints come from how an answer is called, read or watched.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from all_exercises import EXERCISES, NAMES, VALUES, known_mistakes
from scipy.stats import sem
from torch.nn import HuberLoss
from torch.nn.functional import one_hot, smooth_l1_loss

from per_tutorial import SumTree
from per_tutorial.dqn.losses import td_targets
from per_tutorial.dqn.networks import CONVOLUTIONS
from per_tutorial.notebook.exercises.notebook_05 import output_size
from per_tutorial.replay.storages.frames import find_stacks

RIGHT = {name: exercise.right for name, exercise in EXERCISES.items()}


# Answers in other forms ---------------------------------------------------------------------------


def copies_counted(n, state):
    """Goes through all sequences of actions: those that take the right one up to the state."""
    sequences = itertools.product((0, 1), repeat=n)
    return sum(all(each[:state]) and each[state] for each in sequences)


def exact(error, step_size, tolerance):
    return np.log(tolerance / abs(error)) / np.log(1 - step_size)


def never(noted, actual):
    """Down the noted errors, until one that was found is larger than the next."""
    largest_found = -np.inf
    for reached, k in enumerate(np.argsort(-noted)):
        if noted[k] < largest_found:
            return len(noted) - reached
        largest_found = max(largest_found, actual[k])
    return 0


def find_recursively(nodes, prefix, node=0):
    if 2 * node + 1 >= len(nodes):
        return node - len(nodes) // 2
    left, right = nodes[2 * node + 1], nodes[2 * node + 2]
    if right > 0 and prefix >= left:
        return find_recursively(nodes, prefix - left, 2 * node + 2)
    return find_recursively(nodes, prefix, 2 * node + 1)


def find_by_levels(nodes, prefix):
    """No node numbers, but levels and places in them."""
    first, place, width = 0, 0, 1
    while first + width < len(nodes):
        first, width, place = first + width, 2 * width, 2 * place
        if prefix >= nodes[first + place] and nodes[first + place + 1] != 0.0:
            prefix, place = prefix - nodes[first + place], place + 1
    return np.int64(place)


def find_below_the_sum(nodes, prefix):
    """Instead of the guard: the prefix stays below the sum of the node."""
    node = 0
    while 2 * node + 2 < len(nodes):
        prefix = min(prefix, np.nextafter(nodes[node], 0))
        node = 2 * node + 1
        if not prefix < nodes[node]:
            prefix, node = prefix - nodes[node], node + 1
    return torch.tensor(node - len(nodes) // 2)


def set_leaf(nodes, leaf, value):
    node = len(nodes) // 2 + leaf
    nodes[node] = value
    while node > 0:
        node = (node - 1) // 2
        nodes[node] = nodes[2 * node + 1] + nodes[2 * node + 2]
    return nodes


def set_recursively(nodes, leaf, value, node=None):
    node = len(nodes) // 2 + leaf if node is None else node
    nodes[node] = value
    if node == 0:
        return nodes
    sibling = node + 1 if node % 2 else node - 1
    return set_recursively(nodes, leaf, value + nodes[sibling], (node - 1) >> 1)


def sum_from_the_root(nodes, leaf):
    node, first, size, before = 1, 0, len(nodes) // 2, 0
    while size > 1:
        size, node = size // 2, 2 * node
        if leaf >= first + size:
            before, first, node = before + nodes[node], first + size, node + 1
    return before


def sum_recursively(nodes, leaf, node=None):
    node = len(nodes) // 2 + leaf if node is None else node
    if node <= 1:
        return 0
    return (nodes[node - 1] if node & 1 else 0) + sum_recursively(nodes, leaf, node >> 1)


def falling_by_a_loop(step):
    value = 1.0
    for _ in range(200, min(step, 1200)):
        value -= 0.0009
    return value


def errors_one_by_one(q_values, actions, targets):
    each = zip(q_values, actions, targets, strict=True)
    return torch.stack([target - row[action] for row, action, target in each])


def weights_one_by_one(P, indices, beta):
    smallest = min(P[i] for i in indices)
    return [(P[i] / smallest) ** -beta for i in indices]


def leaves_one_by_one(td_errors, largest, alpha, epsilon):
    for error in td_errors.tolist():
        largest = max(largest, abs(error) + epsilon)
    return [(abs(error) + epsilon) ** alpha for error in td_errors], largest**alpha


def summed_one_by_one(td_errors, weights):
    total = 0.0
    for error, weight in zip(td_errors, weights, strict=True):
        total = total + weight[0] * error * error / 2
    return total / len(td_errors)


def targets_one_by_one(rewards, steps, terminated, online, target, discount):
    values = [float(rating[choice.argmax()]) for choice, rating in zip(online, target, strict=True)]
    rows = zip(rewards.tolist(), steps.tolist(), terminated.tolist(), values, strict=True)
    return [r + (0.0 if end else discount**n * value) for r, n, end, value in rows]


def packaged_targets(rewards, steps, terminated, online, target, discount):
    """The package's own, for a stack of one run."""
    stack = (each[None] for each in (rewards, terminated, target))
    return td_targets(*stack, discount**steps, online[None])[0]


def n_steps_from_behind(rewards, terminated, next_value, discount):
    target = 0.0 if terminated else next_value
    for reward in reversed(rewards):
        target = reward + discount * target
    return target


def packaged_numbers(newest, depth, environments, stack=4):
    """The package's own, in a ring that holds all frames."""
    places = np.empty((1, 1, stack), dtype=np.int64)
    depths = np.full((newest // environments + 1, environments), depth)
    find_stacks(np.array([[newest]]), environments, 0, depths, places)
    return places[0, 0]


def huber(values, targets):
    return smooth_l1_loss(values, targets, reduction="none")


def waits_for_ever(error, step_size, tolerance):
    updates, left = 0, abs(error)
    while abs(error) >= tolerance:  # and not `left`
        left, updates = (1 - step_size) * left, updates + 1
    return updates


def stays_for_ever(noted, actual):
    noted, chosen = noted.copy(), set()
    while len(chosen) < len(noted):
        k = int(noted.argmax())
        chosen.add(k)
        noted[k] = actual[k]
    return 0


def kappa_by_halving(largest, times, alpha):
    low, high = 0.0, largest
    for _ in range(200):
        middle = (low + high) / 2
        too_often = (largest / middle) ** alpha > times
        low, high = (middle, high) if too_often else (low, middle)
    return high


def slopes_one_by_one(errors, alpha, beta):
    total = sum(abs(error) ** alpha for error in errors)
    share = [len(errors) * abs(error) ** alpha / total for error in errors]
    return [x ** (1 - beta) * error for x, error in zip(share, errors, strict=True)]


def reliabilities_backwards(errors, ends):
    """From the newest to the oldest, as one meets the ends."""
    R, following, total = [1.0] * len(errors), {}, {}
    for step in reversed(range(len(errors))):
        if ends[step]:
            following[step % 2], total[step % 2] = 0.0, None
        if step % 2 in following:
            if total[step % 2] is None:
                begin = max((k + 2 for k in range(step % 2, step, 2) if ends[k]), default=step % 2)
                total[step % 2] = np.abs(errors[begin : step + 1 : 2]).sum()
            R[step] = 1 - following[step % 2] / total[step % 2]
            following[step % 2] += abs(errors[step])
    return R


def laber_in_torch(errors, chosen, kappa):
    errors, chosen = torch.tensor(errors), torch.tensor(chosen)
    p = errors.abs().clamp(max=kappa)
    return (p.mean() / p[chosen] * errors[chosen].clamp(-kappa, kappa)).mean()


def shards_by_counting(incoming, message, per_call, per_transition):
    count = 1
    while incoming * (per_call / message + per_transition) / count > 1:
        count += 1
    return count


OTHER_FORMS = [
    ("00.1", copies_counted),
    ("00.1", lambda n, state: 2.0**n / 2 ** (state + 1)),
    ("00.2", lambda e, s, t: np.floor(np.maximum(-1, exact(e, s, t))) + 1),
    ("00.2", lambda e, s, t: np.sum(abs(e) * (1 - s) ** np.arange(9_999) >= t)),
    ("00.3", lambda size, alpha: math.fsum(1 / rank**alpha for rank in range(1, size + 1))),
    ("00.3", lambda size, alpha: np.cumsum((np.arange(size, dtype="float32") + 1) ** -alpha)[-1]),
    ("00.4", never),
    ("00.4", lambda noted, actual: np.array(float(never(noted, actual)))),
    ("01.1", (1, 3, 7, 14)),
    ("01.1", torch.tensor([1, 3, 7, 14])),
    *(("01.2", answer) for answer in (find_recursively, find_by_levels, find_below_the_sum)),
    ("01.3", set_leaf),
    ("01.3", set_recursively),
    ("01.3", lambda tree, index, priority: set_leaf(tree, int(index), np.float64(priority))),
    ("01.4", sum_from_the_root),
    ("01.4", sum_recursively),
    ("01.5", SumTree(1_000_000).nodes.nbytes),
    ("01.5", Fraction(2**24)),
    ("02.1", lambda r, te, tr, q, g: r + (1 - te) * g * sorted(q)[-1]),
    ("02.1", lambda r, te, tr, q, g: r + (not te) * g * torch.max(q)),
    ("02.1", lambda r, te, tr, q, g: r + (not te) * g * q.max(dim=0).values),
    ("02.1", lambda r, te, tr, q, g: np.float32(r if te else r + g * q.amax())),
    ("02.1", lambda r, te, tr, q, g: np.where(te, r, r + g * q.max())),
    ("02.2", lambda step: np.interp(step, [200, 1200], [1, 0.1])),
    ("02.2", lambda step: torch.tensor(np.clip(np.float32(1.18 - 0.0009 * step), 0.1, 1))),
    ("02.2", falling_by_a_loop),
    ("02.3", lambda q, actions, t: (t[:, None] - q.gather(1, actions[:, None])).squeeze(1)),
    ("02.3", errors_one_by_one),
    ("02.3", lambda q, actions, t: t - (one_hot(actions, q.shape[1]) * q).sum(1).double()),
    ("02.4", lambda step, limit, g: 1 / (1 - g) - sum(g**k for k in range(limit - step))),
    ("02.4", lambda step, limit, g: sum(g ** np.arange(limit - step, 99_999))),
    ("02.5", lambda n, b, e: math.exp(b * n / e * math.log1p(-1 / n))),
    ("02.5", lambda n, b, e: ((1 - 1 / n) ** b) ** (n // e)),
    ("03.1", weights_one_by_one),
    ("03.1", lambda P, i, beta: tuple(np.float32((P[i] / P[i].min()) ** -beta))),
    ("03.1", lambda P, i, beta: (P[i] / P[i].amin()).pow(-beta)),
    ("03.2", leaves_one_by_one),
    ("03.2", lambda d, m, a, e: ((d.abs() + e) ** a, max(m, (d.abs() + e).max()) ** a)),
    ("03.3", lambda step, steps, b: 1 - (1 - b) * max(0, steps - step) / steps),
    ("03.3", lambda step, steps, b: np.float32(np.interp(step, [0, steps], [b, 1]))),
    ("03.4", lambda delta, w: w.flatten() @ delta**2 / (2 * len(delta))),
    ("03.4", lambda delta, w: 0.5 * torch.mean(torch.mul(w.T, delta.square()))),
    ("03.4", summed_one_by_one),
    ("04.1", targets_one_by_one),
    ("04.1", packaged_targets),
    ("04.1", lambda r, n, end, o, t, g: np.where(end, r, r + g**n * np.take_along_axis(
        t, o.argmax(axis=1, keepdims=True), axis=1)[:, 0])),
    ("04.2", lambda V, A, ok: V + A - A.masked_fill(~ok, torch.nan).nanmean(1, keepdim=True)),
    ("04.2", lambda *r: torch.stack([v + a - a[k].mean() for v, a, k in zip(*r, strict=True)])),
    ("04.3", lambda tau: -1 / np.log2(1 - tau)),
    ("04.3", lambda tau: torch.tensor(0.5).log() / torch.tensor(1 - tau).log()),
    ("04.4", n_steps_from_behind),
    ("04.4", lambda *given: torch.tensor(n_steps_from_behind(*given))),
    ("04.5", lambda a, b: np.sqrt(np.cov(a, b).dot([1, -1]).dot([1, -1]) / len(a))),
    ("04.5", lambda a, b: sem(b - a)),
    ("04.5", lambda a, b: torch.std(a - b) / len(a) ** 0.5),
    ("05.1", lambda f, r: [torch.as_tensor(f)[-2:].amax(0), sum(r)]),
    ("05.1", lambda f, r: (np.maximum(f[max(len(f) - 2, 0)], f[-1]), r @ np.ones(len(r)))),
    ("05.2", packaged_numbers),
    ("05.2", lambda *given: torch.tensor(RIGHT["05.2"](*given))),
    ("05.3", lambda n, once, frame=7056, stack=4: n * frame * [2 * stack, 1][once] * 1e-9),
    ("05.4", lambda r, *end: np.array(RIGHT["05.4"](r, *end))),
    ("05.4", lambda r, b, lives, over: (np.clip(r, -1, 1), over or (lives < b and lives))),
    ("05.5", lambda size, layers: float(output_size(size, layers))),
    ("05.5", lambda size, layers: torch.tensor(output_size(size, layers))),
    ("06.1", lambda n, e, rows: np.unravel_index(n % (rows * e), (rows, e))),
    ("06.1", lambda n, e, rows: torch.tensor([n // e % rows, n % e])),
    ("06.2", lambda v, t, w: (w * HuberLoss(reduction="none")(v, t).squeeze()).mean()),
    ("06.2", lambda v, t, w: w @ huber(v, t).flatten() / len(w)),
    ("06.3", lambda v, t, e: [np.mean(np.abs(row - y)) + e for row, y in zip(v, t, strict=True)]),
    ("06.3", lambda v, t, e: (v - t.unsqueeze(1)).abs().mean(dim=1) + e),
    ("06.4", lambda n, p, s: np.array([2.0 * s, 1]) * p * n),
    ("08.1", kappa_by_halving),
    ("08.1", lambda m, t, a: torch.tensor(m) * t ** (-1 / a)),
    ("08.2", slopes_one_by_one),
    ("08.2", lambda e, a, b: e * (len(e) * e.abs().pow(a) / e.abs().pow(a).sum()) ** (1 - b)),
    ("08.3", reliabilities_backwards),
    ("08.4", laber_in_torch),
    ("09.1", lambda i, n, b, s: (b ** (1 + np.linspace(0, 1, n) * s))[i]),
    ("09.2", lambda r, v, end, q, g, e: abs(n_steps_from_behind(r, end, v, g) - q) + e),
    ("09.3", lambda n, f, u, b, c: np.array([u * b, c]) / n / f),
    ("09.4", shards_by_counting),
    *(("09.4", answer) for answer in (
        lambda i, m, a, b: float(np.ceil(i * (a + m * b) / m)),
        lambda i, m, a, b: -int(-(i / m * a + i * b) // 1),
        lambda i, m, a, b: math.ceil(i / (m / (a + m * b))))),
]  # fmt: skip


# Wrong answers whose hints are in no table --------------------------------------------------------


def accumulated(start, change, limit):
    """A schedule that moves with each call, whatever the step."""
    value = [start]

    def schedule(step, *others):
        value[0] = limit(value[0] + change)
        return value[0]

    return schedule


def find_with_ties(nodes, prefix, random=np.random.default_rng(0)):  # noqa: B008
    """Mistake 3 of the notebook: where children are equal, chance decides, and the prefix stays."""
    node = 0
    while node < len(nodes) // 2:
        left, right = 2 * node + 1, 2 * node + 2
        if nodes[left] == nodes[right]:
            node = left if random.random() < 0.5 else right
        elif prefix < nodes[left] or nodes[right] == 0:
            node = left
        else:
            prefix, node = prefix - nodes[left], right
    return node - len(nodes) // 2


def set_rounded(nodes, leaf, value):
    node = len(nodes) // 2 + leaf
    nodes[node] = value
    while node > 0:
        node = (node - 1) // 2
        nodes[node] = round(nodes[2 * node + 1] + nodes[2 * node + 2], 6)
    return nodes


def sum_for_ever(nodes, leaf):
    """Above the root it goes from node 0 to node 0."""
    node, before = len(nodes) // 2 + leaf, 0.0
    while node >= 0:
        before += nodes[node - 1] if node % 2 else 0.0
        node //= 2
    return before


def find_for_ever(nodes, prefix):
    """The children of the other numbering: 0 is its own left child."""
    node = 0
    while node < len(nodes) // 2:
        node = 2 * node if prefix < nodes[2 * node] else 2 * node + 1
    return node


def find_by_walking(nodes, prefix):
    leaves = nodes[len(nodes) // 2 :]
    for leaf, value in enumerate(leaves):
        if prefix < value:
            return leaf
        prefix -= value
    return max(leaf for leaf, value in enumerate(leaves) if value > 0)


def set_and_rebuild(nodes, leaf, value):
    nodes[len(nodes) // 2 + leaf] = value
    for node in reversed(range(len(nodes) // 2)):
        nodes[node] = nodes[2 * node + 1] + nodes[2 * node + 2]
    return nodes


def sum_by_walking(nodes, leaf):
    first = len(nodes) // 2
    return sum(nodes[first : first + leaf])


def error_by_bootstrap(a, b):
    rng = np.random.default_rng(0)
    return rng.choice(a - b, (20_000, len(a))).mean(axis=1).std()


def loss_that_steps(delta, weights):
    loss = RIGHT["03.4"](delta, weights)
    loss.backward(retain_graph=True)
    return loss


def capped(name, most, cap):
    """A right answer as long as the first argument is small."""
    return lambda first, *rest: RIGHT[name](first, *rest) if first <= most else cap


def emptied(rewards, *rest):
    while rewards:
        rewards.pop()
    return 0.0


TABLE = "a table of (batch, batch)"

SPECIAL = [
    ("00.1", capped("00.1", 10, 0), "right as long as the inputs are small; but for n = 11"),
    ("00.1", lambda n, state: {5: 16 >> state, 8: 16}[n], "KeyError: 6"),
    ("00.1", lambda n, state: print(2 ** (n - 1 - state)), "returns None: does one branch"),
    ("00.1", 16, "a function is asked for"),
    ("00.2", lambda *given: min(RIGHT["00.2"](*given), 50), "it should be 69, yours is 50"),
    ("00.2", lambda e, s, t: math.ceil((abs(e) - t) / s), "what is *left*"),
    ("00.2", lambda e, s, t: max(0, math.ceil((abs(e) - t) / (s * t))), "what is *left*"),
    ("00.2", lambda e, s, t: RIGHT["00.2"](e, 0.25, t), "does not change with `step_size`"),
    ("00.2", lambda e, s, t: 13, "is always 13"),
    ("00.2", waits_for_ever, "your loop never ends"),
    ("00.3", lambda n, a: np.arange(1, n + 1) ** -a, "a single number is asked for"),
    ("00.3", lambda n, a: (rank**-a for rank in range(1, n + 1)), "add them up"),
    pytest.param("00.4", stays_for_ever, "your loop never ends", marks=pytest.mark.slow),
    ("00.4", lambda noted, actual: noted > actual.max(), "count the True ones"),
    ("00.4", lambda noted, actual: np.sum(noted < actual[noted.argmax()]), "first choice alone"),
    ("00.4", lambda noted, actual: noted.sort() or 0, "it changes `noted`"),
    ("00.4", lambda noted, actual: {2, 4}, "a set has no order"),
    ("01.1", [1, 2, 5, 11], "you leave the path at node 1"),
    ("01.1", [1, 3, 7, 14, 28], "four nodes are enough"),
    ("01.1", 14, "the answer is a list"),
    ("01.1", [], "root is node 1"),
    ("01.1", (14 >> k for k in (3, 2, 1, 0)), "can be read only once"),
    ("01.2", find_with_ties, "Mistake 3"),
    ("01.2", find_for_ever, "your walk never ends"),
    ("01.2", find_by_walking, "Walk down from the root"),
    ("01.2", lambda nodes, prefix: float(RIGHT["01.2"](nodes, prefix)), "must be an int"),
    ("01.2", lambda nodes, prefix: nodes.clear() or 0, "it changes `nodes`"),
    ("01.3", lambda *given: set_leaf(*given) and None, "return `nodes` as well"),
    ("01.3", set_and_rebuild, "Only the ten sums"),
    ("01.3", lambda nodes, *change: set_leaf(nodes.copy(), *change), "a changed copy"),
    ("01.3", lambda *given: set_leaf(*given)[0], "should have 15 numbers"),
    ("01.3", set_rounded, "should be 0.7333334, yours is 0.733333"),
    ("01.4", sum_by_walking, "Ten are enough"),
    ("01.4", sum_for_ever, "your walk never ends"),
    ("01.4", lambda *given: sum_recursively(*given) + 1, "before it is 0, yours is 1"),
    ("01.5", float("nan"), "nodes = 2 × leaves"),
    ("02.1", lambda r, te, tr, q, g: r + (not te) * g * q, "a single number"),
    ("02.1", lambda r, te, tr, q, g: r + (not te) * (not tr) * g * torch.max(q), "the time limit"),
    ("02.2", accumulated(1.0, -0.0009, lambda e: max(e, 0.1)), "on earlier calls"),
    ("02.2", lambda step: 0.1 + 0.9 * (RIGHT["02.2"](step) / 0.9 - 1 / 9) ** 2, "a straight line"),
    ("02.2", lambda step: 0.95 * RIGHT["02.2"](step), "it starts at 1, yours is 0.95"),
    ("02.2", lambda step: RIGHT["02.2"](step) if step < 1100 else 0.1, "at step 1150 it should be"),
    ("02.3", lambda q, a, t: t - q.gather(1, a[:, None]), "a table of (3, 3)"),
    ("02.3", lambda q, a, t: t[:, None] - q.gather(1, a[:, None]), "(3, 1), a column"),
    ("02.3", lambda *given: RIGHT["02.3"](*given).round(), "right but for the rounding"),
    ("02.3", lambda *given: RIGHT["02.3"](*given).detach(), "no gradient flows back"),
    ("02.3", lambda q, a, t: t.numpy() - q.numpy()[range(len(a)), a], "leaves torch"),
    ("02.3", lambda q, a, t: t - q[a], "picks whole rows"),
    ("02.3", lambda q, a, t: t[:, None] - q[:, a], "columns in *every* row"),
    ("02.3", lambda q, a, t: t.sub_(q[torch.arange(len(a)), a]), "it changes `targets`"),
    ("02.5", lambda n, b, e: round(RIGHT["02.5"](n, b, e), 3), "right but for the rounding"),
    ("03.1", lambda P, i, b: (p for p in RIGHT["03.1"](P, i, b)), "a generator, which can be read"),
    ("03.1", lambda P, i, b: map(float, RIGHT["03.1"](P, i, b)), "a map, which can be read"),
    ("03.1", lambda P, i, b: RIGHT["03.1"](P, slice(None), b), "take P[indices]"),
    ("03.1", lambda P, i, b: RIGHT["03.1"](P, np.unique(i), b), "drawn twice"),
    ("03.1", lambda P, i, b: RIGHT["03.1"](P, i, b).round(2), "right but for the rounding"),
    ("03.2", lambda *given: RIGHT["03.2"](*given)[0], "return 2 things"),
    ("03.2", lambda *given: RIGHT["03.2"](*given)[::-1], "in this order"),
    ("03.3", accumulated(0.4, 0.006, lambda b: min(b, 1.0)), "it accumulates"),
    ("03.3", lambda *given: RIGHT["03.3"](*given) + (given[0] == 500) / 2e4, "yours is 0.70005"),
    ("03.4", loss_that_steps, "calls `.backward()` itself"),
    ("03.4", lambda d, w: 2 * RIGHT["03.4"](d, w) - RIGHT["03.4"](d, w).detach(), "is 2 times"),
    ("03.4", lambda d, w: (w[:, 0] * 0.5 * d * d.detach()).mean(), "a part of the formula"),
    ("03.4", lambda d, w: w[:, 0] * 0.5 * d**2, "a single number"),
    ("04.2", lambda *given: RIGHT["04.2"](*given).round(decimals=3), "right but for the rounding"),
    ("04.3", lambda tau: np.ceil(RIGHT["04.3"](tau)), "right but for the rounding"),
    ("04.3", lambda tau: RIGHT["04.3"](tau) if tau < 0.5 else 1.2, "33.3 % is left after 1.2 "),
    ("04.4", lambda r, end, v, g: r[0] + g * r[1] + g * g * r[2] + (not end) * g**3 * v,
     "a window may hold fewer, or more"),
    ("04.4", emptied, "it changes `rewards`"),
    ("04.5", error_by_bootstrap, "use the formula"),
    ("04.5", lambda a, b: np.random.default_rng().random(), "should be"),
    ("05.1", lambda f, r: (np.maximum(f[-2], f[-1]), r.sum()), "right for four frames"),
    ("05.1", lambda f, r: (f[-2:].max(axis=0), r[0] + r[1] + r[2] + r[3]), "right for four frames"),
    ("05.1", lambda f, r: (f[-2:].max(axis=0) / 1.0, r.sum()), "as float64: leave it uint8"),
    ("05.1", lambda f, r: (r.sum(), f[-2:].max(axis=0)), "in this order"),
    ("05.1", lambda f, r: (f[-2:].max(), r.sum()), "yours has (): take the maximum pixel by pixel"),
    ("05.1", lambda f, r: (f[-2:].max(axis=1), r.sum()), "along axis 0"),
    ("05.2", lambda *given: (number for number in RIGHT["05.2"](*given)), "can be read only once"),
    ("05.2", lambda *given: [float(number) for number in RIGHT["05.2"](*given)], "must be an int"),
    ("05.2", lambda k, *rest: k, "return a list of numbers"),
    ("05.2", lambda *given: [n if n > 0 else None for n in RIGHT["05.2"](*given)], "not None"),
    ("05.4", lambda r, before, *rest: (np.clip(r, -1, 1), "yes"), "is True or False, not 'yes'"),
    ("05.4", lambda r, *end: (bool(RIGHT["05.4"](r, *end)[1]), RIGHT["05.4"](r, *end)[0]),
     "in this order"),
    ("05.4", lambda r, before, lives, over: (np.clip(r, -1, 1), over), "a lost life ends an"),
    ("05.4", lambda r, before, lives, over: (np.clip(r, -1, 1), over or lives < before), "two"),
    ("05.5", lambda size, layers: layers.clear() or 1, "it changes `layers`"),
    ("06.1", lambda n, e, rows: (float(n // e % rows), n % e), "must be an int"),
    ("06.2", lambda v, t, w: w.mean() * smooth_l1_loss(v, t), "Weigh each loss before the mean"),
    ("06.2", lambda v, t, w: (w * huber(v, t)).mean(), TABLE),
    ("06.2", lambda v, t, w: (w[:, None] * smooth_l1_loss(v, t)).mean(), 'reduction="none"'),
    ("06.3", lambda v, t, e: np.abs(t - v).mean(axis=1) + e, "`targets[:, None]`"),
    ("06.3", lambda v, t, e: (np.abs(t[:, None] - v) + e).mean(axis=1) + e, "once, not twice"),
    ("06.3", lambda v, t, e: np.abs(v - t[:, None]).mean(axis=0) + e, "`axis=1`"),
    ("08.2", lambda e, a, b: -RIGHT["08.2"](e, a, b), "the sign is reversed"),
    ("08.2", lambda e, a, b: (len(e) * e**a / (e**a).sum()) ** (1 - b) * e, "that holds NaN"),
    ("08.2", lambda e, a, b: RIGHT["08.2"](e, a, b).mean(), "one slope for each transition"),
    ("08.3", lambda errors, ends: np.ones(len(errors)), "R is 1 only where"),
    ("08.4", lambda e, c, k: RIGHT["08.4"](e, c, k) * np.ones(len(c)), "a single number"),
    ("09.1", lambda i, n, b, s: b ** (1 + s * i / (n - 1)), "divided by 0"),
    ("09.4", lambda *given: max(2, RIGHT["09.4"](*given)), "a single shard is enough"),
]  # fmt: skip


# The tests ----------------------------------------------------------------------------------------

# 02.2 knows many mistakes, and asks each of them for many steps.
ALL = [pytest.param(name, marks=pytest.mark.slow if name == "02.2" else ()) for name in NAMES]


@pytest.mark.parametrize("name", [name for name in NAMES if name != "01.3"])  # that works on a copy
def test_the_right_answer_passes(said, name):
    assert said(name, RIGHT[name]) == (True, f"✓ {name}: right.\n")


@pytest.mark.parametrize(("name", "answer"), OTHER_FORMS)
def test_right_answers_pass_in_other_forms(said, name, answer):
    assert said(name, answer) == (True, f"✓ {name}: right.\n")


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_every_known_mistake_hears_its_own_hint(said, name):
    mistakes = list(known_mistakes(name))
    assert len(mistakes) >= 6
    for answer, hint in mistakes:
        assert said(name, answer) == (False, f"✗ {name}: {hint}\n")


@pytest.mark.parametrize(("name", "answer", "words"), SPECIAL)
def test_other_wrong_answers_hear_what_is_wrong(said, name, answer, words):
    right, printed = said(name, answer)
    assert not right
    assert words in printed


@pytest.mark.parametrize("name", NAMES)
def test_stubs_are_unsolved(said, name):
    stubs = [...] if name in VALUES else [..., lambda *given: ..., lambda *given: (..., ...)]
    for stub in stubs:
        assert said(name, stub)[1].startswith(f"○ {name}: not solved yet")


class Odd:
    """An object that fails whatever one does with it."""

    def __getattr__(self, name):
        raise RuntimeError(f"no {name}")

    __eq__ = __array__ = __len__ = __iter__ = __float__ = __bool__ = lambda self, *given: 1 / 0


@pytest.mark.parametrize("name", ALL)
def test_no_answer_raises(said, name):
    values = [None, True, 0, -1.5, np.nan, 1j, "", "x", (), [], {}, [[]], [1, [2]], object(), Odd()]
    values += [
        np.zeros(0),
        np.zeros((2, 2)),
        torch.zeros(3),
        torch.tensor(1.0),
        len,
        Odd,
        "…" * 999,
    ]
    values += [lambda *given, value=value: value for value in values]
    values += [lambda: 0, lambda *given: given, lambda *given: iter(given), lambda *given: 1 // 0]
    for value in values:
        right, words = said(name, value)
        assert not right
        assert words.startswith(f"✗ {name}: ")


def test_the_sizes_are_those_of_the_papers_network():
    assert output_size(84, [layer[1:] for layer in CONVOLUTIONS]) == 7
