"""`crowdzoo report`: one page about a crowd's annotations."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crowdzoo.checks.constraints import SEED
from crowdzoo.commands import options
from crowdzoo.commands.options import PEOPLE_AND_MODELS, add_options, group, integer, number, path
from crowdzoo.commands.outputs import Output, fitted, marked, progress
from crowdzoo.errors import ConfigError
from crowdzoo.reading.tables.layout import Layout

if TYPE_CHECKING:
    from crowdzoo.kinds.page_parts import PageWarning

MOST_BY_DEFAULT = 500_000  # annotations; with more, a faster method is used
# Options that select or interpret annotations: reports with different ones are not comparable
READ = ("only", "exclude", "since", "until", "classes", "missing", "rename", "label_separator", "annotator_separator")
MEASURED = ("multi_label", "metric", "epsilon", "low", "high", "normalize", "unit", "scheme")
COMPARED = (*READ, "on_duplicate", "on_bad_rows", *MEASURED)


def page_data_path(path: Path) -> Path:
    """Path of the file of numbers next to a page of `crowdzoo report`."""
    return path.with_suffix(".json")


def describe(command: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    options.add_annotations(command)
    method = {
        "--method NAME": "aggregation method (default robust, and one-coin above 500,000 annotations; ratings: "
        "rating-em; sentences: bsc-seq; preferences: annotator-bradley-terry); an unknown name prints the list",
    }
    add_options(command, method)
    options.add_alpha(command, None, "; ratings: interval; sentences and preferences: nominal")
    options.add_seed(command, "the bootstrap, random ties and starts")
    files = {
        "--before FILE.json": "numbers of an earlier report on the same crowd: the page says what changed since",
        "--history FILE.json": "history of a model's training, to draw its curves, such as history.json of crowdzoo "
        "run: metric -> values of the epochs",
    }
    add_options(command, files, type=path)
    conditions = {
        "--fail-if CONDITION": "exit with 7 where this holds, such as --fail-if 'alpha<0.6'; may be given several "
        "times; an unknown name prints the list. Page and numbers are written all the same",
    }
    add_options(command, conditions, action="append", default=[])
    output = group(command, options.OUTPUT)
    out = {
        "--out FILE.html": "file for the page; the same numbers, of all annotators and tasks, are written to FILE.json"
    }
    add_options(output, out, type=path, required=True)
    add_options(output, {"--title TEXT": "heading of the page (default: name of the file)"})
    hashes = {
        "--hash-ids KEY": "write hashes in place of the names of annotators and tasks: with KEY the same ones in "
        "every report, else random ones. Instances are shown as they are",
    }
    add_options(output, hashes, nargs="?", const=True, default=False)
    instances = {
        "--instances FILE": "what was labelled, to be shown with the tasks: texts, a table, or images; see "
        "crowdzoo train",
    }
    predictions = {
        "--predictions FILE": "a model's predictions of the tasks, as crowdzoo predict writes them (classes: task, "
        "class, probability; other kinds also in a form of --gold): the page compares them with the aggregated "
        "labels, and with annotators",
    }
    add_options(group(command, options.INSTANCES), instances | predictions, type=path)
    options.add_reading(command, "instance")
    options.add_second_columns(command, "gold")
    options.add_image(command)
    options.add_kinds(command)
    tables = {
        "--gold FILE": "classes: true classes of some tasks, columns task, gold in .parquet or .csv: the page says how "
        "far the probabilities of the labels, and of the model, can be trusted",
    }
    of_classes = group(command, options.CLASSES)
    add_options(of_classes, tables, type=path)
    models = "classes: who is a model, for labels that people decide (people-and-models), and the comparison of models "
    options.add_annotator_table(command, f"{models}with people")
    epsilon = "how much less often than a person a model of --annotator-table may agree with other people (default 0.2)"
    of_classes.add_argument("--epsilon", type=number(0, 1), help=epsilon)
    options.add_multi_label(command, f"{options.ONE_ANSWER}each label is a question of yes or no")
    curve = {
        "--curve N": "classes: number of random draws at each step of the learning curve, which shows whether more "
        "annotations pay (default 5; 0: no curve)",
    }
    add_options(of_classes, curve, type=integer(0, 1000))
    page = Output("out", "--out", marked("^<!doctype html>.* - crowdzoo report</title>"))
    numbers = Output("out", "numbers of --out", marked('^{"format":"crowdzoo-report"'), place=page_data_path)
    inputs = ("annotations", "instances", "annotator_table", "before", "predictions", "gold", "history")
    options.add_outputs(command, inputs, page, numbers, options.REJECTS)


def run(arguments: argparse.Namespace) -> None:
    """Read, aggregate, write the page and print its main findings."""
    from crowdzoo.reading.instances.instances import read_instances
    from crowdzoo.reading.instances.readers import recognised
    from crowdzoo.report.page import NEEDED, Condition, report_page
    from crowdzoo.report.page_changes import read_numbers
    from crowdzoo.report.training_history import read_history

    SEED.checked("", "seed", arguments.seed)
    kind = options.checked_kind(arguments, ("classes", "wide", "predictions", "gold", "curve"))
    if arguments.instances is not None and "instances" not in kind.options.inputs:
        raise ConfigError("--instances: the sentences are in the file of annotations; leave it out.")
    options.check_for_classes(arguments, kind, ["gold", "curve"])
    reading = options.reading_options(arguments, kind)
    mixed = arguments.annotator_table is not None or arguments.method == PEOPLE_AND_MODELS
    if mixed:
        options.check_mixed(arguments, kind, ("multi_label",))
    elif arguments.epsilon is not None:
        raise ConfigError("--epsilon is what models are tested with: say who is one with --annotator-table FILE.")
    conditions = [Condition.parse(text, kind.name) for text in arguments.fail_if]
    for each in conditions:
        lacking = [f"--{name} FILE" for name in NEEDED.get(each.name, ()) if getattr(arguments, name) is None]
        if lacking:
            raise ConfigError(f"--fail-if {each}: {each.name} is only known with {' and '.join(lacking)}.")
    if arguments.out.suffix != ".html":
        raise ConfigError(f"--out {arguments.out}: the file of a page ends in .html.")
    method = None if mixed else arguments.method
    scale = options.given(arguments, kind.options.scale)
    aggregator = kind.aggregation.create(method, seed=arguments.seed, **scale)
    before = None if arguments.before is None else read_numbers(arguments.before)
    history = None if arguments.history is None else read_history(arguments.history)
    if arguments.platform is not None and not kind.labels.has_positions:
        reading["all_tasks"] = True
    annotations = kind.reading.read(arguments.annotations, **reading)
    models = options.models_of(arguments, annotations) if mixed else None
    instances = None
    if arguments.instances is not None:
        layout = options.second_layout(arguments, "instance")
        instances = read_instances(arguments.instances, recognised(arguments.instances, layout=layout), layout)
        instances = instances.named_like(annotations.tasks)
    encoded, predictions, gold = Layout.of_second(None, {"encoding": arguments.encoding}, ""), None, None
    if arguments.predictions is not None:
        read: Any = kind.reading.predictions_of
        gold_options = options.given(arguments, kind.options.gold)
        predictions = read(annotations, arguments.predictions, kind.prediction.header[1], encoded, **gold_options)
    if arguments.gold is not None:
        gold = options.gold_of(arguments, kind, annotations)
    quick = kind.aggregation.quick if len(annotations) > MOST_BY_DEFAULT and arguments.method is None else ""
    if quick and not mixed:
        aggregator = kind.aggregation.create(quick, seed=arguments.seed, **scale)
    if models is not None:
        from crowdzoo.quality import people_and_models

        aggregation = people_and_models(annotations, models, seed=arguments.seed).aggregation
    else:
        aggregation = fitted(aggregator, annotations)
    with progress("bootstrap", arguments.bootstrap) as step:
        files: Any = {"instances": instances, "before": before, "predictions": predictions, "history": history}
        files |= {"gold": gold, "models": models, "source": options.source_of(arguments, kind)}
        how: Any = options.given(arguments, ["metric", "bootstrap", "seed", "hash_ids", "epsilon", "curve"])
        title = arguments.title or arguments.annotations.name
        how |= {"title": title, "options": _compared(arguments), "on_sample": step}
        page = report_page(annotations, aggregation, **files, **how)
    if quick and not mixed:
        page = replace(page, numbers=replace(page.numbers, warnings=[*page.numbers.warnings, _of_quick(quick)]))
    page.write(arguments.out)
    if page.changes is not None and page.changes["options"]:
        differing = [name.replace("_", "-") for name, _, _ in page.changes["options"]]
        verb = "differs" if len(differing) == 1 else "differ"
        print(f"Compare with care: --{', --'.join(differing)} {verb} from the earlier report.\n")
    print("\n".join(page.numbers.verdict))
    warned = page.numbers.warnings
    serious = sum(each.serious for each in warned)
    print(f"\nwarnings: {len(warned) or 'none'}" + (f" ({serious} serious)" if serious else ""))
    model = page.numbers.model
    if model is not None:
        others = f"; {model['others']:,} are of other tasks" if "others" in model else ""
        print(f"predictions: {model['tasks']:,} compared; {model['without']:,} labelled tasks have none{others}")
    print(f"page: {arguments.out}\nnumbers: {page_data_path(arguments.out)}")
    page.check(conditions)


def _compared(arguments: argparse.Namespace) -> dict[str, object]:
    """The options stored for comparison with later reports, without hashed names."""
    chosen = options.given(arguments, COMPARED)
    hidden = {"only", "exclude"} if arguments.hash_ids else set()
    return {name: "given" if name in hidden else value for name, value in chosen.items()}


def _of_quick(method: str) -> "PageWarning":
    """Warning on the page that its labels are not those of the default method."""
    from crowdzoo.kinds.page_parts import PageWarning

    finding = f"was taken for the labels, as there are more than {MOST_BY_DEFAULT:,} annotations: the default is slow"
    fix = "give --method robust where annotators confuse classes each in their own way"
    return PageWarning(False, method, finding, fix)
