"""Pictures of results, written as PNG files. Needs matplotlib (`pip install crowdzoo[plots]`)."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from crowdzoo.errors import CrowdzooError
from crowdzoo.files.writing import atomic_file
from crowdzoo.report.fonts import draw_all_characters

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from crowdzoo.quality import QualityReport

SOFTWARE = "crowdzoo"  # as the PNG files' metadata say
DPI = 150
ONE_HUE = "#3b6ea5"
DARK = "#1d2b3a"
MUTED = "#8a94a0"
LONGEST_NAME = 24  # characters of a class next to a matrix
MOST_CLASSES = 30  # of a matrix whose names can still be read


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


def plot_quality(report: "QualityReport", path: str | Path) -> Path:
    """Redundancy, how divided the votes are, annotators, and which classes are said of the same task.

    Panels: tasks by number of annotations; tasks of two annotations or more by normalised entropy of their votes;
    annotators by number of annotations and agreement with others, darker the higher the spammer score, where there is
    one (pale ones answer without regard to the task); and, for up to 30 classes, how often the others say l of a task
    of which one says k (rows sum to one; grey: never with others).

    Args:
        report: result of `crowdzoo.quality.quality_report`.
        path: path of the PNG file.

    Returns:
        The path.
    """
    names = [str(name) for name in report.classes["class"].to_pylist()]
    matrix = report.coincidences if len(names) <= MOST_CLASSES else None
    figure = _figure(8.4, 7.2 if matrix is not None else 6.6)
    (bars, divided), (people, classes) = figure.subplots(2, 2)

    spread = report.redundancy.tasks
    if len(spread.values):
        low, high = int(spread.values[0]), int(spread.values[-1])
        edges = np.arange(low, high + 2) - 0.5 if high - low < 50 else np.linspace(low - 0.5, high + 0.5, 41)
        bars.hist(spread.values, bins=edges, weights=spread.owners, color=ONE_HUE, rwidth=0.85)
    bars.xaxis.get_major_locator().set_params(integer=True)
    _plain(bars, "annotations a task", "tasks")

    entropies = report.tasks["entropy_normalised"].drop_null().to_numpy()
    divided.hist(entropies, bins=np.linspace(0, 1, 21), color=ONE_HUE, rwidth=0.9)
    _plain(divided, "entropy of the votes (0 unanimous, 1 all different)", "tasks of two annotations or more")

    table = report.annotators.filter(report.annotators["agreement"].is_valid())
    scored = "spammer_score" in table.column_names
    shades = table["spammer_score"].to_numpy() if scored else np.full(table.num_rows, 0.6)
    style: dict[str, Any] = {"cmap": _shades(), "vmin": 0, "vmax": 1, "s": 18, "edgecolors": MUTED, "linewidths": 0.6}
    dots = people.scatter(table["annotations"].to_numpy(), table["agreement"].to_numpy(), c=shades, **style)
    if table.num_rows:
        people.set_xscale("log")
    people.set_ylim(-0.03, 1.03)
    _plain(people, "annotations an annotator", "agreement with others")
    if scored:
        _color_bar(figure, dots, people, "spammer score (0 is a spammer)")

    if matrix is None:
        classes.set_visible(False)
    else:
        total = matrix.sum(axis=1, keepdims=True)
        rows = np.divide(matrix, total, out=np.full_like(matrix, np.nan), where=total > 0)
        image = classes.imshow(rows, vmin=0, vmax=1, cmap=_shades())
        labels = [*map(_short, names)]
        classes.set_xticks(range(len(labels)), labels, rotation=90)
        classes.set_yticks(range(len(labels)), labels)
        classes.tick_params(length=2, labelsize=7, color=MUTED)
        classes.set_xlabel("others say", fontsize=8)
        classes.set_ylabel("one says", fontsize=8)
        _color_bar(figure, image, classes)
    alpha = "not defined" if report.alpha is None else str(report.alpha)
    annotations, tasks, annotators = (report.overall[name] for name in ("annotations", "tasks", "annotators"))
    title = f"{annotations:,} annotations of {tasks:,} tasks by {annotators:,} annotators"
    figure.suptitle(f"{title}; Krippendorff's alpha {alpha}", fontsize=10, color=DARK)
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


def _shades() -> Any:
    """White to dark blue for 0 to 1, grey for what is not known."""
    from matplotlib.colors import LinearSegmentedColormap

    shades = LinearSegmentedColormap.from_list("shares", ["#ffffff", "#9dbcdc", ONE_HUE, DARK])
    return shades.with_extremes(bad="#e3e3e3")


def _short(name: str) -> str:
    """A name of a class that leaves room for the matrix."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def _color_bar(figure: "Figure", image: Any, axes: Any, label: str = "") -> None:
    bar = figure.colorbar(image, ax=axes, fraction=0.05, pad=0.02)
    bar.set_label(label, fontsize=8)
    bar.ax.tick_params(labelsize=7)


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
    draw_all_characters(figure)
    with atomic_file(path) as file, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # it is drawn as a box
        figure.savefig(file, format="png", facecolor="white", metadata={"Software": SOFTWARE})
    return path
