"""The exercises of notebook 00: right answers of any form pass, wrong ones hear their mistake."""

import itertools

import numpy as np
import pytest


def copies_counted(n, state):
    """Goes through all sequences of actions: those that take the right one up to the state."""
    sequences = itertools.product((0, 1), repeat=n)
    return sum(all(each[:state]) and each[state] for each in sequences)


def td_error(q, state, action, reward, next_state, discount):
    following = 0.0 if next_state == -1 else q[next_state].max()
    return reward + discount * following - q[state, action]


def with_following(value):
    """`td_error` with another value of the next state, given its row of q."""

    def answer(q, s, a, r, s2, g):
        return r + (0.0 if s2 == -1 else g * value(q[s2])) - q[s, a]

    return answer


def with_end(is_end):
    """`td_error` with another end, given (reward, next_state)."""

    def answer(q, s, a, r, s2, g):
        return r + (0.0 if is_end(r, s2) else g * q[s2].max()) - q[s, a]

    return answer


def updated_in_place(q, state, action, reward, next_state, discount):
    q[state, action] += 0.25 * (error := td_error(q, state, action, reward, next_state, discount))
    return error


def ranks(td_errors):
    order = np.argsort(-np.abs(td_errors))
    found = np.empty(len(td_errors))
    found[order] = np.arange(1, len(td_errors) + 1)
    return found


def normalised(p):
    return p / p.sum()


def with_ranks(ranks):
    return lambda td_errors, alpha: normalised(ranks(td_errors) ** -alpha)


def sorted_in_place(td_errors, alpha):
    np.abs(td_errors, out=td_errors)
    return with_ranks(ranks)(td_errors, alpha)


def ranks_by_counting(td_errors, alpha):
    sizes = [abs(error) for error in td_errors]
    p = [(1 + sum(other > size for other in sizes)) ** -alpha for size in sizes]
    return tuple(share / sum(p) for share in p)


RIGHT = [
    ("00.1", lambda n, state: 2 ** (n - 1 - state)),
    ("00.1", lambda n, state: 1 << n - state - 1),
    ("00.1", lambda n, state: 2.0**n / 2 ** (state + 1)),
    ("00.1", lambda n, state: np.array(2) ** (n - 1 - state)),
    ("00.1", copies_counted),
    ("00.2", td_error),
    ("00.2", lambda q, s, a, r, s2, g: np.float32(r + g * (s2 >= 0) * max(q[s2]) - q[s][a])),
    ("00.2", lambda *given: td_error(given[0].astype(np.float32), *given[1:])),
    ("00.2", with_following(lambda row: max(row.tolist()))),
    ("00.3", with_ranks(ranks)),
    ("00.3", with_ranks(lambda d: np.argsort(np.argsort(-np.abs(d))) + 1.0)),
    ("00.3", ranks_by_counting),
    ("00.3", lambda d, a: with_ranks(ranks)(d, a).astype(np.float32)),
    ("00.3", lambda d, a: (p for p in with_ranks(ranks)(d, a))),
]

