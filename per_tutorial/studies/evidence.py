"""Everything that was run, as one list: the comparisons of all studies, pooled and counted once.

Page 09 draws it, and `tools/results_page.py` prints its numbers for docs/results.md.
"""

import functools
from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from per_tutorial.common.data import data_folder
from per_tutorial.studies.results import StudyResults, load_study, read_results

FEWEST = 10  # pairs of a comparison that is drawn; three studies are smaller
# What only says how a replay draws and weighs, or how a run was executed.
REPLAY = {"sampler", "replay"}
EXPONENTS = {"alpha", "beta_start", "beta_end", "beta_schedule"}
EXECUTION = {"vectorization", "frame_size", "precision", "compiled", "device", "beta_steps"}
# Older files don't have these settings: they had no other value.
DEFAULTS = {
    **{"environments": 1, "sticky_actions": 0.0, "n_step": 1, "optimizer": "adam"},
    **{"momentum": 0.0, "kappa": 1.0, "td_error_clip": None, "epsilon_delay": 0, "omega": 0.3},
    **{"candidates": 4, "laber_weights": "mean", "unfinished": "reliable"},
}
KINDS = {"proportional": "PER", "sb3": "uniform"}  # SB3's own replay is uniform
METHODS = {"rank": "rank-based", "lap": "LAP", "pal": "PAL", "reaper": "ReaPER", "laber": "LaBER"}


class Row(NamedTuple):
    """One comparison: all pairs of runs of all tries with the same settings."""

    world: str
    method: str  # what is compared with the baseline
    setting: str  # steps, network, limit and learning rate in words
    tries: dict[str, NDArray[np.float64]]  # study → (pairs,) differences, each pair in one try only
    scores: tuple[NDArray[np.float64], NDArray[np.float64]]  # (pairs,) of both arms, all tries
    span: float  # highest minus lowest point of the baseline's mean learning curve


def method_of(settings: dict[str, Any]) -> str:
    """How an arm replays: "uniform", "PER", or a value of `METHODS`."""
    name = settings.get("sampler") or settings["replay"]
    name = "pal" if settings.get("loss") == "pal" else name  # PAL draws uniformly
    return METHODS.get(name) or KINDS.get(name, name)


def per_minus_uniform(only: Collection[str] | None = None) -> list[Row]:
    """Declared comparisons of PER with uniform replay whose arms differ in nothing else.

    Args:
        only: names of studies; None for all, which takes ten seconds to read.
    """
    found = _declared("PER", "uniform", only)
    return rows(each for each in found if not _changed(*each) - REPLAY)


def quarter_minus_full(only: Collection[str] | None = None) -> list[Row]:
    """Declared comparisons of PER at η/4 with uniform replay at η, the rule of PER's authors."""
    found = _declared("PER", "uniform", only)
    rates = {"learning_rate"}, {"learning_rate", "learning_rate_end"}
    return rows(each for each in found if _changed(*each) - REPLAY in rates)


def other_exponents(only: Collection[str] | None = None) -> list[Row]:
    """The same with an α or β that is not the other arm's, which has the default."""
    found = _declared("PER", "uniform", only)
    return rows(
        each for each in found if REPLAY & _changed(*each) < _changed(*each) <= REPLAY | EXPONENTS
    )


def newer_minus_per(only: Collection[str] | None = None) -> list[Row]:
    """Declared comparisons of other methods, rank-based PER too, with PER at one learning rate."""
    return rows(
        (study, arm, other)
        for method in METHODS.values()
        for study, arm, other in _declared(method, "PER", only)
        if study.arms[arm]["learning_rate"] == study.arms[other]["learning_rate"]
    )


def rows(comparisons: Iterable[tuple[StudyResults, str, str]]) -> list[Row]:
    """Pool comparisons with the same settings; runs that are in two studies count once."""
    pools: dict[str, list[tuple[StudyResults, str, str]]] = {}
    for study, arm, other in comparisons:
        settings = [_settled(study.arms[name]) for name in (arm, other)]
        pools.setdefault(repr(settings), []).append((study, arm, other))
    return [row for pool in pools.values() if len((row := _pooled(pool)).scores[0]) >= FEWEST]


