"""What a page shows: pictures, explorers, videos, checked exercises, and the stamp at its end.

Names are imported when they are first used, so that a notebook without videos loads no video
encoder, and one without sliders no widgets.
"""

from typing import TYPE_CHECKING

from per_tutorial.common.lazy import lazy_names

if TYPE_CHECKING:
    from per_tutorial.notebook.checking import check as check
    from per_tutorial.notebook.comparison_plots import draw_curves as draw_curves
    from per_tutorial.notebook.comparison_plots import draw_estimates as draw_estimates
    from per_tutorial.notebook.comparison_plots import rows_size as rows_size
    from per_tutorial.notebook.explorers import explore as explore
    from per_tutorial.notebook.explorers import gallery as gallery
    from per_tutorial.notebook.page import LiveFigure as LiveFigure
    from per_tutorial.notebook.page import budget as budget
    from per_tutorial.notebook.page import show as show
    from per_tutorial.notebook.page import stamp as stamp
    from per_tutorial.notebook.style import COLORS as COLORS
    from per_tutorial.notebook.style import label_steps as label_steps
    from per_tutorial.notebook.style import log_scale as log_scale
    from per_tutorial.notebook.style import sampler_color as sampler_color
    from per_tutorial.notebook.style import start_at_zero as start_at_zero
    from per_tutorial.notebook.style import use_style as use_style
    from per_tutorial.notebook.training_plots import LivePlot as LivePlot
    from per_tutorial.notebook.training_plots import draw_epsilon as draw_epsilon
    from per_tutorial.notebook.training_plots import draw_learning_curves as draw_learning_curves
    from per_tutorial.notebook.training_plots import draw_runs as draw_runs
    from per_tutorial.notebook.tree_pictures import draw_shares as draw_shares
    from per_tutorial.notebook.tree_pictures import draw_tree as draw_tree
    from per_tutorial.notebook.videos import record_episode as record_episode
    from per_tutorial.notebook.videos import save_video as save_video
    from per_tutorial.notebook.videos import show_video as show_video
    from per_tutorial.notebook.videos import video_file as video_file

_HOMES = {
    "page": ("LiveFigure", "budget", "show", "stamp"),
    "style": ("COLORS", "label_steps", "log_scale", "sampler_color", "start_at_zero", "use_style"),
    "training_plots": ("LivePlot", "draw_epsilon", "draw_learning_curves", "draw_runs"),
    "comparison_plots": ("draw_curves", "draw_estimates", "rows_size"),
    "tree_pictures": ("draw_shares", "draw_tree"),
    "explorers": ("explore", "gallery"),
    "videos": ("record_episode", "save_video", "show_video", "video_file"),
    "checking": ("check",),
}

__all__, __getattr__, __dir__ = lazy_names(__name__, _HOMES)