WRONG = [
    ("00.1", lambda n, state: 2**state, "the later a state"),
    ("00.1", lambda n, state: 2 ** (n - state), "Half of them take one action"),
    ("00.1", lambda n, state: 2 ** (n - 2 - state), "off by one"),
    ("00.1", lambda n, state: 2**n, "the number of all sequences"),
    ("00.1", lambda n, state: n - 1 - state, "each of them doubles"),
    ("00.1", lambda n, state: 2 * (n - 1 - state), "raise 2 to the number"),
    ("00.1", lambda n, state: 2 ** (n + 1) - 2, "the whole memory"),
    ("00.1", lambda n, state: {5: {0: 16, 2: 4, 4: 1}, 8: {3: 16}}[n][state], "KeyError: 6"),
    ("00.1", lambda n, state: {5: 16 >> state, 8: 16}.get(n, 0), "it should be 8, yours is 0"),
    ("00.1", lambda n, state: 2 ** (4 - state), "does not change with `n`"),
    ("00.1", lambda n, state: str(2 ** (n - 1 - state)), "without quotation marks"),
    ("00.1", lambda n, state: print(2 ** (n - 1 - state)), "is the `return` missing?"),
    ("00.1", 16, "a function is asked for"),
    ("00.2", lambda *given: -td_error(*given), "the sign is wrong"),
    ("00.2", with_end(lambda r, s2: False), "q[-1] is another state's row"),
    ("00.2", lambda q, s, a, r, s2, g: td_error(q, s, a, g * r, s2, g), "the discount belongs"),
    ("00.2", lambda q, s, a, r, s2, g: td_error(q, s, a, g * r, s2, 1.0), "the discount belongs"),
    ("00.2", lambda q, s, a, r, s2, g: td_error(q, s, a, r, s2, 1.0), "is not discounted"),
    ("00.2", lambda q, s, a, r, s2, g: td_error(q, s, a, r, s2, 0.8), "with `discount`"),
    ("00.2", lambda q, s, a, r, s2, g: r - q[s, a], "the next state is missing"),
    (
        "00.2",
        lambda q, s, *rest: td_error(q, s, *rest) + q[s, rest[0]] - q[s].max(),
        "largest Q of",
    ),
    ("00.2", lambda q, s, a, *rest: td_error(q, s, a, *rest) + q[s, a], "that is the target"),
    ("00.2", with_following(np.mean), "the mean Q of the next state"),
    ("00.2", with_following(lambda row: np.abs(row).max()), "no absolute value"),
    ("00.2", with_following(lambda row: max(0, *row)), "nothing cuts it off at 0"),
    ("00.2", with_following(lambda row: row[0]), "the first action"),
    ("00.2", with_following(np.argmax), "*which* action"),
    ("00.2", with_end(lambda r, s2: r == 1), "the end is told by `next_state`"),
    ("00.2", with_end(lambda r, s2: r != 0), "the end is told by `next_state`"),
    ("00.2", with_end(lambda r, s2: s2 <= 0), "state 0 is a state like the others"),
    ("00.2", lambda *given: 0.0 if given[4] == -1 else td_error(*given), "at the end δ is not 0"),
    ("00.2", lambda *given: given[3] if given[4] == -1 else td_error(*given), "at the end Q is"),
    ("00.2", lambda *given: abs(td_error(*given)), "δ keeps its sign"),
    ("00.2", updated_in_place, "it changes `q`"),
    ("00.2", lambda q, s, a, r, s2, g: q[s2 + 5], "IndexError"),
    ("00.2", lambda q, s, a, r, s2: 0.0, "(q, state, action, reward, next_state, discount)"),
    ("00.3", lambda d, a: ranks(d) ** -a, "do not add up to 1"),
    (
        "00.3",
        with_ranks(lambda d: ranks(np.where(d > 0, d, 0.01 / -d))),
        "take |δ| before you sort",
    ),
    ("00.3", with_ranks(lambda d: np.argsort(np.argsort(-d)) + 1.0), "take |δ| before you sort"),
    ("00.3", with_ranks(lambda d: ranks(1 / d)), "rank 1 to the smallest"),
    ("00.3", with_ranks(lambda d: np.argsort(-np.abs(d)) + 1.0), "argsort tells which transition"),
    ("00.3", with_ranks(lambda d: np.argsort(np.abs(d)) + 1.0), "argsort tells which transition"),
    ("00.3", with_ranks(lambda d: np.argsort(d) + 1.0), "argsort tells which transition"),
    ("00.3", with_ranks(lambda d: np.arange(1.0, len(d) + 1)), "the order of the ranks"),
    ("00.3", with_ranks(lambda d: ranks(d) - 1), "ranks begin with 1"),
    ("00.3", lambda d, a: with_ranks(ranks)(d, -a), "the exponent is −α"),
    ("00.3", lambda d, a: with_ranks(ranks)(d, 1.0), "where is α"),
    ("00.3", lambda d, a: with_ranks(ranks)(d, 0.7), "does not change with `alpha`"),
    ("00.3", lambda d, a: normalised(np.abs(d) ** a), "that is proportional replay"),
    ("00.3", lambda d, a: with_ranks(ranks)(d, a)[:, None], "(6, 1), a column"),
    ("00.3", lambda d, a: 0.25, "should have 6 numbers; yours has 1"),
    ("00.3", sorted_in_place, "it changes `td_errors`"),
    ("00.3", lambda d, a: set(with_ranks(ranks)(d, a)), "a set has no order"),
]


@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_right_answers_pass(said, name, answer):
    assert said(name, answer) == (True, f"✓ {name}: right.\n")


@pytest.mark.parametrize(("name", "answer", "mistake"), WRONG)
def test_wrong_answers_hear_their_mistake(said, name, answer, mistake):
    right, words = said(name, answer)
    assert not right
    assert mistake in words
