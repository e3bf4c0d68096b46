"""The look of the series: one style, and one colour for each concept."""

import itertools

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from per_tutorial.notebook import LiveFigure, show
from per_tutorial.statistics import bootstrap_interval

# Chosen dark enough to be read as text on white and different enough for colour-blind readers where
# two of them meet. Formulas use them as well: {\color{#D55E00}{p_i}}: every renderer of formulas takes this form.
COLORS = {
    "uniform": "#0072B2",
    "per": "#D55E00",
    "rank": "#661A66",
    "alpha": "#7A7A1F",
    "beta": "#332288",
    "epsilon": "#A66F00",
    "td_error": "#882255",
    "priority": "#D55E00",  # prioritised replay is drawing by priority: one colour for both
    "weight": "#00857A",
    "return": "#333333",
    "loss": "#CC6677",
    "path": "#C2307A",
    "left": "#3A8FC8",
    "right": "#C47F00",
    "quiet": "#8A8A8A",  # what is there for orientation only
}

HISTORY_SIZE = (9.6, 2.7)  # inches, of the pictures with three panels


def use_style():
    """Set matplotlib's defaults to the house style."""
    plt.rcParams.update(
        {
            "figure.figsize": (7.0, 3.6),
            "figure.dpi": 100,
            "savefig.dpi": 150,
            "savefig.facecolor": "white",
            "figure.constrained_layout.use": True,
            "font.size": 10,
            "axes.titlesize": 11,
            "axes.titlelocation": "left",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "axes.axisbelow": True,
            "grid.color": "#E6E6E6",
            "grid.linewidth": 0.8,
            "lines.linewidth": 1.8,
            "legend.frameon": False,
        }
    )


# Training ----------------------------------------------------------------------------------------


class LivePlot:
    """Watch a training: pass it to `train(..., watchers=[LivePlot()])`.

    The picture is that of `plot_history`, redrawn now and then and once at the end.

    Args:
        alt: alternative text; None for a description of the picture.
    """

    def __init__(self, alt=None):
        self._alt = alt
        # Outside pyplot, so that an interrupted training leaves no open figure behind.
        self._figure = Figure(figsize=HISTORY_SIZE)
        self._live = None

    def __call__(self, history):
        over = history.step == history.config.steps
        if self._live is None:
            self._live = LiveFigure(self._alt or _history_alt(history))
        if self._live.due or over:
            self._figure.clear()
            draw_history(self._figure, history)
            self._live.update(self._figure)
        if over:
            self._live.close()


def plot_history(history, alt=None):
    """Show score, loss and ε of a `History` side by side: all runs faint, their median bold."""
    figure = Figure(figsize=HISTORY_SIZE)
    draw_history(figure, history)
    show(figure, alt or _history_alt(history))


def draw_history(figure, history, *, window=20):
    """Draw score, loss and ε over the environment steps into a figure.

    Args:
        figure: a figure or a part of one.
        history: a `History`, finished or not.
        window: the score is the mean return of this many episodes, the last ones of a run.
    """
    score_axes, loss_axes, epsilon_axes = figure.subplots(1, 3)
    steps = np.array(history.log_steps)
    scores = history.learning_curve(steps, window)
    losses = history.measure("loss")
    draw_runs(score_axes, steps, scores, COLORS["return"])
    draw_runs(loss_axes, steps, losses, COLORS["loss"])
    draw_runs(epsilon_axes, steps, history.measure("epsilon")[:, :1], COLORS["epsilon"])
    score_axes.set_title(f"score (mean of {window} episodes)")
    score_axes.set_ylim(bottom=0)
    loss_axes.set_title("loss (log scale)")
    if (losses > 0).any():  # before the first update there is none
        loss_axes.set_yscale("log")
    epsilon_axes.set_title(r"exploration $\epsilon$")
    epsilon_axes.set_ylim(0, 1.05)
    for axes in (score_axes, loss_axes, epsilon_axes):
        axes.set_xlim(0, history.config.steps)
        label_steps(axes)


def draw_runs(axes, steps, values, color, label=None):
    """Draw every run of `values` (steps, runs) faint, and their median bold."""
    if values.shape[1] > 1:
        axes.plot(steps, values, color=color, alpha=0.3, linewidth=0.8)
    measured = ~np.isnan(values).all(axis=1)
    median = np.nanmedian(values[measured], axis=1)
    axes.plot(np.asarray(steps)[measured], median, color=color, label=label)


