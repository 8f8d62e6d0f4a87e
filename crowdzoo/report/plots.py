"""Plots of results as PNG files. Needs matplotlib (`pip install crowdzoo[plots]`)."""

from pathlib import Path
from typing import Any

from crowdzoo.errors import CrowdzooError
from crowdzoo.files.writing import atomic_file

DPI = 150
DARK = "#1d2b3a"
MUTED = "#8a94a0"


def plot_comparison(comparison: Any, path: str | Path) -> Path:
    """Plot each method's difference from the baseline with its 95 % interval; methods level with the best are dark.

    Args:
        comparison: result of `crowdzoo.compare`; failed methods are left out.
        path: path of the PNG file.

    Returns:
        The path.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise CrowdzooError("plots need matplotlib: pip install 'crowdzoo[plots]'") from error
    frame = comparison.frame.dropna(subset="score")
    figure = Figure(figsize=(7.6, 0.32 * len(frame) + 1.5), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)  # needs neither a screen nor pyplot's global state
    axes = figure.subplots()
    axes.axvline(0, color=DARK, linewidth=0.9, linestyle=(0, (4, 3)))
    for place, row in enumerate(frame.itertuples()):
        color = DARK if row.level else MUTED
        axes.plot([row.against_baseline_low, row.against_baseline_high], [place, place], color=color, linewidth=1.6)
        axes.plot(row.against_baseline, place, "o", color=color, markersize=5)
    axes.set_yticks(range(len(frame)), frame["method"])
    axes.invert_yaxis()
    title = f"{comparison.num_tasks:,} tasks; 95 % intervals, paired. Dark: level with the best"
    axes.set_title(title, loc="left", fontsize=9, color=DARK)
    axes.set_xlabel(f"{comparison.measure}, against {comparison.baseline}", fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", color="#e3e6ea", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8, color=MUTED)
    with atomic_file(path) as file:
        figure.savefig(file, format="png", facecolor="white", metadata={"Software": "crowdzoo"})
    return Path(path)
