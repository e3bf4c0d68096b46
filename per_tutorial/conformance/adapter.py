"""What the examination needs to know of a replay buffer: how to make it, add, sample and update.

A class of about fifteen lines is enough. It need not be a subclass of `Adapter`:

```python
class Mine:
    epsilon = 1e-6  # MyBuffer draws by |δ| + 1e-6

    def make(self, settings):
        return MyBuffer(settings.capacity, alpha=settings.alpha, seed=settings.seed)

    def add(self, buffer, transition):
        buffer.push(*transition[:5])  # observation, action, reward, next_observation, terminated

    def sample(self, buffer, batch_size, beta):
        batch = buffer.sample(batch_size, beta)
        return Drawn(batch.observations, batch.weights, keys=batch.indices)

    def update(self, buffer, keys, td_errors):
        buffer.update_priorities(keys, td_errors)

print(examine(Mine))
```

The examination recognises a transition by its observation, which is unique. So it doesn't matter
what a buffer uses as an index, or whether it returns any.
"""

from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from per_tutorial.common.arguments import one_of, real_number
from per_tutorial.replay.contracts import Floats, Transition

Distribution = Literal["proportional", "rank", "uniform"]

OBSERVATION_SHAPE = (2,)  # float32
ACTIONS = 2  # 0 or 1


class Settings(NamedTuple):
    """The settings of a buffer.

    The examination makes a new buffer for each combination of settings. It samples only with the
    batch size and the β given here.

    Example:
        >>> from per_tutorial.conformance import Settings
        >>> settings = Settings(capacity=8, alpha=1.0)
        >>> settings.capacity, settings.alpha, settings.beta
        (8, 1.0, 0.4)
    """

    capacity: int
    alpha: float = 0.6
    beta: float = 0.4
    batch_size: int = 64
    seed: int = 0
    n_step: int = 1
    discount: float = 0.5  # of n-step returns


class Drawn(NamedTuple):
    """A minibatch. Fields that a buffer doesn't have stay None.

    Attributes:
        observations: (batch, 2), as they were added.
        weights: (batch,) importance-sampling weights.
        keys: whatever `Adapter.update` needs to find these transitions again. The examination
            doesn't inspect it, and always passes it back whole.
        actions, rewards, terminated: (batch,).
        next_observations: (batch, 2).
        steps: (batch,) or a number: how many steps an n-step return covers.

    Example:
        >>> from per_tutorial.conformance import Drawn
        >>> drawn = Drawn([[0.0, 1.0], [2.0, 3.0]], weights=[0.5, 1.0], keys=[7, 3])
        >>> drawn.keys, drawn.rewards
        ([7, 3], None)
    """

    observations: ArrayLike
    weights: ArrayLike | None = None
    keys: Any = None
    actions: ArrayLike | None = None
    rewards: ArrayLike | None = None
    next_observations: ArrayLike | None = None
    terminated: ArrayLike | None = None
    steps: ArrayLike | None = None


