"""What the examination needs to know of a replay buffer: how to make it, add, sample and update.

A class of twelve lines is enough, as docs/examined.md shows; it need not be an `Adapter`.
The examination recognises a transition by its observation, which is unique, whatever a buffer uses
as an index. It makes many buffers with one adapter, so what an agent keeps beside its buffer (the
largest priority, a step count) belongs to the object that `make` returns.

**Do in `update` what your agent does between δ and the buffer**: many mistakes are in that line (a
Huber loss, a square, weights inside). `update` may take the minibatch's weights as a fourth
argument. The attributes of `Adapter` declare what your buffer does otherwise than the paper.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from per_tutorial.common.arguments import one_of, real_number, whole_number
from per_tutorial.replay.contracts import Floats, Transition

Distribution = Literal["proportional", "rank", "uniform"]
Newcomers = Literal["largest", "agent"]

OBSERVATION_SHAPE = (2,)  # float32
ACTIONS = 2  # 0 or 1


class BufferSettings(NamedTuple):
    """The settings of a buffer; it is sampled only with the batch size and the β given here."""

    capacity: int
    alpha: float = 0.6
    beta: float = 0.4
    batch_size: int = 32
    seed: int = 0
    n_step: int = 1
    discount: float = 0.5  # of n-step returns


@dataclass(frozen=True, kw_only=True)
class Minibatch:
    """What `Adapter.sample` returns; fields that a buffer doesn't have stay None.

    `keys` are whatever `Adapter.update` needs to find these transitions again. Observations and
    next observations are (batch, 2), all other fields (batch,), or all of them columns (batch, 1).
    """

    observations: ArrayLike
    weights: ArrayLike | None = None
    keys: Any = None
    actions: ArrayLike | None = None
    rewards: ArrayLike | None = None
    next_observations: ArrayLike | None = None
    terminated: ArrayLike | None = None


class Adapter:
    """How to use one kind of buffer. Subclasses define `make`, `add`, `sample` and `update`.

    They may also define ``save(buffer, path)``, and ``load(buffer, path)``, which reads a file into
    a new buffer made with the same settings, or returns one.

    Attributes:
        name: of the buffer in reports; by default that of the class.
        distribution: how priorities become probabilities. "proportional": P(i) ∝ p^α. "rank":
            P(i) ∝ 1/rank^α. "uniform": all are equal.
        epsilon: ε, which the buffer adds to |δ| by itself; 0: it adds none.
        uniform_share: the share of draws that are uniform, λ of P(i) = (1 − λ) p^α / Σ p^α + λ / N.
        clip: the largest |δ| that counts; None: there is none.
        newcomers: the priority of a transition without a TD error: the "largest" so far, or one
            that the "agent" gives it in `add`.
        delay: how many of the newest transitions can't be drawn yet. They count as stored: a buffer
            with a queue in front of its ring has a ring of capacity − delay.
        anneals_beta: whether the buffer changes β by itself, and ignores the one it is given.
        terminal_next_observation: whether the next observation of a terminal transition is kept.
        replacement: whether a minibatch may hold a transition twice, as in the paper. If not, P(i)
            holds for the first draw only, and frequencies are counted in minibatches of two.
        seeded: whether `BufferSettings.seed` decides what is drawn.
        n_step: whether the buffer makes n-step returns (`BufferSettings.n_step`) by itself.
        copies_added: whether it copies the arrays that are added. False: it is documented to keep
            them, so callers must not change them.
        packages: the distributions whose versions a report lists.
    """

    name: ClassVar[str] = ""
    distribution: ClassVar[Distribution] = "proportional"
    epsilon: ClassVar[float] = 0.0
    uniform_share: ClassVar[float] = 0.0
    clip: ClassVar[float | None] = None
    newcomers: ClassVar[Newcomers] = "largest"
    delay: ClassVar[int] = 0
    anneals_beta: ClassVar[bool] = False
    terminal_next_observation: ClassVar[bool] = True
    replacement: ClassVar[bool] = True
    seeded: ClassVar[bool] = True
    n_step: ClassVar[bool] = False
    copies_added: ClassVar[bool] = True
    packages: ClassVar[tuple[str, ...]] = ()

    def make(self, settings: BufferSettings) -> Any:
        """An empty buffer for observations (2,) of float32 and actions 0 and 1."""
        raise NotImplementedError

    def add(self, buffer: Any, transition: Transition) -> None:
        """Store one transition. All come from one environment, in order."""
        raise NotImplementedError

    def sample(self, buffer: Any, batch_size: int, beta: float) -> Minibatch:
        """Draw a minibatch; the examination draws thousands in a row, without updates between."""
        raise NotImplementedError

    def update(self, buffer: Any, keys: Any, td_errors: Floats) -> None:
        """Do what the agent does with a minibatch's TD errors δ (batch,), which have a sign.

        It may have a fourth parameter for the weights (batch,), or None if there are none.
        """
        raise NotImplementedError

    def priorities(self, td_errors: NDArray) -> Floats:
        """The priorities p of TD errors δ: |δ| + ε unless documented otherwise; none is clipped."""
        return np.abs(np.asarray(td_errors, dtype=np.float64)) + self.epsilon


def as_adapter(adapter: Any, place: str = "") -> Adapter:
    """An `Adapter` from one, or from a class with its four methods, named ``place`` if nameless.

    Raises:
        TypeError, ValueError: it is neither, or a declaration is invalid; says why.
    """
    kind = adapter if isinstance(adapter, type) else type(adapter)
    name, methods = kind.__name__, ("make", "add", "sample", "update")
    if missing := [one for one in methods if not callable(getattr(adapter, one, None))]:
        said = "a buffer needs an adapter with make, add, sample and update: docs/examined.md"
        raise TypeError(f"adapter: {name} lacks {', '.join(missing)}; {said}")
    for unknown in (
        one for one in dir(kind) if not one.startswith("_") and not hasattr(Adapter, one)
    ):
        if not callable(value := getattr(kind, unknown)) and not isinstance(value, property):
            said = f"must be one of {', '.join(Adapter.__annotations__)}, or begin with _"
            raise ValueError(f"{name}.{unknown}: a declaration {said}")
    if isinstance(adapter, type):
        adapter = type(name, (adapter, Adapter), {})()
    if not isinstance(adapter, Adapter):
        raise TypeError(f"adapter: must be a class or an Adapter, got an object of {name}")
    adapter.name = adapter.name or place or name  # type: ignore[misc]
    one_of(f"{name}.distribution", adapter.distribution, get_args(Distribution))
    one_of(f"{name}.newcomers", adapter.newcomers, get_args(Newcomers))
    real_number(f"{name}.epsilon", adapter.epsilon, low=0.0)
    real_number(f"{name}.uniform_share", adapter.uniform_share, low=0.0, high=0.9)
    whole_number(f"{name}.delay", adapter.delay, minimum=0)
    if adapter.clip is not None:
        real_number(f"{name}.clip", adapter.clip, above=0)
    return adapter
