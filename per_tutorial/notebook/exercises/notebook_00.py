"""Notebook 00, the Blind Cliffwalk: copies of a transition, the TD error, ranks."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from per_tutorial.notebook.exercises.answers import cases_of
from per_tutorial.notebook.exercises.checking import checks
from per_tutorial.notebook.exercises.comparing import Function, compare

Array = NDArray[np.float64]

# 00.1: how many copies of each transition of a state the memory holds ---------------------------


def copies(n: int, state: int) -> int:
    return 2 ** (n - 1 - state)


SIZES = [(5, 4), (5, 0), (8, 3), (5, 2), (6, 2), (7, 6), (3, 1), (10, 2), (9, 5)]

COPIES_MISTAKES = [
    (lambda n, s: 2**s,
     "that grows along the walk; the later a state, the fewer sequences reach it."),
    (lambda n, s: 2 ** (n - s),
     "so many sequences reach the state. Half of them take one action there, and half the other."),
    (lambda n, s: 2.0 ** (n - 2 - s),
     "off by one: the last state is reached by two sequences, so there is one copy of each of "
     "its transitions."),
    (lambda n, s: 2**n, "that is the number of all sequences; only some of them reach the state."),
    (lambda n, s: 2 ** (n - 1),
     "that is right for state 0 alone: a later state is reached by fewer sequences."),
    (lambda n, s: 2 ** (n + 1) - 2, "that is the size of the whole memory."),
    (lambda n, s: n - 1 - s,
     "that is the number of actions that are still free; each of them doubles the number of "
     "copies."),
    (lambda n, s: 2 * (n - 1 - s),
     "each free action *doubles* the number: raise 2 to the number of free actions."),
    (lambda n, s: (n - 1 - s) ** 2,
     "the other way round: 2 is raised to the number of free actions."),
    (lambda n, s: 1, "there is one copy at the last state alone."),
]  # fmt: skip


@checks("00.1")
def check_copies(answer: object) -> str | None:
    return compare(answer, copies, cases_of("n state", SIZES), COPIES_MISTAKES)


# 00.2: the TD error of one transition ------------------------------------------------------------


def td_error(
    q: Array, state: int, action: int, reward: float, next_state: int, discount: float
) -> float:
    following = 0.0 if next_state == -1 else q[next_state].max()
    return reward + discount * following - q[state, action]


def with_following(value: Function) -> Function:
    """`td_error` with another value of the next state, given (its row of q, action)."""

    def wrong(q, state, action, reward, next_state, discount):
        following = 0.0 if next_state == -1 else value(q[next_state], action)
        return reward + discount * following - q[state, action]

    return wrong


def with_end(is_end: Function) -> Function:
    """`td_error` with another sign of the end, given (reward, next_state)."""

    def wrong(q, state, action, reward, next_state, discount):
        following = 0.0 if is_end(reward, next_state) else q[next_state].max()
        return reward + discount * following - q[state, action]

    return wrong


def with_estimate(estimate: Function) -> Function:
    """`td_error` with something else subtracted, given (q, state, action)."""

    def wrong(q, state, action, *rest):
        return td_error(q, state, action, *rest) + q[state, action] - estimate(q, state, action)

    return wrong


Q_TABLES = [
    np.array([[0.1, 0.2], [0.5, 0.3], [-0.4, -0.2]]),
    np.array([[0.35, 0.62], [0.15, -0.44], [-0.7, -0.9], [0.81, 0.27], [0.05, 0.4]]),
]

# (table, state, action, reward, next_state, discount). Rewards come at the end and elsewhere, and
# state 0 is a next state, too.
TRANSITIONS = [
    (0, 0, 1, 0.0, 1, 0.8), (0, 0, 1, 0.0, 1, 0.5), (0, 1, 0, 0.0, 2, 0.5), (0, 2, 1, 1.0, -1, 0.5),
    (0, 1, 1, 0.0, -1, 0.5), (0, 0, 0, 1.0, 1, 0.8), (0, 2, 0, 0.5, 0, 0.9), (0, 2, 0, 0.0, 0, 0.9),
    (1, 3, 0, -2.0, 4, 0.7), (1, 4, 1, 3.0, -1, 0.7), (1, 1, 1, 0.0, 2, 0.6),
    (1, 4, 0, 1.0, 3, 1.0),
]  # fmt: skip

ABSOLUTE_END = (
    "the end is told by `next_state` −1 alone; any transition may bring a reward or none."
)

ONLY_THE_FUTURE = (
    "the discount belongs to the value of the next state alone; the reward and the old Q count in "
    "full."
)

TD_ERROR_MISTAKES = [
    (lambda *given: -td_error(*given),
     "the sign is wrong: δ is what the transition says, minus what Q said."),
    (with_end(lambda reward, next_state: False),
     "next_state −1 means the end: nothing follows, and q[-1] is another state's row."),
    (lambda q, s, a, r, s2, g: td_error(q, s, a, g * r, s2, 1.0), ONLY_THE_FUTURE),
    (lambda q, s, a, r, s2, g: td_error(q, s, a, g * r, s2, g), ONLY_THE_FUTURE),
    (lambda q, s, a, r, s2, g: g * td_error(q, s, a, r, s2, g), ONLY_THE_FUTURE),
    (lambda q, s, a, r, s2, g: g * td_error(q, s, a, r, s2, 1.0), ONLY_THE_FUTURE),
    (lambda q, s, a, r, s2, g: td_error(q, s, a, r, s2, 1.0),
     "the value of the next state is not discounted."),
    (lambda q, s, a, r, s2, g: r - q[s, a], "the value of the next state is missing."),
    (lambda q, s, a, r, s2, g: td_error(q, s, a, 0.0, s2, g), "the reward is missing."),
    (with_estimate(lambda q, s, a: q[s].max()),
     "you subtract the largest Q of the state; the estimate is the Q of the action that was "
     "taken."),
    (with_estimate(lambda q, s, a: q[s, 1 - a]), "you subtract the Q of the other action."),
    (with_estimate(lambda q, s, a: q[s].mean()),
     "you subtract the mean Q of the state; the estimate is the Q of the action that was taken."),
    (with_estimate(lambda q, s, a: 0.0),
     "that is the target. The TD error is the target minus the Q of the action that was taken."),
    (with_following(lambda row, a: row.mean()),
     "you take the mean Q of the next state; the target takes the largest."),
    (with_following(lambda row, a: row.min()),
     "you take the smallest Q of the next state; the target takes the largest."),
    (with_following(lambda row, a: row.sum()),
     "you add up the Q-values of the next state; the target takes the largest."),
    (with_following(lambda row, a: row[a]),
     "you take the Q of the same action in the next state; the target takes the largest."),
    (with_following(lambda row, a: row[0]),
     "you take the Q of the first action; the target takes the largest."),
    (with_following(lambda row, a: row[1]),
     "you take the Q of the second action; the target takes the largest."),
    (with_following(lambda row, a: row.argmax()),
     "argmax says *which* action has the largest Q; the target takes that Q itself."),
    (with_following(lambda row, a: np.abs(row).max()),
     "Q may be negative, and the largest Q is then negative, too: no absolute value."),
    (with_following(lambda row, a: max(0.0, row.max())),
     "the largest Q of a state may be negative: nothing cuts it off at 0."),
    (with_end(lambda reward, next_state: reward == 1 or next_state == -1), ABSOLUTE_END),
    (with_end(lambda reward, next_state: reward == 1), ABSOLUTE_END),
    (with_end(lambda reward, next_state: reward > 0), ABSOLUTE_END),
    (with_end(lambda reward, next_state: reward > 0 or next_state == -1), ABSOLUTE_END),
    (with_end(lambda reward, next_state: reward != 0), ABSOLUTE_END),
    (with_end(lambda reward, next_state: reward != 0 or next_state == -1), ABSOLUTE_END),
    (with_end(lambda reward, next_state: next_state <= 0),
     "state 0 is a state like the others: only −1 means the end."),
    (lambda q, s, a, r, s2, g: 0.0 if s2 == -1 else td_error(q, s, a, r, s2, g),
     "at the end δ is not 0: the reward comes, and Q said something, too."),
    (lambda q, s, a, r, s2, g: r if s2 == -1 else td_error(q, s, a, r, s2, g),
     "at the end Q is subtracted, too: δ is the reward minus the Q of the action that was taken."),
    (lambda *given: abs(td_error(*given)), "δ keeps its sign."),
    (lambda *given: td_error(*given) ** 2, "δ is the difference itself, not its square."),
    (lambda q, s, a, *rest: q[s, a] + td_error(q, s, a, *rest) / 4,
     "that is Q after the update; the TD error alone is asked for."),
]  # fmt: skip


@checks("00.2")
def check_td_error(answer: object) -> str | None:
    rows = [(Q_TABLES[q], *rest) for q, *rest in TRANSITIONS]
    cases = cases_of("q state action reward next_state discount", rows)
    return compare(answer, td_error, cases, TD_ERROR_MISTAKES)


# 00.3: the probabilities of rank-based replay ----------------------------------------------------


def shares(ranks: NDArray[Any], alpha: float) -> Array:
    """Probabilities in proportion to rank^(−α)."""
    p = ranks.astype(float) ** -alpha
    return p / p.sum()


def ranks_of(keys: Array) -> NDArray[np.int64]:
    """Rank 1 for the smallest key."""
    return np.argsort(np.argsort(keys)) + 1


def rank_probabilities(td_errors: Array, alpha: float) -> Array:
    return shares(ranks_of(-np.abs(td_errors)), alpha)


def with_ranks(ranks: Function) -> Function:
    """`rank_probabilities` with other ranks, given the TD errors."""
    return lambda td_errors, alpha: shares(ranks(td_errors), alpha)


def proportional(td_errors: Array, alpha: float) -> Array:
    p = np.abs(td_errors) ** alpha
    return p / p.sum()


# No two errors have the same size. Sorted by size or by value they come in different orders, and no
# order is its own inverse: so `argsort` never looks like the ranks.
TD_ERRORS = [
    [0.5, -3.0, 0.1, 1.0, -0.7, 2.0],
    [-0.2, 1.5, 0.9, -4.0, 2.5],
    [2.2, 0.3, -1.1, -0.6, 5.0, -0.05, 0.8, -1.9, 0.4],
]

SIZE_FIRST = "the largest error in *size* has rank 1: take |δ| before you sort."
ONE_SORT = (
    "argsort tells which transition has a given rank, not which rank a transition has: write the "
    "ranks to the places that argsort returns."
)

RANK_MISTAKES = [
    (lambda d, a: ranks_of(-np.abs(d)).astype(float) ** -a, "they do not add up to 1 yet."),
    (lambda d, a: ranks_of(-np.abs(d)), "those are the ranks; go on to the probabilities."),
    (with_ranks(lambda d: ranks_of(-d)), SIZE_FIRST),
    (with_ranks(ranks_of), SIZE_FIRST),
    (with_ranks(lambda d: ranks_of(np.abs(d))),
     "you have given rank 1 to the smallest |δ|; it belongs to the largest."),
    *((with_ranks(lambda d, key=key: np.argsort(key(d)) + 1), ONE_SORT)
      for key in (lambda d: -np.abs(d), np.abs, lambda d: -d, lambda d: d)),
    (with_ranks(lambda d: np.arange(1, len(d) + 1)),
     "these are in the order of the ranks; put them into the order of the errors."),
    (with_ranks(lambda d: ranks_of(-np.abs(d)) - 1),
     "ranks begin with 1: 0 has no negative power."),
    (with_ranks(lambda d: np.argsort(-np.abs(d))),
     "ranks begin with 1, and argsort alone does not tell which rank a transition has."),
    (with_ranks(lambda d: ranks_of(-np.abs(d)) + 1), "ranks begin with 1, yours with 2."),
    (lambda d, a: rank_probabilities(d, -a),
     "the exponent is −α: a high rank number means a small probability."),
    (lambda d, a: rank_probabilities(d, 1.0), "where is α? It is the exponent, not always 1."),
    (lambda d, a: rank_probabilities(d, 1.0) ** a,
     "raise to α first, then divide by the sum: yours do not add up to 1."),
    (lambda d, a: rank_probabilities(d, a * a), "α is applied twice."),
    (proportional, "that is proportional replay; here only the rank of |δ| counts."),
    (lambda d, a: np.ones(len(d)) / len(d), "that is uniform replay."),
]  # fmt: skip


@checks("00.3")
def check_rank_probabilities(answer: object) -> str | None:
    rows = [(np.array(errors), alpha) for errors in TD_ERRORS for alpha in (0.7, 0.4, 1.0)]
    cases = cases_of("td_errors alpha", rows)
    return compare(answer, rank_probabilities, cases, RANK_MISTAKES)
