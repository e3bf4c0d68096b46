"""The exercises of notebook 08: right answers of any form pass, wrong ones hear their mistake."""

import numpy as np
import pytest
import torch


def smallest_kappa(largest, times, alpha):
    return largest / times ** (1 / alpha)


def kappa_by_halving(largest, times, alpha):
    low, high = 0.0, largest
    for _ in range(200):
        middle = (low + high) / 2
        too_often = (largest / middle) ** alpha > times
        low, high = (middle, high) if too_often else (low, middle)
    return high


def probabilities(errors, alpha):
    p = np.abs(errors) ** alpha
    return p / p.sum()


def slopes_of_per(errors, alpha, beta):
    return (len(errors) * probabilities(errors, alpha)) ** (1 - beta) * errors


def slopes_step_by_step(errors, alpha, beta):
    N, P = len(errors), probabilities(errors, alpha)
    weights = (N * P) ** -beta
    pull = P * weights * errors
    return pull / (1 / N)


def slopes_one_by_one(errors, alpha, beta):
    total = sum(abs(error) ** alpha for error in errors)
    share = [len(errors) * abs(error) ** alpha / total for error in errors]
    return [x ** (1 - beta) * error for x, error in zip(share, errors, strict=True)]


def slopes_in_place(errors, alpha, beta):
    errors *= (len(errors) * probabilities(errors, alpha)) ** (1 - beta)
    return errors


def reliabilities_of_two(errors, ends, share=lambda s: np.cumsum(s) / s.sum()):
    R = np.ones(len(errors))
    for environment in (0, 1):
        places, begin = np.arange(environment, len(errors), 2), 0
        for end in np.flatnonzero(ends[places]):
            episode = places[begin : end + 1]
            R[episode] = share(np.abs(errors[episode]))
            begin = end + 1
    return R


def with_share(share):
    return lambda errors, ends: reliabilities_of_two(errors, ends, share)


def reliabilities_backwards(errors, ends):
    """From the newest to the oldest, as one meets the ends."""
    R = [1.0] * len(errors)
    for step in range(len(errors)):
        following = range(step, len(errors), 2)
        over = [k for k in following if ends[k]]
        if over:
            begin = max((k + 2 for k in range(step % 2, step, 2) if ends[k]), default=step % 2)
            own = sum(abs(errors[k]) for k in range(begin, over[0] + 1, 2))
            to_come = sum(abs(errors[k]) for k in range(step + 2, over[0] + 1, 2))
            R[step] = 1 - to_come / own
    return R


def reliabilities_of_one(errors, ends):
    R, begin = np.ones(len(errors)), 0
    for end in np.flatnonzero(ends):
        until = np.cumsum(np.abs(errors[begin : end + 1]))
        R[begin : end + 1] = until / until[-1]
        begin = end + 1
    return R


def running_closed(errors, ends):
    closed = ends.copy()
    closed[-2:] = True
    return reliabilities_of_two(errors, closed)


def ends_in_place(errors, ends):
    ends[-2:] = True
    return reliabilities_of_two(errors, ends)


def without_ends(errors, ends):
    R = np.ones(len(errors))
    for environment in (0, 1):
        until = np.cumsum(np.abs(errors[environment::2]))
        R[environment::2] = until / until[-1]
    return R


def signed(errors, ends):
    R = np.ones(len(errors))
    for environment in (0, 1):
        places, begin = np.arange(environment, len(errors), 2), 0
        for end in np.flatnonzero(ends[places]):
            episode = places[begin : end + 1]
            R[episode] = np.cumsum(errors[episode]) / errors[episode].sum()
            begin = end + 1
    return R


def ends_close_both(errors, ends):
    pairs = ends.reshape(-1, 2).any(axis=1)
    return reliabilities_of_two(errors, np.repeat(pairs, 2))


def zero_while_running(errors, ends):
    R = reliabilities_of_two(errors, ends)
    for environment in (0, 1):
        places = np.arange(environment, len(errors), 2)
        last = np.flatnonzero(ends[places])
        R[places[last[-1] + 1 if len(last) else 0 :]] = 0.0
    return R


def laber_huber(errors, chosen, kappa):
    p = np.minimum(np.abs(errors), kappa)
    weights = p.mean() / p[chosen]
    return np.mean(weights * np.clip(errors[chosen], -kappa, kappa))


def laber_by_signs(errors, chosen, kappa):
    return np.minimum(np.abs(errors), kappa).mean() * np.sign(errors[chosen]).mean()


