"""Pictures of results, written as PNG files. Needs matplotlib (`pip install crowdzoo[plots]`)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from crowdzoo.errors import CrowdzooError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from crowdzoo.report.comparison import Comparison

__all__ = ["plot_accuracies", "plot_confusions", "plot_em_history", "plot_training_curves"]

DPI = 150
ONE_HUE = "#3b6ea5"
DARK = "#1d2b3a"
MUTED = "#8a94a0"


def plot_accuracies(comparison: "Comparison", path: str | Path) -> Path:
    """Held-out accuracy of every method: a bar for the mean, a whisker for the standard deviation, a dot for each seed.

    Args:
        comparison: result of `crowdzoo.report.comparison.compare`.
        path: of the PNG file.

    Returns:
        The path.
    """
    methods = list(comparison.accuracies)
    figure = _figure(7.6, 0.55 * len(methods) + 1.5)
    axes = figure.subplots()
    for place, method in enumerate(methods):
        values = comparison.accuracies[method]
        mean, spread = values.mean(), values.std(ddof=1) if len(values) > 1 else 0.0
        axes.barh(place, mean, height=0.62, color=ONE_HUE, alpha=0.35)
        axes.errorbar(mean, place, xerr=spread, fmt="none", ecolor=DARK, elinewidth=1.2, capsize=4)
        offsets = np.linspace(-0.2, 0.2, len(values)) if len(values) > 1 else np.zeros(1)
        axes.plot(values, place + offsets, "o", color=ONE_HUE, markersize=3.5, markeredgewidth=0)
        axes.annotate(
            f"{mean:.3f} ± {spread:.3f}",
            (1.0, place),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
            color=DARK,
            annotation_clip=False,
        )
    if "majority" in methods:
        axes.axvline(comparison.accuracies["majority"].mean(), color=DARK, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.set_xlim(0, 1)
    axes.set_yticks(range(len(methods)), methods)
    axes.invert_yaxis()
    axes.set_xlabel("accuracy on held-out tasks")
    axes.set_title(
        f"{comparison.dataset}: the same base trained on different labels\n"
        f"{comparison.num_train:,} training and {comparison.num_eval:,} held-out tasks; "
        f"mean ± standard deviation and each of {len(comparison.seeds)} seeds",
        loc="left",
        fontsize=9,
        color=DARK,
    )
    _plain(axes, grid="x")
    return _save(figure, path)


def plot_confusions(
    true: np.ndarray,
    learned: np.ndarray,
    counts: np.ndarray,
    classes: Sequence[str],
    path: str | Path,
    *,
    annotators: Sequence[Any] | None = None,
    shown: int = 6,
    learned_name: str = "learned",
) -> Path:
    """True and learned confusion matrices of the annotators with most annotations, side by side.

    Rows of a true matrix that the annotator had no task of are left grey.

    Args:
        true: shares counted against gold, `[annotator, true, said]` [R, K, K].
        learned: what a model says, same shape.
        counts: tasks of each true class that an annotator labelled, int [R, K].
        classes: names, [K].
        path: of the PNG file.
        annotators: names, [R]; None is 0 ... R-1.
        shown: how many annotators.
        learned_name: heading of the learned matrices.

    Returns:
        The path.
    """
    order = np.argsort(-counts.sum(axis=1), kind="stable")[:shown]
    columns = min(3, len(order))
    lines = -(-len(order) // columns)
    figure = _figure(4.4 * columns + 1.4, 2.4 * lines + 1.4)
    grid = figure.subplots(lines, 2 * columns, squeeze=False)
    shades = _shades()
    image = None
    for place, annotator in enumerate(order):
        line, column = divmod(place, columns)
        seen = counts[annotator] > 0
        pair = [np.where(seen[:, None], true[annotator], np.nan), learned[annotator]]
        for side, (matrix, name) in enumerate(zip(pair, ("true", learned_name), strict=True)):
            axes = grid[line, 2 * column + side]
            image = axes.imshow(matrix, vmin=0, vmax=1, cmap=shades)
            axes.set_xticks(range(len(classes)), classes if line == lines - 1 else [""] * len(classes), rotation=90)
            first = column == 0 and side == 0
            axes.set_yticks(range(len(classes)), classes if first else [""] * len(classes))
            axes.tick_params(length=2, labelsize=7, color=MUTED)
            title = f"annotator {annotator if annotators is None else annotators[annotator]}, {name}"
            if side == 0:
                title += f"\n{counts[annotator].sum()} annotations"
            axes.set_title(title, fontsize=8, color=DARK, loc="left")
            for edge in axes.spines.values():
                edge.set_color(MUTED)
            if first:
                axes.set_ylabel("true class", fontsize=8)
            if line == lines - 1:
                axes.set_xlabel("said", fontsize=8)
    for axes in grid.flat[2 * len(order) :]:
        axes.set_visible(False)
    figure.suptitle(
        "Confusion matrices of the annotators with most annotations: counted against gold, and learned",
        fontsize=10,
        color=DARK,
    )
    if image is not None:
        bar = figure.colorbar(image, ax=grid.ravel().tolist(), fraction=0.02, pad=0.01)
        bar.set_label("P(said | true class)", fontsize=8)
        bar.ax.tick_params(labelsize=7)
        bar.outline.set_visible(False)  # type: ignore[operator]
    return _save(figure, path)


def plot_em_history(history: Sequence[float], path: str | Path, name: str = "Dawid-Skene") -> Path:
    """The objective of an aggregation before the first iteration and after each.

    Args:
        history: objective in nats, as in `Aggregation.history`.
        path: of the PNG file.
        name: of the algorithm.

    Returns:
        The path.
    """
    figure = _figure(6.0, 3.6)
    axes = figure.subplots()
    axes.plot(range(len(history)), history, color=ONE_HUE, linewidth=1.8)
    if history:
        axes.plot(len(history) - 1, history[-1], "o", color=ONE_HUE, markersize=5)
        axes.annotate(
            f"{history[-1]:,.1f} after {len(history) - 1} iterations",
            (len(history) - 1, history[-1]),
            xytext=(-6, -14),
            textcoords="offset points",
            ha="right",
            color=DARK,
        )
    axes.set_xlabel("iteration")
    axes.set_ylabel("objective (nats)")
    axes.set_title(f"{name}: log-likelihood and log prior", loc="left", fontsize=9, color=DARK)
    _plain(axes)
    return _save(figure, path)


def plot_training_curves(curves: Mapping[str, Mapping[str, Sequence[float]]], path: str | Path) -> Path:
    """Training loss by epoch, a small panel for each method, since their losses are on different scales.

    Args:
        curves: method -> metric -> values by epoch, as in `Comparison.curves`; only the metric "loss" is drawn.
        path: of the PNG file.

    Returns:
        The path.
    """
    figure = _figure(2.3 * len(curves) + 0.6, 2.9)
    grid = figure.subplots(1, len(curves), squeeze=False)[0]
    for axes, (method, metrics) in zip(grid, curves.items(), strict=True):
        loss = metrics["loss"]
        axes.plot(range(1, len(loss) + 1), loss, color=ONE_HUE, linewidth=1.6)
        axes.set_ylim(bottom=0)
        axes.set_title(method, loc="left", fontsize=9, color=DARK)
        axes.set_xlabel("epoch")
        _plain(axes)
    grid[0].set_ylabel("training loss (nats a label)")
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


def _plain(axes: Any, grid: Literal["x", "y"] = "y") -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(axis=grid, color="#e3e6ea", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8, color=MUTED)
    axes.xaxis.label.set_size(8)
    axes.yaxis.label.set_size(8)


def _save(figure: "Figure", path: str | Path) -> Path:
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, facecolor="white")
    return path
