"""What all integrations share: one of our samplers for one run, inside another library's buffer."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from per_tutorial.common.arguments import one_of, plain_array
from per_tutorial.replay.contracts import Floats
from per_tutorial.replay.ring import errors_like
from per_tutorial.replay.samplers import SAMPLERS, check_settings, make_sampler, settings_of


def hosted_sampler(
    sampler: str, capacity: int, seed: int | None, settings: Mapping[str, Any]
) -> Any:
    """The sampler of this name; a setting that is None is left at the sampler's own default.

    Raises:
        ValueError, TypeError: an argument is invalid, or the sampler has no such setting.
    """
    given = {name: value for name, value in settings.items() if value is not None}
    return make_sampler(sampler, capacity, seed, **given)


def errors_of(indices: NDArray[np.int64], td_errors: ArrayLike) -> Floats:
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
        sampler: a name in `per_tutorial.replay.samplers.SAMPLERS`.
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