def laber_one_by_one(errors, chosen, kappa):
    p = [min(abs(error), kappa) for error in errors]
    total = 0.0
    for k in chosen:
        total += sum(p) / len(p) / p[k] * max(-kappa, min(kappa, errors[k]))
    return total / len(chosen)


def laber_in_torch(errors, chosen, kappa):
    errors, chosen = torch.tensor(errors), torch.tensor(chosen)
    p = errors.abs().clamp(max=kappa)
    return (p.mean() / p[chosen] * errors[chosen].clamp(-kappa, kappa)).mean()


def with_p(priority, mean=lambda p, chosen: p.mean(), slope=np.clip):
    """LaBER with another priority, mean or slope."""

    def answer(errors, chosen, kappa):
        p = priority(errors, kappa)
        slopes = slope(errors[chosen], -kappa, kappa)
        return np.mean(mean(p, chosen) / p[chosen] * slopes)

    return answer


def cut_off(errors, kappa):
    return np.minimum(np.abs(errors), kappa)


def uncut(errors, kappa):
    return np.abs(errors)


RIGHT = [
    ("08.1", smallest_kappa),
    ("08.1", kappa_by_halving),
    ("08.1", lambda m, t, a: (m**a / t) ** (1 / a)),
    ("08.1", lambda m, t, a: np.exp(np.log(m) - np.log(t) / a)),
    ("08.1", lambda m, t, a: torch.tensor(m) * t ** (-1 / a)),
    ("08.2", slopes_of_per),
    ("08.2", slopes_step_by_step),
    ("08.2", slopes_one_by_one),
    ("08.2", lambda e, a, b: torch.tensor(slopes_of_per(e, a, b))),
    ("08.2", lambda e, a, b: np.sign(e) * np.abs(slopes_of_per(e, a, b))),
    ("08.3", reliabilities_of_two),
    ("08.3", reliabilities_backwards),
    ("08.3", lambda e, d: torch.tensor(reliabilities_of_two(e, d))),
    ("08.3", with_share(lambda s: 1 - (s.sum() - np.cumsum(s)) / s.sum())),
    ("08.4", laber_huber),
    ("08.4", laber_by_signs),
    ("08.4", laber_one_by_one),
    ("08.4", laber_in_torch),
]

