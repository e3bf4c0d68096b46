"""Checks of the notebooks' exercises: what is right, and which mistake a wrong answer points to.

A checker takes the answer and returns None if it is right, or else a sentence about the mistake. It
is registered under the exercise's name, the notebook's number and its own: `@checks("01.2")`.
"""

import functools

import numpy as np

CHECKERS = {}


class _Unsolved(Exception):
    """An answer is still the stub that the notebook starts with."""


def checks(name):
    """Register a checker for the exercise of this name."""

    def register(checker):
        CHECKERS[name] = checker
        return checker

    return register


def check(name, answer):
    """Print whether the answer to an exercise is right; return True if it is, False if not.

    Never raises because of the answer, so that a notebook runs to its end while it is unsolved.

    Args:
        name: the exercise, such as "01.2".
        answer: a value or a function; `...` (or a function that returns it) counts as unsolved.
    """
    try:
        if _is_stub(answer):
            raise _Unsolved
        mistake = CHECKERS[name](_watched(answer) if callable(answer) else answer)
    except _Unsolved:
        print(
            f"○ {name}: not solved yet. Put your answer in place of the dots and run the cell again."
        )
        return False
    except Exception as error:  # noqa: BLE001  (a wrong answer may raise anything)
        mistake = f"the check stopped with {type(error).__name__}: {error}"
    print(f"✓ {name}: right." if mistake is None else f"✗ {name}: {mistake}")
    return mistake is None


def _is_stub(value):
    return value is ... or value is NotImplemented


def _watched(function):
    """The function, except that a stub's result ends the check."""

    @functools.wraps(function)
    def call(*arguments, **keywords):
        result = function(*arguments, **keywords)
        if _is_stub(result):
            raise _Unsolved
        return result

    return call


# Notebook 01: the segment tree

_LEAVES = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0]


class _CountedList(list):
    """A list that counts how often it is read, and that nobody can change unseen."""

    def __init__(self, values):
        super().__init__(values)
        self.reads = 0

    def __getitem__(self, place):
        span = range(*place.indices(len(self))) if isinstance(place, slice) else [place]
        self.reads += len(span)
        return super().__getitem__(place)


def _sum_nodes(leaves):
    nodes = [0.0] * len(leaves) + list(leaves)
    for node in reversed(range(1, len(leaves))):
        nodes[node] = nodes[2 * node] + nodes[2 * node + 1]
    return nodes


@checks("01.1")
def _path_of_a_prefix(path):
    path = list(path)
    if path == [1, 3, 7, 14]:
        return None
    if path == [1, 3, 6, 13]:
        return (
            "at node 3 the prefix equals the left sum, 14. A leaf's share does not hold its right "
            "end: go left only if the prefix is *less* than the left sum."
        )
    if path == [1, 3, 7, 15] or path == [1, 3, 7]:
        return (
            "down to node 7 that is right, but from there? After each step to the right, subtract "
            "the left sum from the prefix, and go on until you stand on a leaf."
        )
    if path[:1] != [1]:
        return "the walk starts at the root, and the root is node 1."
    if path[-1:] == [6]:
        return "leaf [6] it is, but as a node it has another number: leaf [k] is node 8 + k."
    right = [1, 3, 7, 14]
    for step in range(1, len(right)):
        if path[step : step + 1] != right[step : step + 1]:
            parent = right[step - 1]
            return (
                f"you leave the path at node {parent}: is the prefix that is left there less than "
                f"the sum of node {2 * parent}?"
            )
    return "the walk is over when it stands on a leaf; four nodes are enough."


@checks("01.2")
def _sum_before_a_leaf(prefix_sum):
    nodes = _sum_nodes(_LEAVES)
    for leaf in range(8):
        before, after = sum(_LEAVES[:leaf]), sum(_LEAVES[leaf + 1 :])
        given = _CountedList(nodes)
        got = prefix_sum(given, leaf)
        if given != nodes:
            return "it changes the tree; it should only read it."
        if got == before:
            continue
        if got == before + _LEAVES[leaf]:
            return f"for leaf {leaf} you count the leaf itself: the sum ends *before* it."
        if got == after:
            return (
                f"for leaf {leaf} that is the sum of what lies to its right. Standing on a right "
                "child, add its left sibling, not the other way round."
            )
        return f"for leaf {leaf} of {_LEAVES} the sum before it is {before:g}, yours is {got}."
    large = _CountedList(_sum_nodes([1.0] * 1024))
    if prefix_sum(large, 1023) != 1023:
        return "it is right for 8 leaves, but not for 1024; does it know where the leaves begin?"
    if large.reads > 20:
        return (
            f"right, but it read {large.reads} nodes of a tree of 1024 leaves. Ten are enough: walk "
            "up, and add whole subtrees on the way."
        )
    return None