class Adapter:
    """How to use one kind of buffer. Subclasses define `make`, `add`, `sample` and `update`.

    They may also define these optional methods. If one is missing, questions that need it are
    answered with "not offered":

    - ``save(buffer, path)`` and ``load(buffer, path)``: write everything to a file, and read it
      into a new buffer made with the same settings.
    - ``find(buffer, fraction)``: the observation (2,) of the transition where the running sum of
      all priorities passes ``fraction`` of their total, for a number in [0, 1).

    Attributes:
        name: of the buffer in reports; by default the name of the class.
        distribution: how priorities become probabilities. "proportional": P(i) ∝ p^α. "rank":
            P(i) ∝ 1/rank^α. "uniform": all are equal.
        epsilon: ε, which the buffer adds to |δ| by itself; 0: it adds none.
        replacement: whether a minibatch may hold a transition twice, as in the paper. If not, P(i)
            holds for the first draw only, so where it matters the examination asks for minibatches
            of one.
        seeded: whether `Settings.seed` decides what is drawn.
        n_step: whether the buffer makes n-step returns (`Settings.n_step`) by itself.
        copies_added: whether it copies the arrays that are added. False: it is documented to keep
            them, so callers must not change them; this is reported, not judged.
        copies_drawn: whether each minibatch has its own arrays. False: they are documented to be
            reused, or to be views of the memory; this is reported, not judged.
        time_limit: seconds of processor time for one question; it fails if it takes longer. The
            first question has three times as long, since the buffer may compile itself.
        packages: the distributions whose versions a report lists.

    Example:
        >>> import random
        >>> from collections import deque
        >>> from per_tutorial.conformance import Adapter, Drawn, examine
        >>> class Plain(Adapter):
        ...     distribution = "uniform"
        ...     def make(self, settings):
        ...         return deque(maxlen=settings.capacity)
        ...     def add(self, buffer, transition):
        ...         buffer.append(transition.observation)
        ...     def sample(self, buffer, batch_size, beta):
        ...         return Drawn(random.choices(buffer, k=batch_size))
        ...     def update(self, buffer, keys, td_errors):
        ...         pass
        >>> examine(Plain, questions=["handling", "proportions-full"], isolate=False).summary()
        '2 holds'
    """

    name: ClassVar[str] = ""
    distribution: ClassVar[Distribution] = "proportional"
    epsilon: ClassVar[float] = 0.0
    replacement: ClassVar[bool] = True
    seeded: ClassVar[bool] = True
    n_step: ClassVar[bool] = False
    copies_added: ClassVar[bool] = True
    copies_drawn: ClassVar[bool] = True
    time_limit: ClassVar[float] = 5.0
    packages: ClassVar[tuple[str, ...]] = ()

    def make(self, settings: Settings) -> Any:
        """An empty buffer for observations (2,) of float32 and actions 0 and 1."""
        raise NotImplementedError

    def add(self, buffer: Any, transition: Transition) -> None:
        """Store one transition. All come from one environment, in order."""
        raise NotImplementedError

    def sample(self, buffer: Any, batch_size: int, beta: float) -> Drawn:
        """Draw a minibatch."""
        raise NotImplementedError

    def update(self, buffer: Any, keys: Any, td_errors: Floats) -> None:
        """Update the priorities of a minibatch from its TD errors δ (batch,), which have a sign.

        If a library expects |δ| or a priority from its users, compute it here.
        """
        raise NotImplementedError

    def priorities(self, td_errors: NDArray) -> Floats:
        """The priorities p of TD errors δ: |δ| + ε unless documented otherwise."""
        return np.abs(np.asarray(td_errors, dtype=np.float64)) + self.epsilon


METHODS = ("make", "add", "sample", "update")


def as_adapter(adapter: Any) -> Adapter:
    """An `Adapter` from any class or object with its four methods.

    Raises:
        TypeError: a method is missing; an object lacks an attribute; a class needs arguments.
        ValueError: an attribute is invalid.
    """
    name = (adapter if isinstance(adapter, type) else type(adapter)).__name__
    missing = [method for method in METHODS if not callable(getattr(adapter, method, None))]
    if missing:
        raise TypeError(f"adapter: {name} lacks {', '.join(missing)}")
    if isinstance(adapter, type):
        kind = adapter if issubclass(adapter, Adapter) else type(name, (adapter, Adapter), {})
        try:
            adapter = kind()
        except Exception as error:
            raise TypeError(
                f"adapter: {name} cannot be made without arguments ({error})"
            ) from error
    described = [each for each in vars(Adapter) if not each.startswith("_")]
    missing = [each for each in described if not hasattr(adapter, each)]
    if missing:
        raise TypeError(
            f"adapter: {name} lacks {', '.join(missing)}; give the class, or derive it from "
            "Adapter, which has them all"
        )
    one_of(f"{name}.distribution", adapter.distribution, get_args(Distribution))
    real_number(f"{name}.epsilon", adapter.epsilon, low=0.0)
    real_number(f"{name}.time_limit", adapter.time_limit, above=0)
    packages = adapter.packages
    # A string would be taken for a list of letters.
    if not isinstance(packages, (tuple, list)) or not all(isinstance(p, str) for p in packages):
        raise TypeError(f"{name}.packages: must be a tuple of names, got {packages!r}")
    return adapter
