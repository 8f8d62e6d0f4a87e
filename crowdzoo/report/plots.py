"""Pictures of results, written as PNG files. Needs matplotlib (`pip install crowdzoo[plots]`)."""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from crowdzoo.errors import CrowdzooError
from crowdzoo.files.writing import atomic_file
from crowdzoo.report.fonts import draw_all_characters

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from crowdzoo.quality import QualityReport
    from crowdzoo.report.comparison import Comparison

SOFTWARE = "crowdzoo"  # as the PNG files' metadata say
DPI = 150
ONE_HUE = "#3b6ea5"
DARK = "#1d2b3a"
MUTED = "#8a94a0"
LONGEST_NAME = 24  # characters of a class beside a matrix
MOST_CLASSES = 30  # of a matrix whose names can still be read


def plot_accuracies(comparison: "Comparison", path: str | Path) -> Path:
    """Held-out accuracy of every method: a bar for the mean, a whisker for the standard deviation, a dot for each seed.

    Args:
        comparison: result of `crowdzoo.report.comparison.compare`.
        path: path of the PNG file.

    Returns:
        The path.
    """
    title = (
        f"{comparison.dataset}: the same base trained on different labels\n{comparison.num_train:,} training and "
        f"{comparison.num_eval:,} held-out tasks; mean ± standard deviation and each of {len(comparison.seeds)} seeds"
    )
    label = "accuracy on held-out tasks"
    return plot_scores(comparison.accuracies, path, label=label, title=title, baseline="majority")


