"""The look of the series: one style, and one colour for each concept."""

import itertools

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from per_tutorial.common.arguments import float_array
from per_tutorial.experiments.estimates import bootstrap_interval
from per_tutorial.notebook.page import LiveFigure, show

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

THRESHOLD_STYLE = {"color": COLORS["quiet"], "linestyle": "--", "linewidth": 1, "zorder": 1}

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
    _start_at_zero(score_axes)
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
    """Draw the learning curves of `History` objects with `draw_curves`.

    Args:
        axes: where to draw.
        histories: {label: `History`}; the runs of each are the sample.
        colors: {label: colour}; by default that of the sampler.
        statistic, threshold: as in `draw_curves`.
        window: the score is the mean return of this many episodes, the last ones of a run.
        points: steps at which curves and intervals are computed.
    """
    curves = {}
    for label, history in histories.items():
        grid = np.linspace(0, history.step, points + 1)[1:].astype(int)
        curves[label] = grid, history.learning_curve(grid, window)
    draw_curves(
        axes,
        curves,
        colors=colors or {label: sampler_color(h.config.sampler) for label, h in histories.items()},
        linestyles={label: network_linestyle(h.config) for label, h in histories.items()},
        statistic=statistic,
        threshold=threshold,
    )
    axes.set_ylabel(f"score (mean of {window} episodes)")


# Comparisons -------------------------------------------------------------------------------------


def draw_curves(axes, curves, *, colors, statistic=np.mean, threshold=None, linestyles=None):
    """Draw curves to compare: every run faint, a statistic over runs bold, in its interval.

    The band is the 95 % bootstrap interval of the statistic, over runs, at each step by itself. A
    curve begins where all of its runs have a value: a statistic of the quicker ones would mislead.

    Args:
        axes: where to draw.
        curves: {label: (grid (points,) of environment steps, values (points, runs))}; NaN where a
            run has no value yet.
        colors: {label: colour}.
        statistic: function(values, axis=-1), such as `np.mean`, `np.median` or
            `interquartile_mean`.
        threshold: a value to mark by a dashed line.
        linestyles: {label: linestyle} of the statistic; solid by default.
    """
    faint = min(1, 4 / len(curves))  # more arms, thinner fog
    for label, (grid, values) in curves.items():
        started = ~np.isnan(values).any(axis=1)
        steps, values = np.asarray(grid)[started], values[started]
        low, high = bootstrap_interval(values, axis=-1, statistic=statistic)
        color = colors[label]
        style = linestyles[label] if linestyles else "-"
        axes.plot(steps, values, color=color, alpha=0.2 * faint, linewidth=0.7)
        axes.fill_between(steps, low, high, color=color, alpha=0.25 * faint, linewidth=0)
        axes.plot(steps, statistic(values, axis=-1), color=color, linestyle=style, label=label)
    if threshold is not None:
        axes.axhline(threshold, **THRESHOLD_STYLE, label=f"threshold {threshold:g}")
    axes.set_xlim(0, max(grid[-1] for grid, _ in curves.values()))
    _start_at_zero(axes)
    label_steps(axes)
    if len(curves) <= 4:
        axes.legend(loc="lower right")
    else:  # it would cover what is drawn
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")


def draw_estimates(axes, estimates, *, colors=None, reference=0.0, number="+.1f"):
    """Draw estimates with their intervals, one to a row, and their numbers at the right.

    Filled and thick where the interval leaves out the reference, hollow and thin where it does not.

    Args:
        axes: where to draw; `rows_size` tells how much room it takes.
        estimates: {label: `Estimate`}, from top to bottom.
        colors: {label: colour}; that of PER by default.
        reference: what means "no difference", marked by a line: 0 for differences, 0.5 for a
            probability of improvement; None for estimates that are compared with nothing.
        number: format of the numbers.
    """
    for row, (label, (value, low, high)) in enumerate(estimates.items()):
        color = colors[label] if colors else COLORS["per"]
        settled = reference is None or not low <= reference <= high
        line = {"color": color, "linewidth": 3.5 if settled else 1.2, "solid_capstyle": "butt"}
        axes.plot([low, high], [row, row], **line)
        face = color if settled else "white"
        axes.plot(value, row, "o", color=color, markerfacecolor=face, markersize=7, clip_on=False)
        text = f"{value:{number}} [{low:{number}}, {high:{number}}]".replace("-", "−")
        right = axes.get_yaxis_transform()
        axes.text(1.03, row, text, transform=right, va="center", fontsize="small")
    if reference is not None:
        axes.axvline(reference, color="black", linewidth=1, zorder=1)
    _label_rows(axes, estimates)