def plot_learning_curves(histories, alt, *, size=(7.0, 3.8), **options):
    """Show `draw_learning_curves` with its `options` as a picture of its own."""
    figure = Figure(figsize=size)
    draw_learning_curves(figure.subplots(), histories, **options)
    show(figure, alt)


def draw_learning_curves(
    axes, histories, *, colors=None, statistic=np.mean, window=20, threshold=None, points=100
):
    """Draw learning curves to compare: every run faint, a statistic over runs with its interval.

    The band is the 95 % bootstrap interval of the statistic, over runs, at each step by itself.

    Args:
        axes: where to draw.
        histories: {label: `History`}; the runs of each are the sample.
        colors: {label: colour}; by default that of the sampler.
        statistic: function(values, axis=-1), such as `np.mean` or `np.median`.
        window: the score is the mean return of this many episodes, the last ones of a run.
        threshold: a score to mark by a dashed line.
        points: steps at which curves and intervals are computed.
    """
    colors = colors or {label: sampler_color(h.config.sampler) for label, h in histories.items()}
    for label, history in histories.items():
        grid = np.linspace(0, history.step, points + 1)[1:].astype(int)
        scores = history.learning_curve(grid, window)
        started = ~np.isnan(scores).any(axis=1)  # every run has finished an episode
        grid, scores = grid[started], scores[started]
        low, high = bootstrap_interval(scores, axis=-1, statistic=statistic)
        color = colors[label]
        axes.plot(grid, scores, color=color, alpha=0.2, linewidth=0.7)
        axes.fill_between(grid, low, high, color=color, alpha=0.25, linewidth=0)
        axes.plot(grid, statistic(scores, axis=-1), color=color, label=label)
    if threshold is not None:
        axes.axhline(threshold, color=COLORS["quiet"], linestyle="--", linewidth=1)
    axes.set_ylabel(f"score (mean of {window} episodes)")
    axes.set_ylim(bottom=0)
    axes.set_xlim(0, max(history.step for history in histories.values()))
    label_steps(axes)
    axes.legend(loc="lower right")