def plot_scores(
    scores: Mapping[str, np.ndarray], path: str | Path, *, label: str, title: str, baseline: str | None = None
) -> Path:
    """Scores of several methods: a bar for the mean, a whisker for the standard deviation, a dot for each seed.

    Args:
        scores: method -> its scores, float [seeds], 0 to 1.
        path: path of the PNG file.
        label: label of the axis.
        title: title of the picture.
        baseline: method whose mean is drawn as a line through all bars; None for no line.

    Returns:
        The path.
    """
    methods = list(scores)
    figure = _figure(7.6, 0.55 * len(methods) + 1.5)
    axes = figure.subplots()
    for place, method in enumerate(methods):
        values = np.asarray(scores[method])
        mean, spread = values.mean(), values.std(ddof=1) if len(values) > 1 else 0.0
        axes.barh(place, mean, height=0.62, color=ONE_HUE, alpha=0.35)
        axes.errorbar(mean, place, xerr=spread, fmt="none", ecolor=DARK, elinewidth=1.2, capsize=4)
        offsets = np.linspace(-0.2, 0.2, len(values)) if len(values) > 1 else np.zeros(1)
        axes.plot(values, place + offsets, "o", color=ONE_HUE, markersize=3.5, markeredgewidth=0)
        axes.annotate(
            f"{mean:.3f} ± {spread:.3f}", (1.0, place), xytext=(8, 0), textcoords="offset points", va="center",
            fontsize=8, color=DARK, annotation_clip=False,
        )  # fmt: skip
    if baseline in methods:
        axes.axvline(np.mean(scores[baseline]), color=DARK, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.set_xlim(0, 1)
    axes.set_yticks(range(len(methods)), methods)
    axes.invert_yaxis()
    _plain(axes, label, title=title, grid="x")
    return _save(figure, path)


def plot_intervals(frame: Any, path: str | Path, *, label: str, title: str) -> Path:
    """How far methods are from a baseline: a dot and a 95 % interval each, sorted; those level with the best are dark.

    Args:
        frame: `Comparison.frame`; methods without numbers are left out.
        path: path of the PNG file.
        label: label of the axis.
        title: title of the picture.

    Returns:
        The path.
    """
    frame = frame.dropna(subset="score") if len(frame) else frame
    figure = _figure(7.6, 0.32 * len(frame) + 1.5)
    axes = figure.subplots()
    axes.axvline(0, color=DARK, linewidth=0.9, linestyle=(0, (4, 3)))
    for place, row in enumerate(frame.itertuples()):
        color = DARK if row.level else MUTED
        axes.plot([row.against_baseline_low, row.against_baseline_high], [place, place], color=color, linewidth=1.6)
        axes.plot(row.against_baseline, place, "o", color=color, markersize=5)
    axes.set_yticks(range(len(frame)), frame["method"])
    axes.invert_yaxis()
    _plain(axes, label, title=title, grid="x")
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
        learned: what a model says, same shape: shares such as `CrowdModel.calibrated_confusions` gives. The diagonal of
            `annotator_confusions` of a `CrowdsourcedLayer` is no share of right answers.
        counts: tasks of each true class that an annotator labelled, int [R, K].
        classes: names, [K].
        path: path of the PNG file.
        annotators: names, [R]; None is 0 ... R-1.
        shown: how many annotators.
        learned_name: heading of the learned matrices.

    Returns:
        The path.
    """
    order = np.argsort(-counts.sum(axis=1), kind="stable")[:shown]
    columns = min(3, len(order))
    lines = -(-len(order) // columns)
    below = 0.08 * max((len(_short(name)) for name in classes), default=0)  # names stand upright there
    figure = _figure(4.4 * columns + 1.4, 2.4 * lines + 1.3 + below)
    grid = figure.subplots(lines, 2 * columns, squeeze=False)
    nameless = [""] * len(classes)
    for place, annotator in enumerate(order):
        line, column = divmod(place, columns)
        seen = counts[annotator] > 0
        pair = [np.where(seen[:, None], true[annotator], np.nan), learned[annotator]]
        for side, (matrix, name) in enumerate(zip(pair, ("true", learned_name), strict=True)):
            axes = grid[line, 2 * column + side]
            left, lowest = column == side == 0, line == lines - 1
            image = _matrix(axes, matrix, classes if lowest else nameless, classes if left else nameless)
            axes.set_xlabel("said" if lowest else "", fontsize=8)
            axes.set_ylabel("true class" if left else "", fontsize=8)
            title = f"annotator {annotator if annotators is None else annotators[annotator]}, {name}"
            if side == 0:
                title += f"\n{counts[annotator].sum()} annotations"
            axes.set_title(title, fontsize=8, color=DARK, loc="left")
            for edge in axes.spines.values():
                edge.set_color(MUTED)
    for axes in grid.flat[2 * len(order) :]:
        axes.set_visible(False)
    title = "Confusion matrices of the annotators with most annotations: counted against gold, and learned"
    figure.suptitle(title, fontsize=10, color=DARK)
    bar = _color_bar(figure, image, grid.ravel().tolist(), "P(said | true class)", fraction=0.02, pad=0.01)
    bar.outline.set_visible(False)
    return _save(figure, path)


def plot_biases(
    true: np.ndarray, learned: Mapping[str, np.ndarray], counts: np.ndarray, path: str | Path, *, title: str
) -> Path:
    """What annotators of ratings lie above the truth on average: learned against counted by gold, a picture a method.

    Args:
        true: biases in the labels' unit, float [R], as of `annotator_biases_from_gold`.
        learned: method -> biases, same shape and unit. What all have in common is taken off, from both sides: no model
            can know it.
        counts: ratings by each annotator, int [R]; those without any are left out, and areas follow the number.
        path: path of the PNG file.
        title: title of the picture.

    Returns:
        The path.
    """
    seen = counts > 0
    weights = counts[seen] / counts.sum()
    size = 120 * counts[seen] / counts.max()
    x = true[seen] - weights @ true[seen]
    figure = _figure(3.8 * len(learned) + 0.4, 4.0)
    for axes, (name, biases) in zip(figure.subplots(1, len(learned), squeeze=False)[0], learned.items(), strict=True):
        y = biases[seen] - weights @ biases[seen]
        ends = [min(x.min(), y.min()), max(x.max(), y.max())]
        axes.plot(ends, ends, color=DARK, linewidth=0.9, linestyle=(0, (4, 3)))
        axes.scatter(x, y, s=size, color=ONE_HUE, alpha=0.6, linewidths=0)
        axes.set_title(name, loc="left", fontsize=9, color=DARK)
        axes.set(xlabel="bias against gold", ylabel="learned bias")
    figure.suptitle(title, fontsize=9, color=DARK)
    return _save(figure, path)


def plot_em_history(history: Sequence[float], path: str | Path, name: str = "Dawid-Skene") -> Path:
    """The objective of an aggregation before the first iteration and after each.

    Args:
        history: objective in nats, as in `Aggregation.history`.
        path: path of the PNG file.
        name: name of the algorithm.

    Returns:
        The path.
    """
    figure = _figure(6.0, 3.6)
    axes = figure.subplots()
    axes.plot(range(len(history)), history, color=ONE_HUE, linewidth=1.8)
    if history:
        axes.plot(len(history) - 1, history[-1], "o", color=ONE_HUE, markersize=5)
        axes.annotate(
            f"{history[-1]:,.1f} after {len(history) - 1} iterations", (len(history) - 1, history[-1]),
            xytext=(-6, -14), textcoords="offset points", ha="right", color=DARK,
        )  # fmt: skip
    _plain(axes, "iteration", "objective (nats)", f"{name}: log-likelihood and log prior")
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
    dots = people.scatter(
        table["annotations"].to_numpy(), table["agreement"].to_numpy(), c=shades, cmap=_shades(), vmin=0, vmax=1, s=18,
        edgecolors=MUTED, linewidths=0.6,
    )  # fmt: skip
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
        image = _matrix(classes, rows, names, names)
        classes.set_xlabel("others say", fontsize=8)
        classes.set_ylabel("one says", fontsize=8)
        _color_bar(figure, image, classes)
    alpha = "not defined" if report.alpha is None else str(report.alpha)
    annotations, tasks, annotators = (report.overall[name] for name in ("annotations", "tasks", "annotators"))
    title = f"{annotations:,} annotations of {tasks:,} tasks by {annotators:,} annotators"
    figure.suptitle(f"{title}; Krippendorff's alpha {alpha}", fontsize=10, color=DARK)
    return _save(figure, path)


def plot_training_curves(curves: Mapping[str, Mapping[str, Sequence[float]]], path: str | Path) -> Path:
    """Loss by epoch, a small panel for each method on one common scale; that of validation tasks is dashed.

    Args:
        curves: method -> metric -> values by epoch, as in `Comparison.curves`; "loss" and, where it is there,
            "val_loss" are drawn.
        path: path of the PNG file.

    Returns:
        The path.
    """
    figure = _figure(2.3 * len(curves) + 0.6, 2.9)
    grid = figure.subplots(1, len(curves), squeeze=False, sharey=True)[0]
    for axes, (method, metrics) in zip(grid, curves.items(), strict=True):
        for metric, name, style in (("loss", "training", "-"), ("val_loss", "validation", "--")):
            loss = metrics.get(metric, ())
            if len(loss):
                axes.plot(range(1, len(loss) + 1), loss, style, color=ONE_HUE, linewidth=1.6, label=name)
        axes.xaxis.get_major_locator().set_params(integer=True)
        _plain(axes, "epoch", "loss (nats a label)" if axes is grid[0] else "", method)
    grid[0].set_ylim(bottom=0)  # of all panels
    if any("val_loss" in metrics for metrics in curves.values()):
        grid[0].legend(fontsize=7, frameon=False)
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


def _matrix(axes: Any, shares: np.ndarray, below: Sequence[str], beside: Sequence[str]) -> Any:
    """Shares as shades, with the names of the columns below and those of the rows beside them."""
    image = axes.imshow(shares, vmin=0, vmax=1, cmap=_shades())
    axes.set_xticks(range(len(below)), map(_short, below), rotation=90)
    axes.set_yticks(range(len(beside)), map(_short, beside))
    axes.tick_params(length=2, labelsize=7, color=MUTED)
    return image


def _short(name: str) -> str:
    """A name of a class that leaves room for the matrix."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def _color_bar(
    figure: "Figure", image: Any, axes: Any, label: str = "", fraction: float = 0.05, pad: float = 0.02
) -> Any:
    bar = figure.colorbar(image, ax=axes, fraction=fraction, pad=pad)
    bar.set_label(label, fontsize=8)
    bar.ax.tick_params(labelsize=7)
    return bar


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