def _pooled(pool: list[tuple[StudyResults, str, str]]) -> Row:
    seen: set[int] = set()
    tries: dict[str, NDArray[np.float64]] = {}
    ours, theirs, curves = [], [], []
    for study, arm, other in pool:
        new = np.array([seed not in seen for seed in study.seeds])
        if not new.any():  # the same runs again
            continue
        seen.update(study.seeds)
        a, b = study.scores(arm)[new], study.scores(other)[new]  # paired by seed
        tries[study.facts["study"]] = a - b
        ours.append(a)
        theirs.append(b)
        curves.append(study.curve(other)[1][:, new])
    mean = np.nanmean(np.concatenate(curves, axis=1), axis=1)
    study, arm, other = pool[0]
    settings = study.arms[arm]
    scores = np.concatenate(ours), np.concatenate(theirs)
    span = float(np.nanmax(mean) - np.nanmin(mean))
    return Row(_world(settings), method_of(settings), _setting(study, arm), tries, scores, span)


def _declared(
    method: str, baseline: str, only: Collection[str] | None
) -> Iterator[tuple[StudyResults, str, str]]:
    """The declared comparisons of a method with a baseline, either way round, study by study."""
    for study in _studies(None if only is None else tuple(only)):
        pairs = [pair for each in study.comparisons for pair in (each, each[::-1])]
        for arm, other in pairs:
            # SAC and TD3 were compared with SB3's replay and with our uniform one: ours is enough
            if other == "sb3" and (arm, "uniform") in pairs:
                continue
            if [method_of(study.arms[name]) for name in (arm, other)] == [method, baseline]:
                yield study, arm, other


@functools.cache
def _studies(only: tuple[str, ...] | None) -> list[StudyResults]:
    """All studies that declared a comparison, or only those.

    One was declared in words: the uniform runs of `per-space-invaders` are in another file.
    """
    folder = data_folder()
    names = sorted(path.name.removesuffix(".csv.gz") for path in folder.glob("*.csv.gz"))
    found = [load_study(name) for name in names if only is None or name in only]
    if only is None:
        (facts, runs), (others, more) = (
            read_results(folder / f"{name}-space-invaders.csv.gz") for name in ("per", "rate")
        )
        both = {"stacks": facts["stacks"] + others["stacks"], "comparisons": [["per", "best-rate"]]}
        found.append(StudyResults({**facts, **both}, runs + more))
    return [study for study in found if study.comparisons]


def _settled(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings in one form for all files, without what changes no result."""
    kept = {k: v for k, v in {**DEFAULTS, **settings}.items() if k not in EXECUTION}
    if kept["env"] == "CartPole-v1" and kept["max_episode_steps"] == 500:  # its own limit
        kept["max_episode_steps"] = None
    if "capacity" in kept:  # a memory that never fills is as good as any larger one
        kept["capacity"] = min(kept["capacity"], kept["steps"])
    if method_of(kept) == "uniform":
        kept = {k: v for k, v in kept.items() if k not in EXPONENTS and not k.startswith("laber")}
    return dict(sorted(kept.items()))


def _changed(study: StudyResults, arm: str, other: str) -> set[str]:
    """The settings in which two arms differ."""
    a, b = ({**DEFAULTS, **study.arms[name]} for name in (arm, other))
    return {name for name in {*a, *b} if a.get(name) != b.get(name)}


def _world(settings: dict[str, Any]) -> str:
    name = settings["env"].split("/")[-1].split("-")[0]
    name = {"BlindCliffwalk": "Cliffwalk", "SpaceInvaders": "Space Invaders"}.get(name, name)
    suite = f"SB3 {settings['agent']} " if "agent" in settings else ""
    return ("MinAtar " if "MinAtar" in settings["env"] else suite) + name


def _setting(study: StudyResults, arm: str) -> str:
    """Steps, network, longest episode and learning rate, as a reader wants them."""
    settings = _settled(study.arms[arm])
    quarter = "quarter" in arm or "quarter" in study.facts["study"]
    words = {f"{settings['steps'] // 1000}k steps": True}
    if "agent" not in settings:
        double, dueling = settings["double"], settings["dueling"]
        limit, classic = settings["max_episode_steps"], "MinAtar" not in settings["env"]
        words |= {
            f"{settings['hidden'][0]} units": classic,
            f"≤ {limit}": "CartPole" in settings["env"] and limit,
            "double": double and not dueling,
            "dueling": dueling and not double,
            "D3QN": double and dueling,
            "Huber": settings["loss"] == "huber" and classic,
            "hard target": settings["tau"] == 1 and classic,
            "published settings": settings["optimizer"] == "rmsprop",
        }
    return ", ".join([*(word for word, said in words.items() if said), "η/4" if quarter else "η"])