def plot_greedy_scores(scores, alt, *, colors=None, threshold=None, width=7.0):
    """Show how the greedy scores of runs spread: a histogram made of dots, each dot a run.

    Args:
        scores: {label: (runs, episodes)}, such as `evaluate` returns; a panel each. A run's score is
            the mean of its episodes.
        alt: alternative text.
        colors: {label: colour}; that of uniform replay by default.
        threshold: a score to mark by a dashed line.
        width: of the picture, in inches.
    """
    means = {label: np.asarray(episodes).mean(axis=1) for label, episodes in scores.items()}
    edges = np.linspace(0, max(values.max() for values in means.values()), 41)
    tallest = max(np.histogram(values, edges)[0].max() for values in means.values())
    figure = Figure(figsize=(width, len(means) * (1.0 + 0.12 * min(tallest, 20)) + 0.4))
    panels = figure.subplots(len(means), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, (label, values) in zip(panels, means.items(), strict=True):
        values = np.sort(values)
        bins = np.digitize(values, edges[1:-1])
        heights = np.arange(len(values)) - np.searchsorted(bins, bins) + 1  # place within its bin
        color = colors[label] if colors else COLORS["uniform"]
        axes.plot(values, heights, "o", color=color, markersize=6, clip_on=False)
        axes.axvline(np.median(values), color=color, linewidth=1, label="median")
        if threshold is not None:
            style = {"color": COLORS["quiet"], "linestyle": "--", "linewidth": 1}
            axes.axvline(threshold, **style, label=f"threshold {threshold:g}")
        axes.set_title(label)
        axes.set_ylabel("runs")
        axes.set(xlim=(0, edges[-1] * 1.02), ylim=(0, tallest + 1))
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    panels[0].legend(loc="upper left")
    panels[-1].set_xlabel("greedy score (mean over episodes)")
    show(figure, alt)


def sampler_color(sampler):
    """The colour of a `DQNConfig.sampler`."""
    return COLORS["per" if sampler == "proportional" else sampler]


def label_steps(axes):
    """Write the environment steps of the x axis as 0, 5k, 10k."""
    axes.set_xlabel("environment steps")
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(lambda x, _: f"{x / 1000:g}k" if x else "0")


def _history_alt(history):
    runs = len(history.seeds)
    many = f" of {runs} runs, each faint and their median bold" if runs > 1 else " of one run"
    return f"Score, loss and epsilon over {history.config.steps} environment steps{many}"


def draw_tree(axes, nodes, *, capacity=None, first_root=1, path=()):
    """Draw a tree of `SumTree.nodes`' form, or a forest: sums in circles, leaves in squares.

    The small number beside a node or under a leaf is its place in the array, [k] the leaf's index.

    Args:
        axes: where to draw; no axis remains.
        nodes: (2·leaves,) array, node i above the nodes 2i and 2i + 1. The number of leaves need not
            be a power of two.
        capacity: leaves in use (of each tree of a forest); the others are drawn as padding.
        first_root: the first root of a forest, whose top above it is drawn as cut off.
        path: numbers of nodes to pick out, with the edges between them.
    """
    leaves = len(nodes) // 2
    per_tree = leaves // first_root
    capacity = capacity or per_tree
    places = _tree_places(leaves)
    side = 25 if leaves <= 8 else 19  # of a node, in points
    for node in range(2 * first_root, 2 * leaves):
        on_path = node in path and node // 2 in path
        (x, y), (parent_x, parent_y) = places[node], places[node // 2]
        axes.plot(
            [parent_x, x],
            [parent_y, y],
            color=COLORS["path"] if on_path else COLORS["right" if node % 2 else "left"],
            linewidth=4 if on_path else 1.5,
            zorder=1,
        )
    for node, (x, y) in places.items():
        is_leaf, cut_off = node >= leaves, node < first_root
        unused = cut_off or (is_leaf and (node - leaves) % per_tree >= capacity)
        color = COLORS["path"] if node in path else "#C8C8C8" if unused else COLORS["priority"]
        axes.plot(
            x,
            y,
            marker="s" if is_leaf else "o",
            markersize=side,
            markerfacecolor="#FBE3EF" if node in path else "white",
            markeredgecolor=color,
            markeredgewidth=1.8 if node in path else 1.2,
            linestyle="none",
        )
        size = 9 if leaves <= 8 else 7.5
        value = "" if cut_off else f"{nodes[node]:.3g}"
        middle = {"ha": "center", "va": "center", "textcoords": "offset points"}
        axes.annotate(value, (x, y), (0, 0), fontsize=size, fontweight="bold", **middle)
        note = {"fontsize": size - 1.5, "color": "#6A6A6A", **middle}
        if is_leaf:
            axes.annotate(f"[{(node - leaves) % per_tree}]", (x, y), (0, -0.85 * side), **note)
            axes.annotate(node, (x, y), (0, -1.35 * side), **note)
        else:
            outside = side if node > 1 and node % 2 else -side  # where no edge comes from
            axes.annotate(node, (x, y), (0.85 * outside, 0.45 * side), **note)
    axes.set_axis_off()
    axes.margins(0.06, 0.25)


def _tree_places(leaves):
    """{node: (x, y)}: leaves side by side in the order of a walk from left to right."""
    places = {}
    left_to_right = itertools.count()

    def place(node, y):
        if node >= leaves:
            x = next(left_to_right)
        else:
            x = (place(2 * node, y - 1) + place(2 * node + 1, y - 1)) / 2
        places[node] = (x, y)
        return x

    place(1, 0)
    return places


def draw_shares(axes, values, prefixes=(), picked=()):
    """Draw values end to end on a line: each leaf's share of [0, total).

    Args:
        axes: where to draw.
        values: of the leaves, in order.
        prefixes: places on the line to mark with an arrow.
        picked: leaves to pick out.
    """
    start, total = 0.0, sum(values)
    for leaf, value in enumerate(values):
        if not value:
            continue
        chosen = leaf in picked
        axes.barh(
            0,
            value,
            left=start,
            height=0.6,
            color="#FBE3EF" if chosen else "white",
            edgecolor=COLORS["path" if chosen else "priority"],
            linewidth=1.8 if chosen else 1.2,
            zorder=3 if chosen else 2,
        )
        if value > 0.03 * total:  # no room in smaller ones
            axes.text(start + value / 2, 0, f"[{leaf}]", ha="center", va="center", size=8, zorder=4)
        start += value
    for prefix in prefixes:
        arrow = {"arrowstyle": "-|>", "color": COLORS["path"]}
        axes.annotate("", (prefix, 0.3), (prefix, 0.95), arrowprops=arrow, annotation_clip=False)
    axes.set(ylim=(-0.4, 1), yticks=[], xlim=(0, total))
    axes.grid(visible=False)
    axes.spines["left"].set_visible(False)