WRONG = [
    ("08.1", lambda m, t, a: m / t, "that holds for α = 1"),
    ("08.1", lambda m, t, a: m / t**a, "on the wrong side"),
    ("08.1", lambda m, t, a: m**a / t, "take the root"),
    ("08.1", lambda m, t, a: (m / t) ** (1 / a), "only `times` is raised"),
    ("08.1", lambda m, t, a: m * t ** (1 / a), "upside down"),
    ("08.1", lambda m, t, a: m / (a * t), "not a factor"),
    ("08.1", lambda m, t, a: m, "all are drawn alike"),
    ("08.1", lambda m, t, a: 0.0, "the ratio is ∞"),
    ("08.1", lambda m, t, a: m / t**2, "does not change with `alpha`"),
    ("08.1", lambda m, t, a: [m / t ** (1 / a)], "a single number"),
    ("08.1", lambda m, t, a: str(m / t ** (1 / a)), "is text"),
    ("08.1", lambda m, t, a: 0.063, "always 0.063"),
    ("08.2", lambda e, a, b: slopes_of_per(e, a, b) / len(e), "that is PER's pull"),
    ("08.2", lambda e, a, b: np.abs(slopes_of_per(e, a, b)), "the sign got lost"),
    ("08.2", lambda e, a, b: (len(e) * probabilities(e, a)) ** -b * e, "also *draws* unevenly"),
    ("08.2", lambda e, a, b: len(e) * probabilities(e, a) * e, "without its weights"),
    ("08.2", lambda e, a, b: slopes_of_per(e, a, -b), "the sign of β"),
    ("08.2", lambda e, a, b: slopes_of_per(e, a, 1 - b), "leaves the exponent 1 − β, not β"),
    ("08.2", lambda e, a, b: slopes_of_per(e, a, 2 - b), "not β − 1"),
    ("08.2", lambda e, a, b: slopes_of_per(e, a, 1 - a * (1 - b)), "not applied again"),
    ("08.2", lambda e, a, b: np.abs(e) ** (a * (1 - b)) * e, "right but for a factor"),
    ("08.2", lambda e, a, b: e.copy(), "right for β = 1"),
    ("08.2", lambda e, a, b: slopes_of_per(e, a, b) * e / 2, "its slope is asked for"),
    ("08.2", lambda e, a, b: (len(e) * probabilities(e, a)) ** (1 - b) * np.sign(e), "size of δ"),
    ("08.2", lambda e, a, b: (len(e) * probabilities(e, a)) ** (1 - b), "δ itself is missing"),
    ("08.2", lambda e, a, b: slopes_of_per(e, a, b).mean(), "one slope for each transition"),
    ("08.2", lambda e, a, b: slopes_of_per(e, 0.6, b), "does not change with `alpha`"),
    ("08.2", lambda e, a, b: (len(e) * e**a / (e**a).sum()) ** (1 - b) * e, "that holds NaN"),
    ("08.2", slopes_in_place, "it changes `errors`"),
    ("08.3", reliabilities_of_one, "right for one environment"),
    ("08.3", lambda e, d: reliabilities_of_two(np.maximum(e, 0), d), "errors below zero"),
    ("08.3", lambda e, d: reliabilities_of_two(e * e, d), "not its square"),
    ("08.3", with_share(lambda s: 1 - np.cumsum(s) / s.sum()), "still *to come*"),
    ("08.3", with_share(lambda s: np.cumsum(s[::-1])[::-1] / s.sum()), "backwards"),
    ("08.3", with_share(lambda s: 1 - np.cumsum(s[::-1])[::-1] / s.sum()), "the step's own error"),
    ("08.3", with_share(np.cumsum), "R is a share"),
    ("08.3", with_share(lambda s: s / s.sum()), "the share of the step alone"),
    ("08.3", with_share(lambda s: np.linspace(1 / len(s), 1, len(s))), "that counts steps"),
    ("08.3", signed, "with their signs"),
    ("08.3", ends_close_both, "not that of the other"),
    ("08.3", running_closed, "still runs has R = 1"),
    ("08.3", zero_while_running, "R is 1, not 0"),
    ("08.3", without_ends, "each episode for itself"),
    ("08.3", lambda e, d: np.ones(len(e)), ""),
    ("08.3", lambda e, d: reliabilities_of_two(e, d)[::2], "should have 8 numbers"),
    ("08.3", ends_in_place, "it changes `ends`"),
    ("08.4", with_p(uncut), "chosen by min(|δ|, κ)"),
    ("08.4", with_p(cut_off, slope=lambda d, low, high: d), "cut off at ±κ"),
    ("08.4", with_p(uncut, slope=lambda d, low, high: d), "LaBER with the squared loss"),
    ("08.4", with_p(cut_off, lambda p, c: p[c].mean()), "over *all* candidates"),
    ("08.4", with_p(cut_off, lambda p, c: 1.0), "lazy form"),
    ("08.4", with_p(cut_off, lambda p, c: p[c].min()), "not divided by the largest weight"),
    ("08.4", with_p(cut_off, lambda p, c: p[c] ** 2 / p.mean()), "upside down"),
    ("08.4", with_p(cut_off, lambda p, c: p[c]), "where are the weights"),
    ("08.4", lambda e, c, k: cut_off(e, k).mean(), "the sign got lost"),
    ("08.4", lambda e, c, k: len(c) * laber_huber(e, c, k), "not the sum"),
    ("08.4", lambda e, c, k: abs(laber_huber(e, c, k)), "the whole estimate"),
    ("08.4", lambda e, c, k: -laber_huber(e, c, k), "the sign is the other one"),
    ("08.4", with_p(cut_off, slope=lambda d, low, high: np.minimum(d, high)), "on both sides"),
    ("08.4", lambda e, c, k: np.clip(e, -k, k).mean(), "the chosen ones"),
    ("08.4", lambda e, c, k: laber_huber(e, np.unique(c), k), "chosen twice counts twice"),
    ("08.4", lambda e, c, k: laber_huber(e, c, 1.0), "does not change with `kappa`"),
    ("08.4", lambda e, c, k: laber_huber(e, c, k) * np.ones(len(c)), "a single number"),
]


@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_right_answers_pass(said, name, answer):
    assert said(name, answer) == (True, f"✓ {name}: right.\n")


@pytest.mark.parametrize(("name", "answer", "mistake"), WRONG)
def test_wrong_answers_hear_their_mistake(said, name, answer, mistake):
    right, words = said(name, answer)
    assert not right
    assert mistake in words
