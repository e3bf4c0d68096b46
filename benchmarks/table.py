"""The table of docs/speed.md, from the numbers in docs/speed/: python -m benchmarks --write"""

import json
import re
import statistics

from benchmarks.harness import ratios

MARKS = r"(<!-- table: python -m benchmarks --write -->\n).*?(<!-- end -->)"
FILES = ("replay", "training", "agents", "gpu")
OURS, PLAIN, GRAPH, SB3 = "per_tutorial", "as it is", "compiled", "Stable-Baselines3"


def write(docs):
    """Bring the table in docs/speed.md in line with docs/speed/*.json.

    Raises:
        ValueError: the page has the marks of the table not once.
    """
    data = {name: json.loads((docs / f"speed/{name}.json").read_text("utf-8")) for name in FILES}
    page = docs / "speed.md"
    text, found = re.subn(
        MARKS, lambda marks: marks[1] + made(data) + marks[2], page.read_text("utf-8"), flags=re.S
    )
    if found != 1:
        raise ValueError(f"docs/speed.md: must have the marks of the table once, got {found}")
    page.write_text(text, "utf-8")


def made(data):
    """The table as Markdown, and a line for each file: the machine and the commit."""
    lines = ["| file | what | time | others: times as long as ours |", "|---|---|--:|---|"]
    for name, what, times, ours, others in rows(data):
        # Medians over rounds; a ratio is one of times in the same round.
        beside = [f"{title} {ratios(times[key], times[ours])[0]:.2f}" for title, key in others]
        time = in_words(statistics.median(times[ours]))
        lines.append(f"| {name} | {what} | {time} | {', '.join(beside)} |")
    lines.append("")
    for name, found in data.items():
        where = found.get("device", found["machine"].partition(";")[0])
        lines.append(f"- [{name}](speed/{name}.json): {where}, {found['commit']}")
    return "\n".join(lines) + "\n"


def rows(data):
    """(file, what, {name: seconds}, our name there, [(title, name)] of the others)."""
    for cell in data["replay"]["cells"]:
        setting = (cell["rows"], cell["size"], cell["batch"], cell["kind"], cell["operation"])
        if setting in (
            ("4 floats", 10**6, 32, "prioritized", "step"),
            ("Atari frames", 10**4, 32, "prioritized", "step"),
        ):
            times = {key: [time / 1e6 for time in each] for key, each in cell["times"].items()}
            what = f"a step, {setting[0]}, {setting[1]:,} stored"
            yield "replay", what, times, OURS, [(key, key) for key in times if key != OURS]
    # Of a frame: the only unit in which different numbers of runs can be compared
    frames = {
        key: [second / int(re.search(r"(\d+) run", key)[1]) for second in each]
        for key, each in data["training"]["seconds"].items()
        if not key.startswith("floor")
    }
    for runs in ("1 run", "10 runs", "100 runs"):
        others = [
            (SB3, "Stable-Baselines3 DQN, 1 run"),
            ("tianshou", "tianshou DQN + PER, 1 run"),
            ("without PER", f"{runs}, uniform"),
        ]
        what = f"CartPole, {runs}: a frame"
        yield "training", what, frames, f"{runs}, proportional", others
    for what, batch, times in data["agents"]["seconds"]:
        own, *_, ours = times
        yield "agents", f"{what}, {batch}: {ours}", times, ours, [(SB3, own)]
    beside = [(SB3, SB3), ("not compiled", PLAIN)]
    for batch, times in data["gpu"]["minibatches"].items():
        yield "gpu", f"Pong: sample {batch}, update, write back", times, GRAPH, beside
    yield "gpu", "Pong: a step", data["gpu"]["pong"], GRAPH, beside
    steps = data["gpu"]["cartpole"]
    for runs, others in (
        ("1 run", [(SB3, f"{SB3}, 1 run"), ("not compiled", f"1 run, {PLAIN}")]),
        ("100 runs", [("not compiled", f"100 runs, {PLAIN}")]),
    ):
        yield "gpu", f"CartPole, {runs}: a step of all", steps, f"{runs}, {GRAPH}", others


def in_words(seconds):
    """A time in µs or ms."""
    return f"{1e6 * seconds:.1f} µs" if seconds < 1e-3 else f"{1e3 * seconds:.2f} ms"
