"""The look of the series: one colour for each concept."""

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import AutoLocator, LogLocator, MaxNLocator, NullFormatter

# Dark enough for text on white, and distinct for colour-blind readers where two appear together.
# Formulas have none: no colour can be read both on white and on the black of a dark theme.
SAMPLER_COLORS = {
    "uniform": "#0072B2",
    "proportional": "#D55E00",
    "rank": "#661A66",
    "lap": "#8A5A00",
    "reaper": "#117733",
    "laber": "#5D4FB3",
}
COLORS = {
    "uniform": SAMPLER_COLORS["uniform"],
    "per": SAMPLER_COLORS["proportional"],
    "rank": SAMPLER_COLORS["rank"],
    "alpha": "#7A7A1F",
    "beta": "#332288",
    "epsilon": "#946300",
    "td_error": "#882255",
    "priority": SAMPLER_COLORS["proportional"],  # the colour of PER, which draws by it
    "weight": "#00857A",
    "return": "#333333",
    "loss": "#CC6677",
    "path": "#C2307A",
    "left": "#3A8FC8",
    "right": "#C47F00",
    "quiet": "#8A8A8A",  # reference lines, frames and the like
}


def use_style() -> None:
    """Set matplotlib's defaults to the style of the series."""
    plt.rcParams.update(
        {
            "figure.figsize": (7.0, 3.6),
            "figure.dpi": 100,
            "figure.facecolor": "white",
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
            # A bar ends where its interval ends; the default adds half a line width at each end.
            "lines.solid_capstyle": "butt",
            "legend.frameon": False,
        }
    )


def sampler_color(sampler: str | None) -> str:
    """The colour of a `History.sampler`; grey if it has none in `SAMPLER_COLORS`."""
    return SAMPLER_COLORS.get(sampler or "", COLORS["quiet"])


def label_steps(axes: Axes) -> None:
    """Label the x axis in environment steps: 0, 5k, 10k."""
    axes.set_xlabel("environment steps")
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(lambda x, _: f"{x / 1000:g}k" if x else "0")


def start_at_zero(axes: Axes) -> None:
    """Start the y axis at 0, unless something drawn is below."""
    if axes.dataLim.y0 >= 0:
        axes.set_ylim(bottom=0)


def log_scale(axes: Axes) -> None:
    """Give the y axis a log scale, with ticks whatever it spans; call it when all is drawn."""
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    if high < 1000 * low:  # beyond, Matplotlib's own ticks are enough: powers of ten
        ticks = LogLocator(subs=(1, 2, 5)) if high > 10 * low else AutoLocator()
        axes.yaxis.set_major_locator(ticks)
        axes.yaxis.set_major_formatter("{x:g}")  # shorter than 5 × 10⁻¹
        axes.yaxis.set_minor_formatter(NullFormatter())