@checks("01.3")
def _one_draw_in_each_range(stratified):
    uniforms, total = [0.5, 0.25, 0.75, 0.0], 8.0
    right = [1.0, 2.5, 5.5, 6.0]
    got = [float(prefix) for prefix in stratified(total, uniforms)]
    if got == right:
        return None
    if len(got) != len(right):
        return f"one prefix sum for each of the {len(right)} random numbers; you return {len(got)}."
    if got == [total * uniform for uniform in uniforms]:
        return (
            "these are independent draws from all of [0, total); draw number k has its own range."
        )
    if got == [prefix / total for prefix in right]:
        return "these are in [0, 1): stretch them to [0, total)."
    if got in ([1.0, 3.0, 5.0, 7.0], [0.0, 2.0, 4.0, 6.0]):
        return "every batch would get the same prefix sums; where in its range is up to the random number."
    if got == [prefix + 2.0 for prefix in right]:
        return "every range is one too far to the right, and the last lies beyond the total: k starts at 0."
    if not all(2.0 * k <= prefix < 2.0 * (k + 1) for k, prefix in enumerate(got)):
        return (
            f"with total 8 and four draws, draw k belongs in [2k, 2k + 2); yours are {got} for the "
            f"random numbers {uniforms}."
        )
    return f"each lies in its range, but not where the random number {uniforms} says: {got}."


@checks("01.4")
def _bytes_of_a_tree(answer):
    leaves = 2**20
    if answer == 2 * leaves * 8:
        return None
    known = {
        2 * 1_000_000 * 8: "a million is no power of two: what is it padded to?",
        (2 * 1_000_000 - 1) * 8: "a million is no power of two: what is it padded to?",
        leaves
        * 8: "these are the leaves alone; the sums above them need as much again, 8 bytes each.",
        2 * leaves: "that is the number of nodes; each is a float64 of 8 bytes.",
        (2 * leaves - 1) * 8: "nearly: the array has a place 0, too, though no node uses it.",
        4 * leaves * 8: "twice too much: 2**20 is more than a million already.",
    }
    return known.get(answer, "bytes = 8 × nodes, nodes = 2 × leaves, leaves = a power of two.")


# Notebook 02: uniform DQN


@checks("02.1")
def _td_target(td_target):
    reward, next_q, discount = 1.0, np.array([3.0, 7.0]), 0.9
    future = reward + discount * next_q.max()

    def target(terminated, truncated):
        return float(td_target(reward, terminated, truncated, next_q.copy(), discount))

    going_on, failed, stopped = target(False, False), target(True, False), target(False, True)
    if np.isclose(going_on, reward + next_q.max()):
        return "the future is not discounted."
    if np.isclose(going_on, reward + discount * next_q[0]):
        return "you take the Q of the first action; the target takes the largest."
    if np.isclose(going_on, reward + discount * next_q.mean()):
        return "you take the mean Q of the next state; the target takes the largest."
    if not np.isclose(going_on, future):
        return f"in mid-episode it should be r + γ · max Q(s′, ·) = {future}, yours is {going_on}."
    if not np.isclose(failed, reward):
        return "after termination nothing follows: the target is the reward alone."
    if np.isclose(stopped, reward):
        return (
            "you end the value at the time limit. A truncated episode has a future that nobody "
            "watched: only `terminated` cuts it off."
        )
    if not np.isclose(stopped, future):
        return "truncation changes the target; it should not matter at all."
    if not np.isclose(target(True, True), reward):
        return "if the pole falls at the very last step, it has fallen: terminated wins."
    return None


