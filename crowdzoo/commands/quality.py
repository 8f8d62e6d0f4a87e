"""`crowdzoo quality`: measure how far annotators agree."""

import argparse
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdzoo.checks.constraints import SEED, TABLE_FORMATS
from crowdzoo.commands import options
from crowdzoo.commands.options import CLASSES, PEOPLE_AND_MODELS, add_options, group, integer, number, path
from crowdzoo.commands.outputs import Output, fitted, holds, progress
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import ConfigError
from crowdzoo.kinds import KINDS, Kind

if TYPE_CHECKING:
    from crowdzoo.quality import QualityReport

OF_CLASSES = ("gold", "models", "annotator_table", "epsilon", "passes", "worth", "target")  # options


def is_quality(folder: Path) -> bool:
    """Whether a folder contains only files written by `crowdzoo quality`."""
    from crowdzoo.quality.report import OF_MODELS

    tables = ("tasks", "annotators", "classes", "camps", *OF_MODELS)
    return holds(("summary.json", *(f"{table}.{ending}" for table in tables for ending in TABLE_FORMATS)))(folder)


def describe(command: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    options.add_annotations(command)
    default = KINDS[CLASSES].aggregation.default
    method = {
        "--method NAME": f"aggregation method whose labels the annotators are compared with (default {default}; where"
        " models are named people-and-models, as in aggregate --annotator-table); none: no comparison",
    }
    add_options(command, method)
    options.add_alpha(command, None, "; ratings: interval")
    options.add_seed(command, "the bootstrap")
    add_options(
        command,
        {"--top N": "number of annotators, and of tasks, in the printed lists (default 5)"},
        type=integer(0, options.MOST),
        default=5,
    )
    pay = {
        "--pay X": "price of an answer: the tables say what each annotator is due, and what tasks to redo cost "
        "(prices by annotator: column cost of --annotator-table)",
    }
    add_options(command, pay, type=number(0))
    sure = {
        "--sure P": "not for classes: tasks whose label is less sure than this, from 0 to 1, are to be done again, "
        "see crowdzoo next (default: texts and regions whose answers differ far more than is usual)",
    }
    add_options(command, sure, type=number(0, 1))
    output = group(command, options.OUTPUT)
    add_options(output, {"--out DIR": "folder for the tables (new or empty)"}, type=path)
    add_options(output, {"--format": "format of the tables in --out (default parquet)"}, choices=TABLE_FORMATS)
    options.add_spreadsheet(command)
    options.add_reading(command, "gold")
    options.add_image(command)
    options.add_kinds(command)
    of_classes = group(command, CLASSES)
    files = {
        "--gold FILE": "true classes of some tasks, columns task, gold: the tables say how many answers of each are "
        "right",
    }
    add_options(of_classes, files, type=path)
    models = {
        "--models A,B,…": "annotators that are models: how far they agree with the others, who are people, class by "
        "class, and whether they may replace them (needs SciPy)",
    }
    add_options(of_classes, models)
    options.add_annotator_table(command, "which annotators are models, in place of --models")
    epsilon = (
        "with --models, what a model saves: .2 where the people are experts (default), .15 where they are trained, .1 "
        "where they are crowd workers"
    )
    of_classes.add_argument("--epsilon", type=number(0, 1), help=epsilon)
    rates = {
        "--rate CLASS,…": "share of tasks to which people would give one of these classes (mean: the mean of classes"
        " that are numbers), from the labels of models for all tasks, corrected by those of people for a random "
        "part; needs --models",
    }
    add_options(of_classes, rates, dest="passes")
    options.add_worth(command, "to be redone", "")
    options.add_multi_label(command, f"{options.ONE_ANSWER}tables and numbers are those of crowdzoo report")
    outputs = Output("out", "--out", is_quality, folder=True), options.REJECTS
    options.add_outputs(command, ("annotations", "annotator_table", "gold"), *outputs)


def run(arguments: argparse.Namespace) -> None:
    """Measure, print lists and write tables."""
    kind = options.checked_kind(arguments, ("classes", "wide", "sure", *OF_CLASSES))
    SEED.checked("", "seed", arguments.seed)
    if arguments.format is not None and arguments.out is None:
        raise ConfigError(f"--format {arguments.format}: is that of tables, which need a folder: add --out DIR.")
    report = _of_classes(arguments, kind) if kind.labels.one_class else _by_page(arguments, kind)
    if arguments.out is not None:
        print(f"\ntables: {report.write(arguments.out, arguments.format or 'parquet', replace=arguments.force)}")


def _of_classes(arguments: argparse.Namespace, kind: Kind) -> "QualityReport":
    """Report on classes, one per task and annotator, with the functions of `crowdzoo.quality`."""
    from crowdzoo.quality import people_and_models, quality_report, rate
    from crowdzoo.quality.settled import can_be_settled
    from crowdzoo.report.quality_tables import print_class_agreement, print_quality, print_rate, print_replacements
    from crowdzoo.report.sheets import print_sheets, with_sheets

    _check_models(arguments)
    aggregator = None
    if arguments.method not in ("none", PEOPLE_AND_MODELS):
        aggregator = kind.aggregation.create(arguments.method, seed=arguments.seed)
    annotations = kind.reading.read(arguments.annotations, **options.reading_options(arguments, kind))
    if not can_be_settled(annotations):
        options.refuse(arguments, ("worth", "target"), "several labels from an annotator, or so many tasks")
    models, prices = _models_and_prices(arguments, annotations)
    if arguments.worth is not None and (prices is None or not prices.any()):
        raise ConfigError("--worth: is compared with what answers cost; add --pay, such as --pay 0.04.")
    estimate = None
    if arguments.passes is not None:
        passes = None if arguments.passes == "mean" else options.names_of(arguments.passes, "rate")
        estimate = rate(annotations, judges=models, passes=passes)
    if models is not None and arguments.method in (None, PEOPLE_AND_MODELS):
        aggregation = people_and_models(annotations, models, seed=arguments.seed).aggregation
    else:
        aggregation = None if aggregator is None else fitted(aggregator, annotations)
    with progress("bootstrap", arguments.bootstrap) as step:
        how: Any = {"metric": "nominal"} | options.given(arguments, ["metric", "epsilon", "bootstrap", "seed"])
        report = quality_report(annotations, aggregation, models=models, on_sample=step, **how)
    gold = options.gold_of(arguments, kind, annotations)
    if any(each is not None for each in (gold, prices, arguments.target, arguments.out)):
        how = {name: getattr(arguments, name) for name in ("worth", "target", "seed")}
        report = with_sheets(report, annotations, aggregation, gold=gold, prices=prices, **how)
    if estimate is not None:
        report = replace(report, overall=report.overall | {"rate": asdict(estimate)})
    print_quality(report, arguments.top, options.source_of(arguments, kind))
    print_sheets(report)
    if estimate is not None:
        print()
        print_rate(estimate, arguments.passes)
    if report.replacements:
        print()
        print_replacements(report.replacements)
    if report.agreements is not None:
        print()
        print_class_agreement(report.agreements)
    return report


def _check_models(arguments: argparse.Namespace) -> None:
    """Reject options that need to know which annotators are models, and options incompatible with the method."""
    options.refuse(arguments, ["sure"], "classes")
    named = arguments.models is not None or arguments.annotator_table is not None
    if arguments.epsilon is not None and not named:
        raise ConfigError("--epsilon is what the test of --models compares with: name the models, or leave it out.")
    if arguments.passes is not None and not named:
        fix = "name the models with --models A,B, or in a file with --annotator-table FILE"
        raise ConfigError(f"--rate: corrects the labels of models by people's: {fix}.")
    if arguments.models is not None and arguments.annotator_table is not None:
        raise ConfigError("--models and --annotator-table both say who is a model; leave one out.")
    if arguments.method == PEOPLE_AND_MODELS and not named:
        raise ConfigError(f"--method {PEOPLE_AND_MODELS}: say with --models or --annotator-table who is a model.")
    if arguments.method == "none":
        options.refuse(arguments, ("worth", "target"), "--method none")


def _models_and_prices(
    arguments: argparse.Namespace, annotations: Annotations
) -> tuple[list[str] | None, np.ndarray | None]:
    """Names of the models, and price per answer of each annotator, [R]; None if unknown."""
    models = None if arguments.models is None else options.names_of(arguments.models, "models")
    prices = None if arguments.pay is None else np.full(annotations.num_annotators, arguments.pay)
    if arguments.annotator_table is None:
        return models, prices
    table = options.annotator_table(arguments, annotations)
    if table.costs is not None:
        options.refuse(arguments, ["pay"], "costs in --annotator-table")
        prices = table.costs
    needed = arguments.method == PEOPLE_AND_MODELS or arguments.epsilon is not None or arguments.passes is not None
    if table.sources is not None or needed:
        models = options.models_of(arguments, annotations)
    return models, prices


def _by_page(arguments: argparse.Namespace, kind: Kind) -> "QualityReport":
    """Report on several labels per task, or labels of another kind, from the page of `crowdzoo report`."""
    from crowdzoo.report.page import report_page
    from crowdzoo.report.quality_tables import print_page
    from crowdzoo.report.sheets import page_sheets, print_sheets

    others = OF_CLASSES if kind.questions is not None else (*OF_CLASSES, "sure")
    options.refuse(arguments, others, "--multi-label" if kind.labels.has_several else f"--kind {kind.name}")
    aggregator = kind.aggregation.create(
        arguments.method, seed=arguments.seed, **options.given(arguments, kind.options.scale)
    )
    crowd = kind.reading.read(arguments.annotations, **options.reading_options(arguments, kind))
    result, how = fitted(aggregator, crowd), options.given(arguments, ("metric", "bootstrap", "seed"))
    with progress("bootstrap", arguments.bootstrap) as step:
        page = report_page(crowd, result, on_sample=step, **how)
    report = page_sheets(page, crowd, result, arguments.sure, arguments.pay)
    print_page(page, report, arguments.top)
    print_sheets(report)
    return report
