"""compare: scores methods on your own data, to choose one of them."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from crowdzoo.comparison.intervals import bootstrap
from crowdzoo.comparison.runs import Run, Runs
from crowdzoo.comparison.setup import GOLD, Labels, Method, Methods, Setup
from crowdzoo.comparison.tracking import check_tracking, log_comparison
from crowdzoo.data.crowd_sequences import annotations_of
from crowdzoo.data.label_kinds import require_annotations
from crowdzoo.errors import ConfigError, CrowdzooError, DataError
from crowdzoo.kinds import kind_of
from crowdzoo.kinds.measure import Scores
from crowdzoo.kinds.scoring import linearised
from crowdzoo.quality.figures import interval

if TYPE_CHECKING:
    import keras
    import pandas as pd

    from crowdzoo.training.pair_rows import Examples
    from crowdzoo.training.settings import Settings


@dataclass(frozen=True, eq=False)
class Comparison:
    """Scores of several methods, best first.

    Attributes:
        frame: one row per method: `method`, `score`, `against_baseline` with the ends of its 95 % interval
            (`against_baseline_low`, `..._high`), `behind_best` with its ends, `level` (whether the interval of
            `behind_best` contains 0), further figures if there is gold, `seconds` (median time of a run), `notes`.
            Methods that failed come last, without numbers.
        measure: name of the measure in `score`; higher is better.
        has_gold: whether methods are scored with gold.
        baseline: the method that the others are compared with.
        num_tasks: number of tasks scored.
        scores: method -> score of each task by seed, [S, n]; the mean is `score`.
        best: the method with the highest score; never "gold".
        methods: the methods by title.
    """

    frame: pd.DataFrame
    measure: str
    has_gold: bool
    baseline: str
    num_tasks: int
    scores: Mapping[str, Scores]
    best: Method
    methods: Mapping[str, Method]

    def table(self) -> tuple[str, list[str], list[list[str]]]:
        """Title, header and rows for `crowdzoo.report.tables.print_table`."""
        frame = self.frame
        figures = list(frame.columns[frame.columns.get_loc("level") + 1 : frame.columns.get_loc("seconds")])
        header = ["method", self.measure, f"against {self.baseline}", "behind the best", *figures, "seconds", "notes"]
        rows = []
        for row in frame.to_dict("records"):
            if row["score"] != row["score"]:  # a failed method
                rows.append([row["method"], *["-"] * (len(header) - 2), row["notes"]])
                continue
            cells = [f"{row['score']:.3f}", *(_interval(row, name) for name in ("against_baseline", "behind_best"))]
            cells += [f"{row[name]:.3f}" for name in figures]
            rows.append([row["method"], *cells, f"{row['seconds']:.2f}", row["notes"]])
        if not frame["notes"].any():
            header, rows = header[:-1], [row[:-1] for row in rows]
        return f"{self.num_tasks:,} tasks, intervals of 95 %", header, rows

    def __repr__(self) -> str:
        return f"<Comparison of {len(self.frame)} methods by {self.measure}, the best: {self.best.title}>"


def _interval(row: Mapping[str, Any], name: str) -> str:
    value, low, high = (row[f"{name}{end}"] for end in ("", "_low", "_high"))
    return "0" if value == low == high == 0 else f"{value:+.3f} [{low:+.3f}, {high:+.3f}]"


def compare(
    annotations: Any,
    instances: Examples | None = None,
    gold: ArrayLike | None = None,
    *,
    methods: Methods = "quick",
    base: keras.Model | Callable[..., keras.Model] | None = None,
    settings: Settings | None = None,
    tasks: ArrayLike | None = None,
    held_out: ArrayLike | None = None,
    seeds: Iterable[int] = (0,),
    folder: str | Path | None = None,
    track: str | None = None,
    on_run: Callable[[int, int], object] = lambda done, total: None,
    **scale: Any,
) -> Comparison:
    """Compare methods on your own data.

    **Without instances**, aggregation methods are compared. With gold, each is fitted to all annotations and its
    answers are scored. Without gold, each fifth of the annotations is hidden in turn, but at least one annotation per
    task is kept. The score is then the log-probability of the hidden annotations, given the result on the others and
    the annotators' confusion matrices (for ratings, biases and precisions). These are the same for all methods, from
    `hierarchical-dawid-skene` or `rating-em` on all annotations; for preferences, each method uses its own.

    **With instances**, deep methods are compared on the same base; an aggregation scores what the base scores when
    trained on its result. Each fifth of the tasks is hidden in turn and predicted by the models. Predictions are scored
    with gold or, without it, by the log-probability of the hidden tasks' annotations.

    | labels | score with gold | without |
    |---|---|---|
    | classes | share of correct tasks | log-probability |
    | ratings | absolute error, negative | log-probability |
    | preferences | share of pairs of tasks in the same order as in gold | log-probability |
    | free texts | edits per word of gold, negative | edits per word of the hidden texts, negative |
    | regions | Dice coefficient | Dice coefficient with hidden answers |
    | sentences | F1 of spans over all sentences | |
    | several labels per task | F1 of labels over all tasks | |

    Hidden annotations show which method predicts annotators best. If annotators agree on wrong answers, that is not the
    most accurate method, and a method far behind may be the best with gold. For ratings, the log-probability favours
    small squared errors, while gold counts absolute ones. Provide gold for a few hundred tasks if you can.

    Args:
        annotations: `Annotations`; for sentences `CrowdSequences`.
        instances: as for `train`; None compares only aggregations. Sentences are their own instances: pass settings of
            a tagger, such as `settings=TaggerSettings()`, to compare deep methods. Networks for masks are compared on
            the command line.
        gold: one entry per row of the instances, or per task of `annotations.tasks` without instances: class codes (-1
            unknown), ratings or true scores of preferences (NaN unknown), texts or regions as text (empty unknown). For
            sentences, tags or their codes (None unknown); by default the sentences' own gold. For several labels per
            task, by label, as `MultiLabel.fit` accepts it.
        methods: "quick", "all", or names, optionally with settings ("crowdsourced-layer connection=VW"), or tuples of a
            name and settings. The baseline (majority-vote, mean) is always compared.
        base: a Keras model for feature vectors (copied with new weights for each training), or a function that creates
            one from a `BaseContext`. None is the base named in the settings, the only choice for sentences and regions.
        settings: training settings, such as `TextSettings(epochs=20)`; None is `TrainingSettings()`. Their method,
            arguments and seed are ignored.
        tasks: ids of the rows of the instances; see `CrowdModel.fit`.
        held_out: rows of the instances to hide instead of each fifth in turn, bool [N].
        seeds: seeds of the methods and of the choice of hidden data.
        folder: folder for `runs.parquet`, which stores each run when it is done. With the same data and settings a
            comparison resumes from it, also with further methods and seeds. None stores nothing.
        track: "mlflow" or "tensorboard" logs the parameters and figures of each method and the plot; see
            `crowdzoo.comparison.tracking.track`.
        on_run: called after each run with the number of finished runs and the total.
        **scale: settings shared by all aggregations: for ratings `low` and `high`, the ends of the scale; for free
            texts `normalize` and `unit`, which also define how errors are counted. With instances, put them into
            `settings`.

    Returns:
        The comparison. Its intervals are paired and resample the tasks. For deep methods they apply to the models
        trained, and so to the mean over the seeds: use several seeds if results vary between trainings.

    Raises:
        ConfigError: an unknown method or setting, or a folder with other runs.
        DataError: unsupported labels, gold that does not match, or too few tasks.

    Source:
        Intervals of cross-validation by the variance over all tasks: P. Bayle et al.: Cross-validation confidence
        intervals for test error. NeurIPS 2020, theorem 1 and equation 4.

    Example:
        >>> import crowdzoo
        >>> labelme = crowdzoo.datasets.load_labelme()
        >>> comparison = crowdzoo.compare(labelme.annotations, gold=labelme.gold, methods=["dawid-skene", "wawa"])
        >>> comparison.best.name, round(float(comparison.frame.loc[0, "score"]), 3)
        ('dawid-skene', 0.795)
    """
    crowd = annotations_of(annotations)
    require_annotations(crowd, "compare")
    kind = kind_of("multi-label" if isinstance(gold, Mapping) else crowd.kind)
    seeds = [int(seed) for seed in seeds]
    if not seeds:
        raise ConfigError("compare: seeds is empty; give one seed or more, such as range(3).")
    if instances is None and not (kind.measure.labels_instances and settings is not None):
        if base is not None or settings is not None or held_out is not None or tasks is not None:
            raise ConfigError("compare: base, settings, tasks and held_out are for deep methods: give instances, too.")
        shared = {name: value for name, value in scale.items() if value is not None}
        for name in shared:
            if name not in kind.options.scale:
                raise ConfigError(f"compare: {name}: is not for {kind.title}; leave it out.")
        setup: Setup = Labels(kind, annotations, gold, shared)
    else:
        from crowdzoo.comparison.deep import Trainings

        if scale:
            raise ConfigError(f"compare: with instances {', '.join(scale)}: give TrainingSettings(low=…, high=…).")
        setup = Trainings(kind, annotations, gold, instances, base, settings, tasks, held_out)
    chosen = setup.methods(methods)
    if setup.gold is None:
        setup.evidence(seeds[0], 0)  # may reject the data before the first run
    place = None if folder is None else Path(folder)
    if track is not None:
        check_tracking(track, place)
    runs = Runs(None, {}) if place is None else Runs(place, setup.identity())
    missing = [
        (seed, part, method)
        for seed in seeds
        for part in range(setup.num_parts)
        for method in chosen
        if (setup.key(method), seed, part) not in runs
    ]
    total = len(seeds) * setup.num_parts * len(chosen)
    if missing and isinstance(setup, Labels):
        _run(setup, chosen[0], *missing[0][:2])  # the quick baseline, so that no run's time includes the imports
    for done, (seed, part, method) in enumerate(missing, total - len(missing) + 1):
        runs.add(_run(setup, method, seed, part))
        on_run(done, total)
    comparison = _summary(setup, chosen, runs, seeds)
    if track is not None:
        log_comparison(track, comparison, place, {"kind": setup.kind.name, "seeds": len(seeds), **setup.parameters()})
    return comparison


def _run(setup: Setup, method: Method, seed: int, part: int) -> Run:
    """Run a method once and record its warnings."""
    key, started = setup.key(method), time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            tasks, answers = setup.run(method, seed, part)
            if not np.isfinite(answers).all():
                raise DataError("some of its answers are not numbers")
        except Exception as error:
            foreseen = isinstance(error, CrowdzooError)
            if not foreseen and not any(table.is_added(method.name) for table in setup.tables()):
                raise
            reason = str(error) if foreseen else f"{type(error).__name__}: {error}"
            no_answers = np.empty(0, int), np.empty((0, 0))
            return Run(key, seed, part, time.perf_counter() - started, *no_answers, [], reason)
    seconds = time.perf_counter() - started
    own = [warning.message for warning in caught if warning.category.__module__.startswith("crowdzoo.")]
    faults = [_first_sentence(message) for message in own]
    return Run(key, seed, part, seconds, tasks, answers, faults)


def _first_sentence(message: Warning | str) -> str:
    """First sentence of a warning, without the name of the method."""
    notes: tuple[str, ...] = getattr(message, "notes", ())
    text = notes[0] if notes else str(message)
    return text.partition(". ")[0].rstrip(".")


@dataclass(frozen=True)
class _Scored:
    """Scores of a method's runs.

    Attributes:
        totals: contribution of each task to the sum of scores, by seed, [S, N].
        weights: contribution of each task to the sum of weights, by seed, [S, N].
        figures: further measures against gold, means over the seeds.
        notes: warnings of the runs; if there are none, problems with the answers of a seed.
        runs: the runs by seed and part.
    """

    totals: Scores
    weights: Scores
    figures: dict[str, float]
    notes: list[str]
    runs: list[list[Run]]

    @property
    def by_task(self) -> Scores:
        """Scores whose mean is the measure, [S, n]."""
        scores: Scores = self.totals / self.weights.mean(axis=1, keepdims=True)
        return scores


def _score_method(setup: Setup, runs: list[list[Run]], seeds: Sequence[int]) -> _Scored:
    """Score one method, given its runs by seed and part, none of which failed."""
    measure = setup.measure
    shape = len(seeds), setup.annotations.num_tasks
    totals, weights, figures, counted = np.zeros(shape), np.zeros(shape), [], np.zeros(shape[1], bool)
    notes: dict[str, str] = {}  # one of several that differ only in numbers
    for fault in (fault for seed_runs in runs for run in seed_runs for fault in run.faults):
        notes.setdefault(re.sub(r"\d+(\.\d+)?", "", fault), fault)
    for place, (seed, seed_runs) in enumerate(zip(seeds, runs, strict=True)):
        tasks = np.concatenate([run.tasks for run in seed_runs])
        answers = np.concatenate([run.answers for run in seed_runs])
        if not notes:
            notes |= {fault: fault for fault in measure.faults(answers, tasks)}
        for run in seed_runs:
            score = measure.sums if setup.gold is not None else setup.evidence(seed, run.part)
            for sums, values in zip((totals, weights), score(run.answers, run.tasks), strict=True):
                sums[place, run.tasks] += values
        if setup.gold is not None:
            figures.append(measure.further(answers, tasks))
            counted[tasks] = measure.known[tasks]
    counted |= weights.any(axis=0)
    if not weights.any(axis=1).all():
        raise DataError("compare: gold tells no answers apart, as all of it is the same. Give gold of more tasks.")
    means = {name: float(np.mean([row[name] for row in figures])) for name in (figures[0] if figures else ())}
    return _Scored(totals[:, counted], weights[:, counted], means, list(notes.values()), runs)


def _summary(setup: Setup, methods: Sequence[Method], runs: Runs, seeds: Sequence[int]) -> Comparison:
    """Build the comparison once all runs are done."""
    import pandas as pd

    scored, failed = {}, {}
    for method in methods:
        runs_by_seed = [[runs.get(setup.key(method), seed, part) for part in range(setup.num_parts)] for seed in seeds]
        reasons = [run.failed for seed_runs in runs_by_seed for run in seed_runs if run.failed]
        if reasons:
            failed[method.title] = reasons[0]
        else:
            scored[method.title] = _score_method(setup, runs_by_seed, seeds)
    by_task = {title: score.by_task for title, score in scored.items()}
    if not scored:
        raise DataError(f"compare: every method failed. {methods[0].title}: {failed[methods[0].title]}")
    order = sorted(scored, key=lambda title: -by_task[title].mean())
    baseline = setup.measure.baseline
    methods_by_title = {method.title: method for method in methods}
    best = next((title for title in order if methods_by_title[title].name != GOLD), order[0])
    rows = []
    for title in order:
        score, row = scored[title], dict[str, Any]()
        for name, other in (("against_baseline", baseline), ("behind_best", best)):
            pair = [method_scores for method_scores in (score, scored.get(other)) if method_scores]
            both = [linearised(one.totals, one.weights, setup.measure.drawn) for one in pair]
            ends = bootstrap(*both) if other in scored else (np.nan,) * 3
            row |= interval(name, *ends)
        method_runs = [run for seed_runs in score.runs for run in seed_runs]
        rows.append(
            {
                "method": title,
                "score": float(by_task[title].mean()),
                **row,
                "level": row["behind_best_high"] >= 0,
                **score.figures,
                "seconds": float(np.median([run.seconds for run in method_runs])),
                "notes": "; ".join(score.notes),
            }
        )
    rows += [{"method": title, "level": False, "notes": f"failed: {reason}"} for title, reason in failed.items()]
    return Comparison(
        frame=pd.DataFrame(rows),
        measure=setup.measure.hidden_title if setup.gold is None else setup.measure.title,
        has_gold=setup.gold is not None,
        baseline=baseline,
        num_tasks=by_task[best].shape[1],
        scores=by_task,
        best=methods_by_title[best],
        methods=methods_by_title,
    )