def draw_scores(axes, scores, *, colors=None, statistic=np.median, threshold=None):
    """Draw how the scores of runs spread, one arm to a row: a dot for each run, stacked where many
    agree, and a statistic of them as a tick.

    Args:
        axes: where to draw; `rows_size` tells how much room it takes.
        scores: {label: (runs,) scores}, from top to bottom; the numbers of runs may differ.
        colors: {label: colour}; that of uniform replay by default.
        statistic: function(values), such as `np.median`, `np.mean` or `interquartile_mean`.
        threshold: a score to mark by a dashed line.
    """
    edges = np.histogram_bin_edges(np.concatenate(list(scores.values())), bins=60)
    tallest = max(np.histogram(values, edges)[0].max() for values in scores.values())
    spacing = min(0.16, 0.8 / tallest)  # of dots in a stack, in rows; stacks never meet
    for row, (label, values) in enumerate(scores.items()):
        values = np.sort(values)
        bins = np.digitize(values, edges[1:-1])
        place = np.arange(len(values)) - np.searchsorted(bins, bins)  # 0, 1, … within its bin
        aside = (place + 1) // 2 * (-1) ** place  # 0, −1, 1, −2, …: from the middle to both sides
        color = colors[label] if colors else COLORS["uniform"]
        style = {"color": color, "markersize": 4.5, "markeredgewidth": 0, "alpha": 0.7}
        axes.plot(values, row + spacing * aside, "o", **style)
        middle = statistic(values)
        name = statistic.__name__.replace("_", " ") if row == 0 else None
        axes.plot([middle, middle], [row - 0.42, row + 0.42], color="black", label=name)
    if threshold is not None:
        axes.axvline(threshold, **THRESHOLD_STYLE, label=f"threshold {threshold:g}")
    axes.set_xlabel("score")
    axes.margins(x=0.02)
    _label_rows(axes, scores)
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0)


def draw_grid(axes, matrix, rows, columns, *, number=".0f", **options):
    """Draw a matrix of results as a heat map with the numbers in it, brighter where they are higher.

    Args:
        axes: where to draw; set its labels and title yourself.
        matrix: (rows, columns) results; NaN where there is none.
        rows, columns: what to write beside and below it.
        number: format of the numbers.
        options: of `Axes.imshow`, such as ``vmin`` and ``vmax`` for grids to be compared.

    Raises:
        ValueError: the matrix has another shape.
    """
    matrix = float_array("matrix", matrix)
    if matrix.shape != (len(rows), len(columns)):
        shape = (len(rows), len(columns))
        raise ValueError(f"matrix: must have the shape {shape}, got {matrix.shape}")
    # Even to the eye and the same to colour-blind ones.
    image = axes.imshow(matrix, **{"cmap": "cividis", "aspect": "auto", **options})
    for (row, column), value in np.ndenumerate(matrix):
        missing = np.isnan(value)
        dark = not missing and np.dot(image.to_rgba(value)[:3], (0.3, 0.6, 0.1)) < 0.46
        axes.text(
            column,
            row,
            "–" if missing else f"{value:{number}}".replace("-", "−"),
            color="white" if dark else "black",
            ha="center",
            va="center",
        )
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    axes.grid(visible=False)


def plot_greedy_scores(scores, alt, *, colors=None, threshold=None, width=7.0):
    """Show how the greedy scores of runs spread, with `draw_scores`.

    Args:
        scores: {label: (runs, episodes)}, such as `evaluate` returns; a row each. A run's score is
            the mean of its episodes.
        alt: alternative text.
        colors, threshold: as in `draw_scores`.
        width: of the picture, in inches.
    """
    means = {label: np.asarray(episodes).mean(axis=1) for label, episodes in scores.items()}
    figure = Figure(figsize=rows_size(len(means), width))
    axes = figure.subplots()
    draw_scores(axes, means, colors=colors, threshold=threshold)
    axes.set_xlabel("greedy score (mean over episodes)")
    show(figure, alt)


def rows_size(rows, width=7.0):
    """The size of a figure that holds so many rows of `draw_estimates` or `draw_scores`, in inches."""
    return width, 1.0 + 0.42 * rows


def _label_rows(axes, labels):
    """Write the labels beside rows 0, 1, …, the first at the top."""
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")


def _start_at_zero(axes):
    """Let the y axis begin at 0, unless something drawn is below."""
    if axes.dataLim.y0 >= 0:
        axes.set_ylim(bottom=0)


def sampler_color(sampler):
    """The colour of a `DQNConfig.sampler`."""
    return COLORS["per" if sampler == "proportional" else sampler]


def network_linestyle(config):
    """The linestyle of a `DQNConfig`'s network: solid for DQN, dashed for double, dotted for
    dueling, dash-dotted for both."""
    if config.dueling:
        return "-." if config.double else ":"
    return "--" if config.double else "-"


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
        if value > 0.045 * total:  # no room in smaller ones
            axes.text(start + value / 2, 0, f"[{leaf}]", ha="center", va="center", size=8, zorder=4)
        start += value
    for prefix in prefixes:
        arrow = {"arrowstyle": "-|>", "color": COLORS["path"]}
        axes.annotate("", (prefix, 0.3), (prefix, 0.95), arrowprops=arrow, annotation_clip=False)
    axes.set(ylim=(-0.4, 1), yticks=[], xlim=(0, total))
    axes.grid(visible=False)
    axes.spines["left"].set_visible(False)
