"""Unknown keywords of the replay buffers for other libraries: one error for all of them."""

from collections.abc import Iterable, Sequence

from per_tutorial.common.arguments import one_of
from per_tutorial.replay.registry import SAMPLERS, check_settings, settings_of


def refuse_unknown(
    kind: type, sampler: str, settings: Iterable[str], positional: Sequence[str] = ()
) -> None:
    """TypeError for a keyword that neither the sampler nor its owner has; it lists what they have.

    Args:
        kind: class of the owner, a replay buffer: its keyword-only arguments are listed.
        sampler: a name in `per_tutorial.replay.SAMPLERS`.
        settings: names of the keywords that are no arguments of ``kind``.
        positional: other arguments of ``kind`` that are settings, too.

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
