"""Notebook 06, PER in an agent that exists: places in a ring, the loss, several critics, memory."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import mse_loss, smooth_l1_loss

from per_tutorial.notebook.checking.answers import Hint
from per_tutorial.notebook.checking.declaring import AN_INDEX, Array, Function, function_exercise

# 06.1: the row and the column of a transition -----------------------------------------------------


def place(number: int, environments: int, rows: int) -> tuple[int, int]:
    step, column = divmod(number, environments)
    return step % rows, column


function_exercise("06.1", place, "number environments rows", [
    *((number, 4, 10) for number in (0, 1, 5, 22, 39, 40, 43, 107)),
    *((number, 3, 7) for number in (1, 20, 21, 64)),
    *((number, 1, 5) for number in (3, 5, 12)), (107, 6, 10), (107, 4, 11),
], [
    (lambda n, e, rows: (n // e, n % e),
     "after the last row the first is written again: the row needs `% rows`."),
    (lambda n, e, rows: place(n, e, rows)[::-1],
     "in this order, please: the row, then the column."),
    (lambda n, e, rows: (n % rows, n // rows),
     lambda n, e, rows: (n // rows % e, n % rows),
     lambda n, e, rows: (n % rows, n // rows % e),
     "that fills one environment after the other; E transitions come with each step, so divide "
     "the number by `environments`."),
    (lambda n, e, rows: (n % rows, n % e),
     "rows count steps, not transitions: divide by `environments` first."),
    (lambda n, e, rows: (n // rows, n % rows),
     "a row has `environments` columns, not `rows`: divide by `environments`."),
    (lambda n, e, rows: (n % rows // e, n % e),
     "the ring is a ring of steps: divide by `environments` first, then take `% rows`."),
    (lambda n, e, rows: divmod(n % rows, e),
     "the ring holds rows · environments transitions, not `rows`."),
    (lambda n, e, rows: (n // e % (rows // e), n % e),
     "`rows` counts steps already: it is not divided by the number of environments."),
    (lambda n, e, rows: (n // e % (rows + 1), n % e),
     lambda n, e, rows: (n // e % (rows - 1), n % e),
     "the rows are counted from 0: after row rows − 1 comes row 0."),
    (lambda n, e, rows: (n // e - rows * (n // e >= rows), n % e),
     "a number may have gone round the ring more than once: `% rows`."),
    (lambda n, e, rows: (n // e % rows + 1, n % e + 1),
     lambda n, e, rows: (n // e % rows + 1, n % e),
     lambda n, e, rows: (n // e % rows, n % e + 1),
     "rows and columns are counted from 0."),
    (lambda n, e, rows: ((n - 1) // e % rows, (n - 1) % e),
     "the numbers are counted from 0 as well: the first transition has the number 0."),
    (lambda n, e, rows: (min(n // e, rows - 1), n % e),
     "it stays in the last row; a ring begins again with the first."),
    (lambda n, e, rows: (n // e % rows, 0),
     "the column is the environment, the remainder of the division."),
    (lambda n, e, rows: (n / e % rows, n % e),
     "`/` keeps the fraction, and a row is a whole number: use `//`."),
], larger=[(123_456_789, 16, 10_000), (99_999, 7, 1_000)],
   names=["the row", "the column"], dtype=AN_INDEX)  # fmt: skip

# 06.2: the weighted loss in SB3's shapes ----------------------------------------------------------


def each_loss(values: Tensor, targets: Tensor) -> Tensor:
    return smooth_l1_loss(values, targets, reduction="none")


def huber(errors: Tensor) -> Tensor:
    return each_loss(errors, torch.zeros_like(errors))


def per_loss(
    values: Tensor,
    targets: Tensor,
    weights: Tensor,
    terms: Function = lambda errors, weights: weights * huber(errors),
    reduce: Function = torch.mean,
) -> Tensor:
    return reduce(terms(values - targets, weights[:, None]))


TABLE = "(batch, 1) times (batch,) has made a table of (batch, batch)."
TWO_MEANS = (  # the table's mean is the product of the means: the number does not show the cause
    "that is the mean of the weights times the mean of the losses. Weigh each loss before the "
    'mean: `reduction="none"` keeps them apart. If you do: (batch, 1) times (batch,) makes a table '
    "of (batch, batch), so bring both to one shape first."
)
BATCHES = [
    ([0.1, 2.0, -0.4, 1.0], [0.3, -1.5, 0.2, 5.0], [0.9, 0.4, 0.8, 0.1]),
    ([2.0, 0.3, 0.0, 1.2, -3.0], [0.0, 0.5, 0.4, -0.7, 0.1], [0.2, 0.6, 0.9, 0.35, 0.15]),
]

function_exercise("06.2", per_loss, "values targets weights", [
    (torch.tensor(values)[:, None], torch.tensor(targets)[:, None], torch.tensor(weights))
    for values, targets, weights in BATCHES
], [
    (lambda v, t, w: (w * each_loss(v, t)).mean(), TWO_MEANS),
    (lambda v, t, w: (w * each_loss(v, t)).sum(), f"{TABLE} Bring both to one shape first."),
    (lambda v, t, w: (w * mse_loss(v, t, reduction="none")).mean(),
     f"{TABLE} And it is the Huber loss that is asked for, not the square."),
    (dict(terms=lambda d, w: w * huber(d), reduce=torch.sum),
     "that is the sum over the minibatch; take the mean."),
    (dict(terms=lambda d, w: w * huber(d) / w.sum(), reduce=torch.sum),
     "divide by the size of the minibatch, not by the sum of the weights."),
    (dict(terms=lambda d, w: huber(d)), "where are the weights?"),
    (dict(terms=lambda d, w: w * d**2), "that is w·δ²: the loss is the Huber loss."),
    (dict(terms=lambda d, w: w * 0.5 * d**2),
     "that is w·½δ²; the Huber loss grows like |δ| for large errors."),
    (dict(terms=lambda d, w: w * d.abs()), "that is w·|δ|: the loss is the Huber loss."),
    (dict(terms=lambda d, w: huber(w * d)),
     "the weight multiplies the loss, not the error inside it."),
    (dict(terms=lambda d, w: w**2 * huber(d)),
     "the weight is squared; it multiplies the loss once."),
    (dict(terms=lambda d, w: w / w.max() * huber(d)),
     "the weights are used as they come; they are not divided by the largest again."),
    (dict(terms=lambda d, w: huber(d) / w), "you divide by the weights; multiply."),
    (dict(terms=lambda d, w: -w * huber(d)), "the sign is reversed: a loss is never below 0."),
    (dict(terms=lambda d, w: (w * huber(d)).max(), reduce=lambda each: each),
     "that is the largest; take the mean."),
], larger=[(torch.linspace(-2.0, 3.0, 128)[:, None], torch.linspace(1.0, -1.0, 128)[:, None],
            torch.linspace(1.0, 0.1, 128))],
   trained=["values"])  # fmt: skip

# 06.3: the priority of several critics ------------------------------------------------------------


def priorities(
    values: Array,
    targets: Array,
    epsilon: float,
    reduce: Function = lambda errors: np.abs(errors).mean(axis=1),
) -> Array:
    return reduce(targets[:, None] - values) + epsilon


def one_for_each_critic(result: Any, right: Array) -> str | None:
    if np.shape(result) in ((2,), (3,)) and np.shape(result) != np.shape(right):
        return "one priority for each transition, not for each critic: `axis=1`."
    return None


def explains_shapes(answer: Any, *given: Any) -> Any:
    """What an answer returns; names the axis where NumPy only says that shapes differ."""
    try:
        return answer(*given)
    except ValueError as error:
        if "broadcast" not in str(error):
            raise
        raise Hint(
            "`targets` is (batch,) and `values` is (batch, critics): give the targets a second "
            "axis, `targets[:, None]`, to pair each with all its critics."
        ) from None


PAIRS = np.array([[1.0, -1.0], [0.5, 0.25], [2.0, 3.0], [-4.0, 0.5], [0.1, 0.9]])
THREES = np.array([[0.3, 0.1, -2.0], [1.0, 1.5, 0.5]])
TARGETS = np.array([0.0, 1.0, -1.0, 0.5, 0.4])

function_exercise("06.3", priorities, "values targets epsilon", [
    (PAIRS, TARGETS, 0.01), (PAIRS, TARGETS, 0.5), (THREES, np.array([0.2, 0.9]), 0.01),
], [
    (dict(reduce=lambda d: np.abs(d.mean(axis=1))),
     "take sizes before the mean: +1 and −1 cancel in it, though both critics are wrong."),
    (dict(reduce=lambda d: d.mean(axis=1)),
     "a priority is never negative: take the size of each error before the mean."),
    (dict(reduce=lambda d: np.abs(d).sum(axis=1)),
     lambda v, t, e: (np.abs(t[:, None] - v) + e).sum(axis=1),
     "that is the sum over the critics; take the mean."),
    (dict(reduce=lambda d: np.abs(d).sum(axis=1) / 2),
     dict(reduce=lambda d: np.abs(d[:, :2]).mean(axis=1)),
     "there may be more than two critics: take the mean over all of them."),
    (dict(reduce=lambda d: np.abs(d).max(axis=1)),
     "that is the largest of the sizes; take the mean."),
    (dict(reduce=lambda d: np.abs(d).min(axis=1)),
     "that is the smallest of the sizes; take the mean."),
    (dict(reduce=lambda d: np.abs(d[:, 0])), "that is the first critic alone: all of them count."),
    (dict(reduce=lambda d: np.abs(d[:, -1])), "that is the last critic alone: all of them count."),
    (lambda v, t, e: np.abs(t - v.min(axis=1)) + e,
     "that is the error of the smallest Q: the minimum belongs in the target, not here."),
    (dict(reduce=lambda d: (d**2).mean(axis=1)),
     "the error is squared: that is the loss. The priority is the size |δ|."),
    (dict(reduce=lambda d: np.sqrt((d**2).mean(axis=1))),
     "that is the root of the mean square; take the mean of the sizes."),
    (lambda v, t, e: np.abs(t[:, None] - v).mean(axis=1), "ε is missing: a priority is never 0."),
    (lambda v, t, e: np.maximum(np.abs(t[:, None] - v).mean(axis=1), e),
     "ε is added to every priority, not used as a minimum."),
    (lambda v, t, e: priorities(v, t, -e), "ε is added, not subtracted."),
    (lambda v, t, e: priorities(v, t, 2 * e), "ε is added once, not twice."),
    (lambda v, t, e: priorities(v, t, v.shape[1] * e), "ε is added once, not for each critic."),
    (lambda v, t, e: np.abs(t[:, None] - v + e).mean(axis=1),
     "ε is added to the size; inside the bars it makes some errors smaller."),
    (lambda v, t, e: np.full(len(v), np.abs(t[:, None] - v).mean() + e),
     "that is one number for the whole minibatch: the mean goes over the critics, `axis=1`."),
    (lambda v, t, e: priorities(v, t, e) ** 0.6,
     "α is the buffer's business: pass the priority p, not p^α."),
], larger=[(np.sin(np.arange(1_000.0)).reshape(200, 5), np.linspace(-1.0, 2.0, 200), 1e-3)],
   forms=one_for_each_critic, calls=explains_shapes)  # fmt: skip

# 06.4: memory -------------------------------------------------------------------------------------


def memory(
    transitions: int, pixels: int, stack: int, full: float = 1, once: float = 1
) -> tuple[float, float]:
    return 2 * stack * pixels * transitions * full, pixels * transitions * once


function_exercise("06.4", memory, "transitions pixels stack", [
    (1_000_000, 7056, 4), (1_000, 7056, 4), (1_000, 100, 4), (1_000, 100, 2), (50, 64, 3),
], [
    (dict(full=0.5, once=1.0),
     "the next observation is stored as well, in full: two stacks for each transition."),
    (dict(full=1.0, once=2.0),
     "each frame once: that of the next observation is the one that the next transition brings."),
    (dict(full=0.5, once=2.0),
     "the next observations take memory in the first case, and not in the second."),
    (dict(full=4.0, once=4.0), "a pixel is one byte here, not four."),
    (dict(full=8.0, once=8.0), "bytes are asked for, not bits."),
    (dict(full=1e-9, once=1e-9), "bytes are asked for, not GB."),
    (dict(full=1e-6, once=1e-6), "bytes are asked for, not MB."),
    (dict(full=1 / 2**30, once=1 / 2**30), "bytes are asked for, not GiB."),
    (lambda n, pixels, stack: (2 * pixels * n, pixels * n),
     "an observation has `stack` pictures: in full, they are all stored."),
    (lambda n, pixels, stack: (2 * stack * pixels * n, stack * pixels * n),
     "that stores each observation once, and so each frame `stack` times."),
    (lambda n, pixels, stack: (2 * stack * pixels * n, pixels * n / stack),
     "each frame is stored once, and every transition brings a new one: nothing is divided."),
    (lambda n, pixels, stack: ((stack + 1) * pixels * n, pixels * n),
     "in full means in full: the next observation is stored with all its pictures."),
    (lambda n, pixels, stack: (2 * stack * pixels, pixels),
     "that is for one transition; multiply by their number."),
    (lambda n, pixels, stack: (2 * stack * pixels**2 * n, pixels**2 * n),
     "`pixels` counts all pixels of a picture already, 84 · 84: it is not squared."),
    (*(lambda n, pixels, stack, more=more: (2 * stack * pixels * n, (n + more(stack)) * pixels)
       for more in (lambda stack: 1, lambda stack: stack, lambda stack: stack - 1)),
     "the first pictures of an episode and its last one are not counted here: count one for each "
     "transition."),
    (lambda n, pixels, stack: memory(n, pixels, stack)[::-1],
     "in this order, please: in full, then each frame once."),
], names=["the bytes in full", "the bytes with each frame once"])  # fmt: skip