@checks("02.2")
def _epsilon_at_a_step(epsilon):
    steps, start, end = 1000, 1.0, 0.1
    first = [epsilon(step) for step in range(steps + 1)]
    if not np.isclose(epsilon(0), first[0]):
        return (
            "asked for step 0 again it gives another answer: it remembers the calls before. "
            "ε is a function of the step alone."
        )
    if not np.isclose(first[0], start):
        return f"at step 0 it is {first[0]:.3g}; it starts at {start:g}."
    if np.isclose(first[steps // 2], start / 2) and not np.isclose(first[-1], end):
        return f"it heads for 0; it should arrive at {end:g} in step {steps}."
    right = start + (end - start) * np.arange(steps + 1) / steps
    if not np.allclose(first, right):
        if np.isclose(first[-1], end):
            return f"the ends are right, but half-way it is {first[steps // 2]:.3g}: not a line."
        return f"half-way it should be {right[steps // 2]:.2f}, it is {first[steps // 2]:.3g}."
    if not np.isclose(epsilon(3 * steps), end):
        return f"after step {steps} it goes on, to {epsilon(3 * steps):.2g}; it should stay at {end:g}."
    return None


@checks("02.3")
def _td_errors(td_errors_of):
    import torch

    q_values = torch.tensor([[1.0, 5.0], [2.0, 0.0], [4.0, 3.0]])
    actions, targets = torch.tensor([0, 1, 1]), torch.tensor([2.0, 2.0, 7.0])
    chosen = q_values[torch.arange(3), actions]
    got = torch.as_tensor(td_errors_of(q_values.clone(), actions.clone(), targets.clone()))
    if got.shape == (3, 3):
        return (
            "the result is (batch, batch): (batch,) minus (batch, 1) pairs every target with every "
            "estimate. Drop the last axis of what `gather` returns."
        )
    if got.shape == (3, 1):
        return (
            "the result is (batch, 1): right perhaps, until a (batch,) meets it. Return (batch,)."
        )
    if got.shape != (3,):
        return f"the TD errors are (batch,) = (3,), yours have the shape {tuple(got.shape)}."
    if torch.allclose(got, targets - chosen):
        return None
    if torch.allclose(got, chosen - targets):
        return "the sign is the other way round: δ is the target minus the estimate."
    if torch.allclose(got, targets - q_values.max(dim=1).values):
        return "you take the best action's Q; the estimate is that of the action that was taken."
    return f"for these Q-values it is {(targets - chosen).tolist()}, yours is {got.tolist()}."


@checks("02.4")
def _discount_for_50(answer):
    answer = float(answer)
    if np.isclose(answer, 0.98, rtol=1e-4):
        return None
    if np.isclose(answer, 0.02):
        return "that is 1 − γ."
    if not 0 <= answer < 1:
        return "a discount lies between 0 and 1."
    return f"with γ = {answer:g} it is worth {1 / (1 - answer):.1f}."


@checks("02.5")
def _replays_of_a_transition(answer):
    answer = float(answer)
    if np.isclose(answer, 32):
        return None
    if np.isclose(answer, 32 / 10_000):
        return "that is its chance to be drawn in one step; it stays for many."
    if np.isclose(answer, 10_000 / 32):
        return "that is how many updates it takes to draw as many as the memory holds."
    if np.isclose(answer, 1):
        return "one transition is added at every step, but how many are drawn?"
    if np.isclose(answer, 320_000):
        return "that is how many draws there are while it is stored, of 10,000 transitions in all."
    return (
        "it stays for as many steps as the memory holds transitions; multiply by its chance a step."
    )


# Notebook 03: prioritised replay


def _shape(value):
    return tuple(np.shape(value))


def _same(a, b):
    return _shape(a) == _shape(b) and np.allclose(a, b)


@checks("03.1")
def _weights_of_a_minibatch(importance_weights):
    P = np.arange(1.0, 41.0) ** 0.6
    P /= P.sum()
    indices, beta = np.array([7, 31, 12, 7, 25]), 0.5

    def normalised(weights):
        return weights / weights.max()

    given = P.copy()
    got = importance_weights(given, indices.copy(), beta)
    if not np.array_equal(given, P):
        return "it changes P; work on a copy."
    every = (len(P) * P) ** -beta
    if _shape(got) == (5, 1):
        return (
            "the shape is (batch, 1). Multiplied by errors of the shape (batch,) that becomes a table "
            "of (batch, batch), without an error message; return (batch,)."
        )
    if _shape(got) != (5,):
        return (
            f"one weight for each index, the shape (5,) for five of them; yours is {_shape(got)}."
        )
    if _same(got, normalised(every[indices])):
        return None
    if _same(got, every[indices]):
        return "right so far; now divide by the largest of them."
    if _same(got, normalised(every)[indices]):
        return (
            "you divide by the largest weight of the whole memory: one transition that is hardly ever "
            "drawn makes all others tiny. Take the largest of the minibatch."
        )
    if _same(got, every[indices] / every[indices].min()):
        return "divided by the smallest: now all weights are 1 or more. Divide by the largest."
    if _same(got, every[indices] / every[indices].sum()):
        return "divided by the sum: now they sum to 1. Divide by the largest."
    if _same(got, normalised((len(P) * P[indices]) ** beta)):
        return "upside down: what is drawn often must count *less*, so the exponent is −β."
    if _same(got, normalised(1 / P[indices])):
        return "that is the full correction, β = 1. Where is the exponent?"
    if _same(got, np.ones(5)):
        return "all weights are 1: that corrects nothing."
    return f"with N = 40, β = 0.5 and P = {P[indices].round(4)} the weights are others than {got}."


@checks("03.2")
def _what_the_tree_gets(leaves):
    alpha, epsilon = 0.6, 0.01
    for td_errors, largest in (([-2.0, 0.5, 0.0], 1.5), ([0.3, -0.8, 0.1], 4.0)):
        td_errors = np.array(td_errors)
        size = np.abs(td_errors)
        priorities = size + epsilon
        replayed, newcomer = leaves(td_errors.copy(), largest, alpha, epsilon)
        mistake = _replayed_leaves(replayed, td_errors, size, alpha, epsilon)
        if mistake:
            return mistake
        right = max(largest, priorities.max()) ** alpha
        if _same(newcomer, right):
            continue
        if _same(newcomer, right**alpha):
            return (
                "the newcomer's leaf has α applied twice: the largest leaf is p^α already, keep the "
                "largest p and raise it once."
            )
        if _same(newcomer, right ** (1 / alpha)):
            return "the newcomer gets p, but the leaves hold p^α."
        if _same(newcomer, priorities.max() ** alpha):
            return (
                "the newcomer gets the largest priority *so far*, not that of this minibatch alone."
            )
        if _same(newcomer, largest**alpha):
            return "this minibatch may have brought a new largest priority: look at it first."
        if _same(newcomer, (max(largest, size.max()) + epsilon) ** alpha):
            return "ε is in the largest priority already; it is not added again."
        return f"the replayed leaves are right; the newcomer's is {right:.4f}, yours {newcomer}."
    return None


def _replayed_leaves(replayed, td_errors, size, alpha, epsilon):
    if _shape(replayed) != size.shape:
        return f"one leaf for each TD error, the shape {size.shape}; yours is {_shape(replayed)}."
    if _same(replayed, (size + epsilon) ** alpha):
        return None
    if np.isnan(replayed).any():
        return "a negative number raised to α is NaN: the priority is the *size* of the error, |δ|."
    huber = np.where(size <= 1, 0.5 * size**2, size - 0.5)
    for loss in (size**2, 0.5 * size**2, huber):
        if _same(replayed, (loss + epsilon) ** alpha):
            return (
                "the priority is |δ|, not the loss: of small errors the loss is the square, so α would "
                "count twice."
            )
    if _same(replayed, size**alpha):
        return "ε is missing: a transition without an error would never be drawn again."
    if _same(replayed, size**alpha + epsilon):
        return "ε belongs to the priority, before it is raised to α: (|δ| + ε)^α."
    if _same(replayed, size + epsilon):
        return "these are the priorities p; the leaves hold p^α."
    if _same(replayed, (size + epsilon) ** alpha**2):
        return "α is applied twice."
    return f"for δ = {td_errors} the leaves are {(size + epsilon) ** alpha}, yours {replayed}."


@checks("03.3")
def _beta_at_a_step(beta_at):
    steps, start = 1000, 0.4
    first = [beta_at(step, steps, start) for step in range(steps + 1)]
    if beta_at(0, steps, start) != first[0]:
        return (
            "asked for step 0 again it gives another answer: it accumulates. β is a function of the "
            "step and remembers nothing."
        )
    if not np.isclose(first[0], start):
        return f"at step 0 it is {first[0]:.3g}, not beta_start."
    right = start + (1 - start) * np.arange(steps + 1) / steps
    if not np.allclose(first, right):
        if first[steps // 10] > 0.95:
            return (
                f"after a tenth of the steps it is {first[steps // 10]:.2f} already: each step adds to "
                "the β of the step before. Start from beta_start every time."
            )
        if np.isclose(first[-1], 1 + start):
            return "it rises by 1 in all, and ends above 1; what is left above beta_start is less."
        return f"half-way it should be {right[steps // 2]:.2f}, it is {first[steps // 2]:.3g}."
    if not np.isclose(beta_at(3 * steps, steps, start), 1.0):
        return (
            f"after the last step it goes on, to {beta_at(3 * steps, steps, start):.2g}; stop at 1."
        )
    return None


@checks("03.4")
def _loss_of_a_minibatch(weighted_loss):
    import torch

    td_errors = torch.tensor([0.1, -0.2, 0.3, 4.0])
    weights = torch.tensor([[1.0], [0.8], [0.5], [0.1]])
    half_squares, w = 0.5 * td_errors**2, weights[:, 0]
    got = torch.as_tensor(weighted_loss(td_errors.clone(), weights.clone()))
    if _shape(got) != ():
        return f"the loss is a single number; yours has the shape {_shape(got)}."
    right = (w * half_squares).mean()
    if torch.isclose(got, right):
        return None
    table = half_squares.mean() * w.mean()
    mistakes = [
        (table, "(batch,) times (batch, 1) has made a table of (batch, batch), and its mean is the "
                "mean weight times the mean loss. Bring both to one shape first."),
        (16 * table, "that is the sum of a table of (batch, batch): bring both to one shape first."),
        (2 * right, "the ½ is missing."),
        (4 * right, "that is the sum over the minibatch; take the mean."),
        (half_squares.mean(), "where are the weights?"),
        ((0.5 * (w * td_errors) ** 2).mean(), "you square the weight, too: it multiplies ½δ², not δ."),
    ]  # fmt: skip
    for value, mistake in mistakes:
        if torch.isclose(got, value):
            return mistake
    return f"for these errors it is {right:.4f}, yours is {float(got):.4f}."


# 00 · Blind Cliffwalk -----------------------------------------------------------------------------


@checks("00.1")
def _copies(copies):
    for n, state in ((5, 4), (5, 0), (8, 3)):
        got, right = copies(n, state), 2 ** (n - 1 - state)
        if got == right:
            continue
        if got == 2**state:
            return "that grows along the walk; the later a state, the fewer sequences reach it."
        if got == 2 * right:
            return "so many sequences reach the state; half of them take one action, half the other."
        return f"state {state} of {n}: there are {right} copies of each transition, not {got}."
    return None


@checks("00.2")
def _td_error(td_error):
    q = np.array([[0.1, 0.2], [0.5, 0.3], [-0.4, -0.2]])
    cases = (((0, 1, 0.0, 1), 0.2), ((1, 0, 0.0, 2), -0.6), ((2, 1, 1.0, -1), 1.2))
    for (state, action, reward, following), right in cases:
        got = td_error(q.copy(), state, action, reward, following, 0.5 if following != 1 else 0.8)
        if np.isclose(got, right):
            continue
        if np.isclose(got, -right):
            return "the sign is wrong: δ is what the transition says minus what Q said."
        if following == -1:
            return "next_state −1 means the end: nothing follows, and q[-1] is another state's row."
        if np.isclose(got + q[state, action], 0):
            return "the value of the next state is missing."
        return f"for transition {(state, action, reward, following)} it is {right:g}, not {got:.3g}."
    return None


@checks("00.3")
def _rank_probabilities(rank_probabilities):
    td_errors = np.array([0.5, -3.0, 0.1, 1.0])
    shares = np.array([3, 1, 4, 2]) ** -0.7
    right = shares / shares.sum()
    got = np.asarray(rank_probabilities(td_errors.copy(), 0.7))
    if got.shape != right.shape:
        return f"one probability for each of 4 errors is needed, not the shape {got.shape}."
    if np.allclose(got, right):
        return None
    if np.allclose(got, shares):
        return "they do not add up to 1 yet."
    if np.allclose(np.sort(got), np.sort(right)):
        if got.argmax() == 3:
            return "the largest error in *size* has rank 1: take |δ| before you sort."
        if got.argmax() == 2:
            return "you have given rank 1 to the smallest |δ|."
        return (
            "the values are right, their order is not: argsort tells which transition has a rank, "
            "not which rank a transition has."
        )
    return "P(i) is rank(i)^(−α), divided by the sum over all transitions."


# Notebook 04: double, dueling, soft targets, n steps, paired runs


def _named(got, mistakes, otherwise):
    """The sentence of the first (value, sentence) whose value ``got`` is, or else ``otherwise``."""
    return next((sentence for value, sentence in mistakes if _same(got, value)), otherwise)


@checks("04.1")
def _double_targets(double_targets):
    import torch

    rewards = torch.tensor([1.0, 0.0, -1.0, 0.5])
    terminated = torch.tensor([False, False, True, False])
    online = torch.tensor([[1.0, 5, 2], [4, 0, 3], [0, 1, 6], [2, 3, 1]])
    target = torch.tensor([[3.0, 4, 7], [6, 5, 2], [8, 1, 2], [1, 2, 9]])
    discount, every = 0.9, torch.arange(4)
    given = (each.clone() for each in (rewards, terminated, online, target))
    got = double_targets(*given, discount)
    if _shape(got) == (4, 4):
        return (
            "the result is (batch, batch): (batch,) and (batch, 1) have met. Drop the last axis of "
            "what `gather` returns."
        )
    if _shape(got) != (4,):
        return f"one target for each transition, the shape (4,) for four; yours is {_shape(got)}."

    def targets(next_values, goes_on=~terminated):
        return rewards + discount * goes_on * next_values

    rated = target[every, online.argmax(dim=1)]
    right = targets(rated)
    if _same(got, right):
        return None
    other_values = [
        (target.max(dim=1).values, "that is plain DQN, the largest Q of the target network: let the "
                                   "online network choose the action."),
        (online.max(dim=1).values, "the online network both chooses and rates; what it has chosen "
                                   "is for the target network to rate."),
        (online[every, target.argmax(dim=1)], "the roles are swapped: you choose by the target "
                                              "network and rate by the online one."),
    ]  # fmt: skip
    mistakes = [
        (targets(rated, True), "after termination nothing follows: there the target is the reward "
                               "alone."),
        (targets(rated, terminated), "upside down: the transitions that did *not* terminate have a "
                                     "future."),
        (right * ~terminated, "termination cuts off what follows, not the reward of the step itself."),
        (rewards + ~terminated * rated, "the future is not discounted."),
        *((targets(values, goes_on), sentence)
          for values, sentence in other_values for goes_on in (~terminated, True)),
    ]  # fmt: skip
    return _named(got, mistakes, f"it is {right.numpy().round(3)}, yours is {np.asarray(got)}.")


@checks("04.2")
def _dueling_q(dueling_q):
    import torch

    # As many transitions as actions: a mean along the wrong axis broadcasts without an error.
    V = torch.tensor([[1.0], [-2.0], [5.0]])
    A = torch.tensor([[1.0, 2.0, 6.0], [0.0, -4.0, 1.0], [3.0, 3.0, 9.0]])
    got = dueling_q(V.clone(), A.clone())
    if _shape(got) != (3, 3):
        return f"Q is (batch, actions), (3, 3) here; yours has the shape {_shape(got)}."
    mean = A.mean(dim=1, keepdim=True)
    right = V + A - mean
    if _same(got, right):
        return None
    mistakes = [
        (V + A, "nothing is subtracted: V could be anything, since A can make up for it."),
        (V + A - A.max(dim=1, keepdim=True).values, "that is the other form, equation 8 of Wang et "
                                                    "al.: it subtracts the largest advantage. Here "
                                                    "it is the mean, equation 9."),
        (V + A - A.mean(), "you subtract the mean of the whole minibatch, so Q of one state depends "
                           "on which others were drawn: take the mean over the actions alone."),
        (V + A - A.mean(dim=0), "you subtract the mean over the minibatch; take it over the actions, "
                                "the last axis."),
        (V + A - A.mean(dim=1), "the mean of each row is subtracted from a column: keep its axis "
                                "(`keepdim=True`)."),
        (V[:, 0] + A - mean, "each V is added to a column: leave it (batch, 1)."),
        (V + A + mean, "the mean is subtracted, not added."),
        (V + A - A.sum(dim=1, keepdim=True), "that is the sum of the advantages, not their mean."),
        (A - mean, "where is V?"),
    ]  # fmt: skip
    return _named(got, mistakes, f"it is {right.tolist()}, yours is {np.asarray(got).tolist()}.")


@checks("04.3")
def _half_life(half_life):
    taus = np.array([0.02, 0.2])
    right = np.log(0.5) / np.log(1 - taus)
    got = np.array([float(half_life(tau)) for tau in taus.tolist()])
    if _same(got, right):
        return None
    mistakes = [
        *((rounding(right), "right but for the rounding: leave the fraction.")
          for rounding in (np.ceil, np.round, np.floor)),
        (0.5 / taus, "each update takes the share τ of what is *left* of the difference, so it does "
                     "not shrink by the same amount each time."),
        (1 / taus, "after 1/τ updates about a third is left; one half comes earlier."),
        (np.log(2) / taus, "nearly: that is the limit of small τ, where 1 − τ is as good as exp(−τ)."),
        (-right, "both logarithms are negative, so their ratio is not."),
        (1 / right, "upside down."),
        (np.log(0.5) / np.log(taus), "one update leaves 1 − τ of the difference, not τ."),
    ]  # fmt: skip
    left = 100 * (1 - taus[1]) ** got[1]
    return _named(got, mistakes, f"with τ = 0.2, {left:.3g} % is left after {got[1]:.3g} updates.")


@checks("04.4")
def _n_step_target(n_step_target):
    discount, next_value = 0.9, 10.0
    windows = [([1.0, 3.0, 2.0], False), ([1.0, 3.0, 2.0], True)]
    windows += [([1.0, 3.0, 2.0, 0.0, 5.0], False), ([1.0, 3.0], True), ([4.0], False)]
    for rewards, terminated in windows:
        got = float(n_step_target(list(rewards), terminated, next_value, discount))
        k = len(rewards)
        powers = discount ** np.arange(k)
        ahead = powers @ rewards
        value = 0.0 if terminated else next_value
        right = ahead + discount**k * value
        if np.isclose(got, right):
            continue
        mistakes = [
            (ahead + discount**k * next_value, "after termination nothing follows: the rewards are "
                                               "all there is."),
            (ahead, "the value of what comes after the window is missing."),
            (ahead + value, "the value after the window lies k steps ahead: it is discounted by γᵏ."),
            *((ahead + discount**power * value, "off by one: the first reward has γ⁰, the last of k "
                                                "has γᵏ⁻¹, and the value after them γᵏ.")
              for power in (k - 1, k + 1)),
            (ahead + discount * value, "γ is the discount of one step; the value lies k steps ahead."),
            (ahead + discount**3 * value, f"this window has {k} rewards, and you discount the value "
                                          "by γ³: the exponent is the number of rewards."),
            (sum(rewards) + discount**k * value, "the rewards are not discounted: each comes a step "
                                                 "later than the one before."),
            (sum(rewards) + value, "nothing is discounted."),
            *((discount * ahead + discount**power * value, "the first reward is not discounted: it "
                                                           "comes with the step itself.")
              for power in (k, k + 1)),
            (powers[::-1] @ rewards + discount**k * value, "back to front: the *first* reward counts "
                                                           "in full."),
            (0.0, "termination cuts off what follows, not the rewards."),
        ]  # fmt: skip
        return _named(
            got,
            mistakes,
            f"for the rewards {rewards}, {terminated = }, {next_value = :g} and γ = {discount} it is "
            f"{right:.4g}, yours is {got:.4g}.",
        )
    return None


@checks("04.5")
def _standard_error(standard_error):
    a = np.array([182.0, 95.0, 140.0, 200.0, 61.0, 168.0, 120.0, 188.0])
    b = np.array([160.0, 90.0, 131.0, 171.0, 66.0, 150.0, 104.0, 179.0])
    n, differences = len(a), a - b
    got = standard_error(a.copy(), b.copy())
    if _shape(got) != ():
        return f"one number for all pairs; yours has the shape {_shape(got)}."
    spread = differences.std(ddof=1)
    right = spread / n**0.5
    if _same(got, right):
        return None
    mistakes = [
        *((((a.var(ddof=ddof) + b.var(ddof=ddof)) / n) ** 0.5, "you add the variances of the arms, as "
                                                               "if the runs were no pairs: take the "
                                                               "differences first.")
          for ddof in (0, 1)),
        (differences.std() / n**0.5, "divided by n, the variance is too small on average, for the mean "
                                     "was fitted to the same runs: divide by n − 1 (`ddof=1`)."),
        *((differences.std(ddof=ddof), "so much does a single pair scatter; their mean scatters less, "
                                       "by √n.")
          for ddof in (0, 1)),
        (spread / n, "the mean of n pairs scatters less by √n, not by n."),
        (right**2, "that is the variance of the mean; take the square root."),
        (differences.mean(), "that is the mean difference; how far off may it be?"),
        (np.abs(differences).std(ddof=1) / n**0.5, "leave the differences their signs."),
        (1.96 * right, "that is half the width of a 95 % interval; return the standard error alone."),
        ((a.std(ddof=1) - b.std(ddof=1)) / n**0.5, "the error of a difference is not the difference "
                                                   "of two errors."),
    ]  # fmt: skip
    return _named(got, mistakes, f"for eight pairs it is {right:.4g}, yours is {got:.4g}.")


# Notebook 05: Atari


@checks("05.1")
def _max_and_skip(max_and_skip):
    # No two pixels are the same, and most sums of two exceed 255.
    frames = (np.arange(24) * 73 % 256).astype(np.uint8).reshape(4, 3, 2)
    rewards = np.array([4.0, 0.0, 5.0, 2.0])
    given = frames.copy()
    seen, reward = max_and_skip(given, rewards.copy())
    if not np.array_equal(given, frames):
        return "it changes the frames; work on a copy."
    if _shape(seen) != (3, 2):
        return f"the agent sees one screen, (3, 2) here; yours has the shape {_shape(seen)}."
    seen, last_two = np.asarray(seen), frames[-2:]
    right = last_two.max(axis=0)
    mistakes = [
        (frames[-1], "that is the last frame alone: it may lack what flickers, drawn only in every "
                     "other frame."),
        (frames[-2], "that is the frame before the last alone."),
        (frames[:2].max(axis=0), "those are the first two frames; take the last two, the newest."),
        (frames.max(axis=0), "you take the maximum of all four frames: whatever moves leaves a "
                             "trail. Two are enough against flicker."),
        *((values.mean(axis=0), "that is the mean: what is not in every frame would be seen dimly. "
                                "Take the maximum of the last two.")
          for values in (frames, last_two)),
        *((total, "you add the two frames: what is in both would be twice as bright, and uint8 "
                  "begins anew after 255.")
          for total in (frames[-2] + frames[-1], last_two.sum(axis=0))),
        (last_two.min(axis=0), "that is the minimum: what flickers would never be seen."),
    ]  # fmt: skip
    if not _same(seen, right):
        return _named(seen, mistakes, f"the screen is {right.tolist()}, yours is {seen.tolist()}.")
    if seen.dtype != np.uint8:
        return f"the right screen, but as {seen.dtype}: leave it uint8, one byte a pixel."
    if _same(reward, rewards.sum()):
        return None
    clipped = "they are clipped later, where one learns from them."
    mistakes = [
        (rewards[-1], "the last frame's alone is too little, points may be scored in any frame."),
        (rewards.mean(), "they are added up; the mean would divide every score by 4."),
        (rewards.max(), "the maximum is for the pixels; rewards are added up."),
        (rewards[-2:].sum(), "all four count, only the screen is made of the last two."),
        (rewards.clip(-1, 1).sum(), clipped),
        (1.0, clipped),
    ]
    otherwise = f"of {rewards.tolist()} the step's is {rewards.sum():g}, yours is {reward}."
    return "the screen is right. But the rewards: " + _named(reward, mistakes, otherwise)


@checks("05.2")
def _stack_numbers(stack_numbers):
    cases = ((10, 4, 3, 4), (10, 2, 3, 4), (3, 2, 3, 4), (9, 1, 1, 4), (40, 5, 6, 6))
    for newest, depth, environments, stack in cases:

        def numbers(newest=newest, depth=depth, stride=environments, stack=stack):
            backs = range(stack - 1, -1, -1)
            return [newest - back * stride if back < depth else -1 for back in backs]

        got, right = list(stack_numbers(newest, depth, environments, stack)), numbers()
        if _same(got, right):
            continue
        padding, own = right[:-depth], right[-depth:]
        newest_first = "the newest comes first in yours: the stack begins with the oldest."
        off_by_one = (
            "off by one: the stack ends with the newest frame, and `depth` counts it, so the first "
            "one of the episode is depth − 1 steps back."
        )
        mistakes = [
            (own, "right, but without the black frames: a stack always has `stack` numbers."),
            (numbers(stack=4), f"asked for a stack of {stack}, you return one of 4."),
            (numbers(stride=1), "you step back by 1, to frames of other environments: as "
                                f"{environments} take turns, one's own are {environments} apart."),
            (numbers(depth=stack), "you look back beyond the beginning, at frames of the episode "
                                   f"before: this one has seen {depth} so far."),
            (own + padding, "the black frames are at the wrong end: they come before the others."),
            *((each[::-1], newest_first) for each in (right, own + padding)),
            (own[:1] * len(padding) + own, "you repeat the episode's first frame, as Gymnasium "
                                           "does by default: here the missing ones are black, −1."),
            ([0] * len(padding) + own, "0 is the number of a frame; a black one is −1."),
            ([number or -1 for number in right], "0 is the number of a frame, too."),
            *((numbers(newest + shift, depth + more), off_by_one)
              for shift in (-environments, 0, environments) for more in (-1, 0, 1)),
        ]  # fmt: skip
        return _named(
            got,
            mistakes,
            f"for {newest = }, {depth = }, {environments = } and {stack = } it is {right}, "
            f"yours is {got}.",
        )
    return None


@checks("05.3")
def _gigabytes(gigabytes):
    for transitions, frame, stack in ((1_000_000, 84 * 84, 4), (50_000, 80 * 60, 3)):
        for single_frames, right in ((False, 2 * stack), (True, 1)):
            got = float(gigabytes(transitions, single_frames, frame, stack))
            frames = got / (transitions * frame / 1e9)  # for each transition
            if _same(frames, right):
                continue
            if single_frames:
                mistakes = [
                    (2, "counted twice: the newest frame of a next observation is that of the "
                        "following observation, and each is held once."),
                    *((count, "a frame that is held once serves every stack that it is in: no "
                              "factor for stacks is left.")
                      for count in (stack, stack + 1, 2 * stack)),
                ]  # fmt: skip
            else:
                mistakes = [
                    (stack, "the next observation is missing: each transition holds two stacks."),
                    (2, f"an observation is a stack of {stack} frames."),
                    (1, f"that is one frame for each transition; it holds two stacks of {stack}."),
                    (stack + 1, "the two stacks share frames, but each has its own copy of them."),
                    (2 * 4, f"here a stack has {stack} frames, not 4: use the argument."),
                ]
            mistakes += [
                (right * 4, "four bytes a pixel is float32; uint8 is one."),
                (right * 84 * 84 / frame, f"here a frame has {frame} pixels: use the argument."),
                (right * 1e9 / 2**30, "that is in GiB, 2**30 bytes; the question is in 10**9."),
                (right * 1e9, "those are bytes; divide by 10**9."),
                (right * 1e3, "those are millions of bytes; divide by 10**9."),
            ]
            return _named(
                frames,
                mistakes,
                f"for {transitions = }, {single_frames = }, {frame = } and {stack = } it is "
                f"{right * transitions * frame / 1e9:.4g}, yours is {got:.4g}.",
            )
    return None


@checks("05.4")
def _learning_view(learning_view):
    always = "when the game is over, so is the episode, whatever the lives say."
    ends = [
        (3, 3, False, False, "no life is lost and the game is not over: the episode goes on."),
        (3, 2, False, True, "a lost life ends an episode."),
        (2, 3, False, False, "a life is gained there: episodes end with fewer lives than before."),
        (1, 0, False, False, "the game is about to be over, and with it the episode: if 0 lives "
                             "end it, too, one end becomes two."),
        (0, 0, False, False, "a game without lives, such as Pong, shows 0 all the time: no end."),
        (1, 0, True, True, always),
        (0, 0, True, True, always),
        (3, 3, True, True, always),
    ]  # fmt: skip
    for lives_before, lives, over, ended, sentence in ends:
        for reward in (4.0, -7.0, 0.5, -0.25, 0.0):
            clipped, terminated = learning_view(reward, lives_before, lives, over)
            right = min(max(reward, -1.0), 1.0)
            mistakes = [
                (reward, "nothing is clipped there: the limits are −1 and 1, and both count."),
                (np.sign(reward), "that is the sign. For whole points it is the same, but clipping "
                                  "leaves what lies between −1 and 1 as it is."),
                (max(right, 0.0), "points can be lost, too: the lower limit is −1, not 0."),
                (0.0, "the end of an episode does not take its last reward away."),
            ]  # fmt: skip
            if not _same(clipped, right):
                otherwise = f"a reward of {reward:g} is learned from as {right:g}, not {clipped}."
                return _named(clipped, mistakes[: 3 + ended], otherwise)
            if bool(terminated) != ended:
                return f"{lives_before = }, {lives = }, {over = }: {sentence}"
    return None


@checks("05.5")
def _output_size(output_size):
    def fit(size, kernel, stride):
        return (size - kernel) // stride + 1

    cases = (84, [(8, 4), (4, 2), (3, 1)]), (42, [(5, 2), (3, 2), (3, 2)]), (50, [(6, 3)])
    for size, layers in cases:

        def after(step, size=size, layers=layers):
            return functools.reduce(lambda size, layer: step(size, *layer), layers, size)

        given = list(layers)
        got, right = output_size(size, given), after(fit)
        if given != layers:
            return "it changes the list of layers; it should only read it."
        if _same(got, right) and isinstance(got, int | np.integer):
            continue
        not_whole = "a size is a whole number: divide by `//`, which leaves out what does not fit."
        no_kernel = (
            "where is the kernel? Without padding it stays inside of the picture, and its corner "
            "can move by size − kernel pixels."
        )
        mistakes = [
            (right, not_whole),
            (after(lambda size, kernel, stride: (size - kernel) / stride + 1), not_whole),
            (after(lambda size, kernel, stride: (size - kernel) // stride),
             "the + 1 is missing: the kernel has a place before it takes its first step."),
            (after(lambda size, kernel, stride: (size - kernel + 1) // stride),
             "the + 1 belongs after the division: it counts the kernel's first place."),
            (after(lambda size, kernel, stride: -(-(size - kernel) // stride) + 1),
             "you round up: a step that would carry the kernel over the edge is not taken."),
            (after(lambda size, kernel, stride: size // stride), no_kernel),
            (after(lambda size, kernel, stride: -(-size // stride)), no_kernel),
            (after(lambda size, kernel, stride: fit(size, stride, kernel)),
             "kernel and stride are swapped: a layer is (kernel, stride)."),
            (after(fit, layers=layers[:1]), "that is the size after the first layer; go on."),
            (after(fit, layers=layers[-1:]), "each layer gets the size that the one before has "
                                             "left, not that of the picture."),
            (after(fit, layers=layers[::-1]), "the layers are applied in the wrong order."),
        ]  # fmt: skip
        return _named(got, mistakes, f"{size} pixels through {layers} leave {right}, not {got}.")
    return None
