"""One of our samplers inside another library's buffer: what all integrations share.

The library stores the transitions, and a subclass knows in which slots: `slot_sampler.SlotSampler`
for slots that are filled in any order, `sb3.ring_sampler.RingSampler` for rings.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from per_tutorial.common.arguments import one_of, plain_array
from per_tutorial.replay.contracts import Floats
from per_tutorial.replay.ring import errors_like
from per_tutorial.replay.samplers import SAMPLERS, check_settings, make_sampler, settings_of


class HostedSampler:
    """A sampler for one run whose transitions another library stores.

    Args:
        capacity: slots.
        sampler: a name in `per_tutorial.replay.SAMPLERS`.
        seed: of the draws; None: from the system.
        settings: keyword arguments of the sampler; None: the sampler's own default.

    Raises:
        ValueError, TypeError: an argument is invalid, or the sampler has no such setting.
    """

    def __init__(
        self,
        capacity: int,
        sampler: str,
        seed: int | None,
        settings: dict[str, Any],
    ) -> None:
        given = {key: value for key, value in settings.items() if value is not None}
        self.sampler: Any = make_sampler(sampler, capacity, seed, **given)

    def errors_of(self, indices: NDArray[np.int64], td_errors: ArrayLike) -> Floats:
        """TD errors (batch,) or (batch, 1), as floats of the shape of ``indices`` (batch,)."""
        errors = plain_array("td_errors", td_errors)
        if errors.shape == (*indices.shape, 1):
            errors = errors[..., 0]
        return errors_like(indices, errors)


def refuse_unknown(
    kind: type, sampler: str, settings: Iterable[str], positional: Sequence[str] = ()
) -> None:
    """Refuse keywords that neither the sampler nor its owner accepts; list those they accept.

    Args:
        kind: class of the owner, a replay buffer; its keyword-only arguments are listed.
        sampler: a name in `per_tutorial.replay.SAMPLERS`.
        settings: names of the keywords that are not arguments of ``kind``.
        positional: positional arguments of ``kind`` that are listed, too.

    Raises:
        TypeError: a keyword is unknown.
        ValueError: there is no sampler of this name.
    """
    allowed = settings_of(SAMPLERS[one_of("sampler", sampler, SAMPLERS)])
    for each in kind.__mro__:
        if "__init__" in vars(each):
            allowed += settings_of(each.__init__)  # type: ignore[misc]
    allowed += positional
    check_settings(f"replay with the sampler {sampler!r}", settings, list(dict.fromkeys(allowed)))
