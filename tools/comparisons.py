"""Write notebooks/results/comparisons.csv: the declared comparisons of all studies, pair by pair.

python tools/comparisons.py    read all studies, which takes ten seconds, and write the table

Arms with the same settings are compared once, whatever studies they are in: the studies are tries
of one comparison, and a pair of runs that two of them hold counts once.
"""

import numpy as np
from notebook_files import ROOT

from per_tutorial.common.files import write_table
from per_tutorial.dqn.config import DQNConfig
from per_tutorial.studies.comparisons import COLUMNS
from per_tutorial.studies.results import load_study
from per_tutorial.studies.study import QUARTER

RESULTS = ROOT / "notebooks" / "results"
TABLE = RESULTS / "comparisons.csv"
FEWEST = 10  # pairs of a comparison; a study of five is left out
REPLAY = {"sampler", "replay"}
EXPONENTS = {"alpha", "beta_start", "beta_end", "beta_schedule"}
ETA = DQNConfig().learning_rate  # of the worlds in which both sides were tuned
RATES = {"learning_rate", "learning_rate_end"}
# Settings that some files don't have, newer ones and former ones: they had no other value.
DEFAULTS = {name: value for name, value in vars(DQNConfig()).items() if name not in REPLAY} | {
    **{"sticky_actions": 0.0, "optimizer": "adam", "momentum": 0.0, "epsilon_delay": 0},
    **{"omega": 0.3, "candidates": 4, "laber_weights": "mean", "unfinished": "reliable"},
    **{"beta_schedule": "linear"},
}
METHODS = {
    **{"uniform": "uniform", "sb3": "uniform", "proportional": "PER"},
    **{"rank": "rank-based", "lap": "LAP", "pal": "PAL", "reaper": "ReaPER", "laber": "LaBER"},
}


def declared():
    """All declared comparisons, either way round: (study, arm, the other's study, the other)."""
    names = sorted(path.name.removesuffix(".csv.gz") for path in RESULTS.glob("*.csv.gz"))
    studies = {name: load_study(name, RESULTS) for name in names}
    for study in studies.values():
        pairs = [pair for each in study.comparisons for pair in (each, each[::-1])]
        for arm, other in pairs:
            # SAC and TD3 were compared with SB3's replay and with our uniform one: ours is enough
            if other != "sb3" or (arm, "uniform") not in pairs:
                yield study, arm, study, other
    # Declared in words, since its uniform runs are in another file
    yield studies["per-space-invaders"], "per", studies["rate-space-invaders"], "best-rate"


def settled(settings):
    """The settings of an arm in one form for all files."""
    settings = DEFAULTS | settings
    if settings["env"] == "CartPole-v1" and settings["max_episode_steps"] == 500:
        settings["max_episode_steps"] = None  # the environment's own limit
    return dict(sorted(settings.items()))


def method_of(settings):
    """How an arm replays, as a reader calls it."""
    drawn = settings.get("sampler") or settings["replay"]
    return METHODS["pal" if settings.get("loss") == "pal" else drawn]  # PAL draws uniformly


def families_of(study, one, other):
    """The families to which a comparison of two arms belongs."""
    method, baseline = method_of(one), method_of(other)
    changed = {name for name in one | other if one.get(name) != other.get(name)} - REPLAY
    if baseline == "PER" and method not in ("PER", "uniform"):
        return [] if "learning_rate" in changed else ["newer methods"]
    if (method, baseline) != ("PER", "uniform"):
        return []
    if study.startswith("tuned-"):  # if both sides chose the same rate, it is one more try of that
        return ["best rates"] if changed else ["best rates", "one rate"]
    if changed <= EXPONENTS:
        return ["other exponents"] if changed else ["one rate"]
    quarter = one["learning_rate"] == QUARTER * other["learning_rate"]
    return ["a quarter of the rate"] if changed <= RATES and quarter else []


def world_of(settings):
    """The world as a reader calls it."""
    name = settings["env"].split("/")[-1].split("-")[0]
    name = {"BlindCliffwalk": "Cliffwalk", "SpaceInvaders": "Space Invaders"}.get(name, name)
    suite = f"SB3 {settings['agent']} " if "agent" in settings else ""
    return ("MinAtar " if "MinAtar" in settings["env"] else suite) + name


def setting_of(settings):
    """Steps, network and longest episode, as a reader wants them."""
    words = {f"{settings['steps'] / 1000:g}k steps": True}
    if "agent" not in settings:
        double, dueling = settings["double"], settings["dueling"]
        limit = settings["max_episode_steps"]
        classic = not settings["env"].startswith(("ALE/", "MinAtar/"))
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
    return ", ".join(word for word, said in words.items() if said)


def rate_of(name, one, other):
    """The learning rate, in multiples of η, that of the world's first studies."""
    if name.startswith("tuned-"):
        times = (side["learning_rate"] / ETA for side in (one, other))
        words = (
            f"{each:g}η" if each > 1 else f"η/{1 / each:g}".removesuffix("/1") for each in times
        )
        return "PER {}, uniform {}".format(*words)
    return "η/4" if "quarter" in name else "η"


def pooled(tries):
    """The pairs of a comparison, (study, seed, score, score of the baseline), and its range."""
    pairs, curves, seen = [], [], set()
    for study, arm, base, other in tries:
        scores = study.scores(arm), base.scores(other, study.facts["metric"])
        new = [k for k, seed in enumerate(study.seeds) if seed not in seen]
        seen.update(study.seeds)
        pairs += [
            (study.facts["study"], study.seeds[k], *(side[k] for side in scores)) for k in new
        ]
        curves.append(base.curve(other)[1][:, new])
    mean = np.nanmean(np.concatenate(curves, axis=1), axis=1)
    return pairs, np.nanmax(mean) - np.nanmin(mean)


def table():
    """The rows of the table, one comparison after the other."""
    found = {}  # what they compare → (its words, its tries)
    for study, arm, base, other in declared():
        arms = one, two = settled(study.arms[arm]), settled(base.arms[other])
        for family in families_of(study.facts["study"], *arms):
            rate = rate_of(f"{study.facts['study']} {arm}", *arms)
            words = world_of(one), method_of(one), method_of(two), f"{setting_of(one)}, {rate}"
            _, tries = found.setdefault((family, repr(arms)), (words, []))
            tries.append((study, arm, base, other))
    for number, ((family, _), (words, tries)) in enumerate(found.items()):
        pairs, span = pooled(tries)
        if len(pairs) >= FEWEST:
            for name, seed, *scores in pairs:
                numbers = (f"{value:.13g}" for value in (*scores, span))
                yield family, number, *words, name, seed, *numbers


if __name__ == "__main__":
    write_table(TABLE, {}, COLUMNS, table())
