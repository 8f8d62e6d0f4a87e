"""Pictures of results, written as PNG files. Needs matplotlib (`pip install crowdzoo[plots]`)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from crowdzoo.errors import CrowdzooError
from crowdzoo.files.writing import atomic_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 150
DARK = "#1d2b3a"
MUTED = "#8a94a0"


def plot_comparison(comparison: Any, path: str | Path) -> Path:
    """How far methods are from the baseline: a dot and a 95 % interval each; those level with the best are dark.

    Args:
        comparison: of `crowdzoo.compare`; methods that failed are left out.
        path: path of the PNG file.

    Returns:
        The path.
    """
    frame = comparison.frame.dropna(subset="score")
    figure = _figure(7.6, 0.32 * len(frame) + 1.5)
    axes = figure.subplots()
    axes.axvline(0, color=DARK, linewidth=0.9, linestyle=(0, (4, 3)))
    for place, row in enumerate(frame.itertuples()):
        color = DARK if row.level else MUTED
        axes.plot([row.against_baseline_low, row.against_baseline_high], [place, place], color=color, linewidth=1.6)
        axes.plot(row.against_baseline, place, "o", color=color, markersize=5)
    axes.set_yticks(range(len(frame)), frame["method"])
    axes.invert_yaxis()
    title = f"{comparison.num_tasks:,} tasks; 95 % intervals, paired. Dark: level with the best"
    _plain(axes, f"{comparison.measure}, against {comparison.baseline}", title=title, grid="x")
    return _save(figure, path)


def _figure(width: float, height: float) -> "Figure":
    """A figure that needs no screen and no global state of pyplot."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise CrowdzooError("plots need matplotlib: pip install 'crowdzoo[plots]'") from error
    figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _plain(axes: Any, x: str, y: str = "", title: str = "", grid: Literal["x", "y"] = "y") -> None:
    """Names of the axes, a title to the left, and a frame of two sides with thin lines across."""
    axes.set_xlabel(x, fontsize=8)
    axes.set_ylabel(y, fontsize=8)
    axes.set_title(title, loc="left", fontsize=9, color=DARK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=grid, color="#e3e6ea", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8, color=MUTED)


def _save(figure: "Figure", path: str | Path) -> Path:
    path = Path(path)
    with atomic_file(path) as file:
        figure.savefig(file, format="png", facecolor="white", metadata={"Software": "crowdzoo"})
    return path
