"""`crowdzoo aggregate`: one label per task from the annotators' labels."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdzoo import process
from crowdzoo.checks.constraints import TABLE_FORMATS
from crowdzoo.commands import options
from crowdzoo.commands.options import PEOPLE_AND_MODELS, add_options, group, integer, number, path
from crowdzoo.commands.outputs import Output, fitted, holds, marked
from crowdzoo.errors import ConfigError, option_text
from crowdzoo.files.writing import csv_cell
from crowdzoo.kinds import Kind
from crowdzoo.reading.tables.layout import Layout
from crowdzoo.reading.tables.options import ROW_OPTIONS
from crowdzoo.reading.tables.suffixes import column_names
from crowdzoo.report.tables import print_table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from crowdzoo.aggregation.result import Aggregation
    from crowdzoo.data.annotations import Annotations

# Columns of the tables of all kinds of labels, since one may replace another
COLUMNS = (
    r"^task,((position,)?label,label_code,probability|estimate,standard_error|score,rank|labels,annotations"
    r"|(text|regions),confidence)(,(settled|accepted|group|annotations|answers_to_settle|posteriors|difficulty"
    r"|effective_votes|probability_.*))*$"
)


def is_result(path: Path) -> bool:
    """Whether a table was written by `crowdzoo aggregate` and not edited since, or a folder contains only its files."""
    if path.is_dir():
        from crowdzoo.aggregation.result_files import RESULT_FILES

        return holds(("summary.json", *RESULT_FILES))(path)
    return marked(COLUMNS)(path) and not _is_edited(path)


def _is_edited(path: Path) -> bool:
    """Whether a table has the line endings of a spreadsheet, or inconsistent labels and codes."""
    if path.suffix == ".csv":
        with open(path, "rb") as file:
            if file.readline().endswith(b"\r\n"):
                return True
    if "label_code" not in column_names(path):
        return False
    from crowdzoo.data.annotations import Annotations

    columns = {"task": "label", "annotator": "task", "label": "label_code"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labels = Annotations.read(path, columns=columns, on_duplicate="all", on_bad_rows="reject")
    pairs = np.unique(np.stack([labels.task_ids, labels.labels]), axis=1)
    return any(np.unique(codes).size < pairs.shape[1] for codes in pairs)


def describe(command: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    options.add_annotations(command)
    method = {
        "--method NAME": "aggregation method (default robust; sentences: bsc-seq; ratings: rating-em; preferences: "
        "annotator-bradley-terry); an unknown name prints the list",
    }
    add_options(command, method)
    options.add_values(command, "--set", "setting of the method, such as prior=0.1")
    iterations = {"--max-iter N": "most iterations (default: that of the method)"}
    add_options(command, iterations, type=integer(1, options.MOST))
    tol = {
        "--tol X": "stop when an iteration improves the fit (log-likelihood per annotation) by less than this "
        "(default: that of the method)"
    }
    add_options(command, tol, type=number())
    options.add_seed(command, "random ties and starts")
    output = group(command, options.OUTPUT)
    out = {
        "--out DIR": "new or empty folder for the results; or a file (.csv, .parquet, .jsonl or .xlsx) for the table"
        " of tasks alone",
    }
    add_options(output, out, type=path, required=True)
    file_format = {"--format": "format of the tables in a folder (default parquet)"}
    add_options(output, file_format, choices=TABLE_FORMATS)
    options.add_spreadsheet(command)
    gold = {
        "--gold FILE": "true labels, to print the accuracy (sentences: F1; ratings: R², MAE and RMSE), or true scores "
        "of preferences, to print their rank correlation; columns task, gold in .parquet or .csv (sentences: token and "
        "tag; several labels: all that hold in one cell, (none) for none)",
    }
    add_options(group(command, options.INSTANCES), gold, type=path)
    options.add_reading(command, "gold")
    options.add_image(command)
    options.add_kinds(command)
    uses_of_gold = {
        "--use-gold": "take the classes of --gold as known; no accuracy is printed then",
        "--calibrate": "correct labels and probabilities by the classes of --gold, of 20 tasks or more chosen at "
        "random (50 are enough: crowdzoo next --gold-sample 50), and print an interval of the accuracy on the other "
        "tasks (classification)",
        "--ordered": "the classes are in order (that of --classes, or they are numbers): a label is the median of "
        "the probabilities, which is fewer steps from the truth on average than the most probable class",
    }
    add_options(group(command, options.CLASSES), uses_of_gold, action="store_true", default=None)
    accepted = {
        "--accept-error P": "classes: accept labels such that, with 95 %% confidence, at most this share of them (0 "
        "to 0.5) is wrong, by the classes of --gold, of tasks chosen at random (200 are a good number); the column "
        "accepted says which",
    }
    add_options(group(command, options.CLASSES), accepted, type=number(0, 0.5))
    options.add_multi_label(command, f"{options.ONE_ANSWER}a probability for each label")
    which = "which annotators are models: people's labels then decide what a model's are worth (people-and-models, in "
    options.add_annotator_table(command, f"{which}place of --method)")
    prior = {
        "--prior RESULT": "folder of an earlier result of crowdzoo aggregate: what it knows of annotators and "
        "classes, by their names, counts as well, and its tasks are not aggregated again (robust, dawid-skene, "
        "hierarchical-dawid-skene, ibcc)",
    }
    add_options(group(command, options.CLASSES), prior, type=path, dest="earlier")
    rankings = {
        "--rankings": "with --kind preference: the file holds lists in order, columns annotator, task, rank (1 is the "
        "best; empty: below all ranks), and list where an annotator has several; or annotator and ranking (a>b>c). "
        "Method plackett-luce; others compare the pairs of each list",
    }
    add_options(group(command, "preference"), rankings, action="store_true", default=None)
    covariates = {
        "--covariate NAME,…": "numbers of both sides of a comparison that may sway annotators, such as length "
        "(columns left_length and right_length, or winner_length and loser_length); their effect is estimated "
        "(annotator-bradley-terry)",
    }
    add_options(group(command, "preference"), covariates, dest="covariates")
    endings = tuple(f".{ending}" for ending in TABLE_FORMATS)
    outputs = Output("out", "--out", is_result, folder=True, unless=endings), options.REJECTS
    options.add_outputs(command, ("annotations", "gold", "annotator_table", "earlier"), *outputs)


# Options that do not work with several labels per task, or with covariates
NOT_MULTI_LABEL = ("classes", "wide", "accept_error", "ordered", "earlier")
NOT_COVARIATES = ("platform", "rankings", "only", "exclude", *options.TIMES, "label_separator", "annotator_separator")


def run(arguments: argparse.Namespace) -> None:
    """Read, aggregate, write the result and print a summary."""
    kind = options.checked_kind(arguments, NOT_MULTI_LABEL)
    ending = arguments.out.suffix[1:]
    if ending in TABLE_FORMATS and arguments.format not in (None, ending):
        raise ConfigError(
            f"--format {arguments.format}: --out {arguments.out} ends in .{ending}; leave one of them out."
        )
    arguments.format = arguments.format or "parquet"
    for name in ("use_gold", "calibrate", "accept_error"):
        if getattr(arguments, name) is not None and arguments.gold is None:
            raise ConfigError(f"--{name.replace('_', '-')} takes the classes of --gold FILE: give that file.")
    if arguments.calibrate and arguments.use_gold:
        raise ConfigError("--calibrate uses the classes of --gold itself: leave out --use-gold.")
    options.check_for_classes(arguments, kind, ("ordered", "accept_error", "earlier"))
    if arguments.ordered:
        options.refuse(arguments, ("accept_error",), "--ordered")
    if arguments.accept_error is not None:
        reason = "--accept-error, which tests labels that were made without the gold"
        options.refuse(arguments, ("use_gold", "calibrate"), reason)
    settings = options.given(arguments, (*kind.options.scale, "max_iter", "tol"))
    settings |= options.settings_of(arguments.settings)
    if arguments.annotator_table is not None or arguments.method == PEOPLE_AND_MODELS:
        _run_people_and_models(arguments, kind, settings)
        return
    if arguments.covariates is not None:
        if not kind.labels.has_pairs:
            raise ConfigError("--covariate is of comparisons: add --kind preference.")
        options.refuse(arguments, NOT_COVARIATES, "--covariate")
        if arguments.method not in (None, kind.aggregation.default):
            raise ConfigError(f"--covariate is for --method {kind.aggregation.default}: leave out --method.")
    if arguments.rankings:
        _run_rankings(arguments, kind, settings)
        return
    aggregator = kind.aggregation.create(arguments.method, seed=arguments.seed, **settings)
    known: dict[str, Any] = {}
    if arguments.earlier is not None:
        from crowdzoo.aggregation import Aggregation

        known["prior"] = Aggregation.from_parquet(arguments.earlier)
    crowd, gold = _read(arguments, kind, known.get("prior"))
    known |= kind.aggregation.fit_options(gold, bool(arguments.use_gold), bool(arguments.calibrate))
    if arguments.covariates is not None:
        from crowdzoo.reading.instances.covariates import read_covariates

        names = options.names_of(arguments.covariates, "covariate")
        known["covariates"] = read_covariates(arguments.annotations, names, crowd, Layout.of(vars(arguments)))
    result = fitted(aggregator, crowd, **known)
    _write(arguments, kind, result, crowd, gold)


def _read(arguments: argparse.Namespace, kind: Kind, prior: Aggregation | None = None) -> tuple[Any, Any]:
    """The annotations, with annotators and classes of an earlier result, and gold of their tasks."""
    crowd = kind.reading.read(arguments.annotations, **options.reading_options(arguments, kind))
    if prior is not None:
        from crowdzoo.aggregation.classes.history import with_prior

        crowd, _ = with_prior(crowd, prior, "--prior")
    return crowd, options.gold_of(arguments, kind, crowd)


def _write(
    arguments: argparse.Namespace, kind: Kind, result: Any, crowd: Annotations, gold: Any, **instead: Any
) -> None:
    """Write a result and print its summary; `instead` replaces rows of the summary, or drops them (None)."""
    if arguments.calibrate:
        result = kind.aggregation.calibrate(result, crowd, gold, arguments.seed)
    if arguments.ordered:
        from crowdzoo.aggregation import with_median_labels

        _check_order(arguments, crowd)
        result = with_median_labels(result)
        instead |= _accuracy_of_medians(result, gold)
    if arguments.accept_error is not None:
        from crowdzoo.aggregation import accept

        result = accept(result, crowd, gold, error=arguments.accept_error, seed=arguments.seed)
    uses_gold = arguments.use_gold or arguments.calibrate or arguments.accept_error is not None
    result = kind.aggregation.add_notes(result, crowd, gold if uses_gold else None)
    kind.aggregation.write(result, crowd, arguments.out, arguments.format)
    rows = [
        *kind.reading.size_rows(crowd),
        *kind.aggregation.rows(result, crowd, gold, bool(arguments.use_gold or arguments.calibrate)),
        ("iterations", f"{result.num_iterations} ({'converged' if result.converged else 'NOT converged'})"),
        *(("note", note) for note in getattr(result, "notes", ()) if not process.is_reported(note)),
        ("results", str(arguments.out)),
        *(_others(arguments) if arguments.accept_error is not None and not result.accepted.all() else []),
    ]
    printed = (instead.get(row[0], row) for row in rows)
    print_table(kind.aggregation.title(result), ("", ""), [row for row in printed if row is not None])
    if kind.aggregation.remark:
        print(kind.aggregation.remark)


def _check_order(arguments: argparse.Namespace, crowd: Annotations) -> None:
    """Reject --ordered if the order of the classes is unknown."""
    names = [str(name) for name in crowd.classes] if crowd.classes is not None else []
    try:
        numbers = [float(name) for name in names]
    except ValueError:
        numbers = []
    if arguments.classes is None and (not numbers or numbers != sorted(numbers)):
        if numbers:
            names.sort(key=float)
        option = option_text("--classes", ",".join(map(csv_cell, names)))
        order = "" if numbers else ". That of the alphabet is"
        raise ConfigError(f"--ordered: say the order of the classes, from low to high{order}: {option}")


def _accuracy_of_medians(result: Aggregation, gold: NDArray[np.int64] | None) -> dict[str, tuple[str, str] | None]:
    """Rows that show the distance of the labels from gold, to replace those on the most probable classes."""
    known = np.flatnonzero(gold >= 0) if gold is not None else np.zeros(0, int)
    if gold is None or not known.size:
        return {}
    steps = np.abs(result.labels[known] - gold[known])
    text = f"{(steps == 0).mean():.4f}; steps from gold: {steps.mean():.4f} (on {known.size:,} tasks with gold)"
    return {"accuracy": ("accuracy", text), "mean probability there": None, "expected calibration error": None}


def _others(arguments: argparse.Namespace) -> list[tuple[str, str]]:
    """A row on what to do about labels that are not accepted."""
    table = arguments.out if arguments.out.suffix[1:] in TABLE_FORMATS else arguments.out / f"tasks.{arguments.format}"
    ask = f"; or ask for more answers: crowdzoo next with {option_text('--accepted', str(table))}"
    return [("the others", "label them yourself (accepted is false)" + ask * (table.suffix in (".csv", ".parquet")))]


# Options that do not work with a table of annotators
NOT_MIXED = ("multi_label", "rankings", "use_gold", "earlier")


def _run_people_and_models(arguments: argparse.Namespace, kind: Kind, settings: dict[str, Any]) -> None:
    """Aggregate labels of people and models, weighting models by people's answers, and print a summary."""
    options.check_mixed(arguments, kind, NOT_MIXED)
    for name in settings:
        if name != "trusted":
            raise ConfigError(f"{PEOPLE_AND_MODELS} has no setting {name!r}: leave it out. Its setting is trusted.")
    from crowdzoo.quality import people_and_models

    crowd, gold = _read(arguments, kind)
    models = options.models_of(arguments, crowd)
    both = people_and_models(crowd, models, seed=arguments.seed, **settings)
    fact = f"{len(models):,} of the annotators; correlation of their errors {both.correlation}"
    _write(arguments, kind, both.aggregation, crowd, gold, iterations=("models", fact))


# Options that do not work with rankings
NOT_RANKINGS = (
    *("multi_label", "classes", "platform", "field", *ROW_OPTIONS, "only", *options.TIMES),
    *("rename", "missing", "no_label", "label_separator", "annotator_separator"),
)


def _run_rankings(arguments: argparse.Namespace, kind: Kind, settings: dict[str, Any]) -> None:
    """Aggregate rankings and print a summary."""
    if not kind.labels.has_pairs:
        raise ConfigError("--rankings are preferences: add --kind preference.")
    options.refuse(arguments, NOT_RANKINGS, "--rankings", usual="error")
    from crowdzoo.aggregation import PlackettLuce
    from crowdzoo.reading.instances.rankings import COLUMNS, read_rankings

    rankings = read_rankings(arguments.annotations, Layout.of(vars(arguments), COLUMNS))
    crowd = rankings.preferences()
    gold = options.gold_of(arguments, kind, crowd)
    if arguments.method in (None, "plackett-luce"):
        result = PlackettLuce(**settings).fit(rankings)
    else:
        result = kind.aggregation.create(arguments.method, seed=arguments.seed, **settings).fit(crowd)
    _write(arguments, kind, result, crowd, gold, preferences=("lists", f"{len(rankings):,}"), answers=None)
