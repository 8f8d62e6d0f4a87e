"""The command `crowdzoo`. Parsing costs nothing: what a command needs is imported when it runs."""

import argparse
import contextlib
import json
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from crowdzoo import __version__
from crowdzoo.commands import outputs as cli_outputs
from crowdzoo.commands.options import as_options, options_of
from crowdzoo.commands.outputs import Output
from crowdzoo.commands.process import Terminated, command_process, escaped_output, finish_output, open_streams, say
from crowdzoo.errors import ConfigError, CrowdzooError, DataError, did_you_mean, short_message, shorten
from crowdzoo.files.paths import check_folder, check_output_folder
from crowdzoo.files.writing import atomic_file, atomic_path
from crowdzoo.option_types import integer, number
from crowdzoo.option_types import path as local_path

__all__ = ["COMMANDS", "main"]

MOST = 10**9  # epochs, iterations, lines
MOST_LAYERS, MOST_UNITS = 100, 1 << 16

REJECTS = Output("rejects", "--rejects", cli_outputs.is_rejects)
EPILOG = """exit codes:
  0 done   1 unexpected failure   2 wrong arguments   3 unusable data   4 unusable configuration
  5 a component failed   6 serving failed   130 interrupted   143 terminated"""

LABEL_FORMATS = ".csv, .tsv, .jsonl or .parquet, also .gz"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: the words after `crowdzoo`; None takes them from the process.

    Returns:
        The exit code: 0, or that of the error met (`crowdzoo --help` lists them).
    """
    if not open_streams():
        say("standard output is closed. Send it to /dev/null where it is not wanted.")
        return 1
    with escaped_output():
        return _main(argv)


def _main(argv: Sequence[str] | None) -> int:
    """As `main`, with streams that take any text."""
    try:
        arguments = _parser().parse_args(argv)
    except (SystemExit, OSError) as end:  # --help, --version, wrong arguments
        if reason := finish_output(after_failure=isinstance(end, OSError)):
            say(f"standard output: {reason}")
            return 1
        raise
    debug = arguments.debug or bool(os.environ.get("CROWDZOO_DEBUG"))
    _quiet_libraries()
    translate = partial(as_options, options=arguments.options)
    with command_process(debug, translate):
        code = _run_command(arguments, debug, translate)
    if (reason := finish_output()) and code == 0:
        say(f"standard output: {reason}")
        return 1
    return code


def _run_command(arguments: argparse.Namespace, debug: bool, translate: Callable[[str], str]) -> int:
    """The command's exit code; its errors are printed."""
    try:
        cli_outputs.check_outputs(arguments)
        return arguments.command_function(arguments) or 0
    except CrowdzooError as error:
        if debug:
            raise
        say(translate(str(error)))
        return error.exit_code
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    except Terminated as ended:
        say("terminated")
        return int(ended.code or 1)
    except BrokenPipeError:  # `crowdzoo … | head`
        return 0
    except ModuleNotFoundError as error:
        if debug or not error.name:
            raise
        say(_missing_module(error.name))
        return 1
    except MemoryError as error:
        if debug:
            raise
        say(f"not enough memory. {error}".strip())
        return 1
    except Exception as error:
        if debug:
            raise
        if isinstance(error, OSError) and error.filename is not None:  # a full disk, a folder without permission
            say(short_message(f"{error.filename}: {error.strerror}"))
            return 1
        if isinstance(error, OSError) and (failure := finish_output(after_failure=True)):
            say(f"standard output: {failure}")
            return 1
        reason = shorten(str(error).strip()) or "no message"
        say(f"{type(error).__name__}: {reason}\n  This was not foreseen; --debug shows where.")
        return 1


def _missing_module(name: str) -> str:
    extras = {
        "tensorflow": "tensorflow", "tfx": "pipeline", "apache_beam": "pipeline", "yaml": "pipeline",
        "pydantic": "pipeline", "tensorflow_model_analysis": "pipeline", "starlette": "serving", "uvicorn": "serving",
        "grpc": "serving", "httpx": "serving", "tensorflow_serving": "serving", "matplotlib": "plots",
        "tensorflow_text": "text",
    }  # fmt: skip
    extra = extras.get(name.split(".")[0])
    way_out = f"pip install 'crowdzoo[{extra}]'" if extra else f"install {name}"
    return f"this command needs the package {name.split('.')[0]}: {way_out}"


class _Parser(argparse.ArgumentParser):
    """Says what is wrong with the words without repeating long ones."""

    def error(self, message: str) -> NoReturn:
        super().error(short_message(message))


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--debug", action="store_true", help="show the traceback of an error")
    parser = _Parser(
        prog="crowdzoo",
        description="Learning from crowds: from unreliable annotators' labels to a served model.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[common],
    )
    parser.add_argument("--version", action="version", version=f"crowdzoo {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, (describe, function, sentence) in COMMANDS.items():
        # --debug counts before and after the command's name
        command = commands.add_parser(name, help=sentence, description=sentence)
        command.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        command.set_defaults(outputs=(), inputs=(), force=False)
        describe(command)
        command.set_defaults(command_function=function, options=options_of(command))
    return parser


def _add_outputs(command: argparse.ArgumentParser, inputs: Sequence[str], *outputs: Output) -> None:
    """Has what a command writes checked before it works, and adds --force."""
    command.add_argument(
        "--force", action="store_true", help="replace files, and earlier results of this command, that exist"
    )
    command.set_defaults(inputs=inputs, outputs=outputs)


def _add_reading(command: argparse.ArgumentParser) -> None:
    command.add_argument("--classes", metavar="A,B,…", help="class names in the order of their codes; default: sorted")
    command.add_argument(
        "--on-bad-rows", choices=("error", "reject"), default="error", help="stop (default), or leave bad rows out"
    )
    command.add_argument(
        "--rejects", type=local_path, metavar="FILE", help="where rejected rows go, with their reasons"
    )
    command.add_argument(
        "--on-duplicate", choices=("error", "first", "last"), default="error",
        help="a second label by one annotator for one task: stop (default), or keep the first or the last",
    )  # fmt: skip


def _add_kinds(command: argparse.ArgumentParser) -> None:
    command.add_argument("--task", choices=("classification", "sequence", "regression"), default="classification",
        help="kind of labels (default classification); sequence: sentences that annotators tagged, spans in .jsonl, "
        "CoNLL's columns under any other ending; regression: ratings, numbers as labels",
    )  # fmt: skip
    command.add_argument("--low", type=number(), metavar="X", help="of ratings: lowest one; one below is a bad row")
    command.add_argument("--high", type=number(), metavar="X", help="of ratings: highest one")
    command.add_argument("--scheme", choices=("BIO", "IOBES"), default="BIO", help="how tags are written (default BIO)")
    command.add_argument("--on-bad-tags", choices=("error", "mend"), default="error",
        help="tags that break the scheme, such as I- without B-: stop (default), or mend them",
    )  # fmt: skip


def _read_annotations(arguments: argparse.Namespace, **more: Any) -> Any:
    from crowdzoo.tables.annotations import Annotations

    if arguments.rejects and arguments.on_bad_rows == "error":
        raise ConfigError("--rejects keeps what --on-bad-rows reject leaves out: give both.")
    classes = [name.strip() for name in arguments.classes.split(",")] if arguments.classes else None
    if classes and len(set(classes)) < len(classes):
        raise ConfigError(f"--classes {arguments.classes}: names a class twice.")
    return Annotations.read(
        arguments.annotations, classes=classes, on_bad_rows=arguments.on_bad_rows, rejects=arguments.rejects,
        on_duplicate=arguments.on_duplicate, **more,
    )  # fmt: skip


# -- aggregate ---------------------------------------------------------------------------------------------------------


def _describe_aggregate(command: argparse.ArgumentParser) -> None:
    command.add_argument("annotations", type=local_path, help=f"columns task, annotator, label ({LABEL_FORMATS})")
    command.add_argument("--method", metavar="NAME",
        help="algorithm (default dawid-skene, of sentences bsc-seq, of ratings rating-em); a name that there is not "
        "lists them all",
    )  # fmt: skip
    command.add_argument(
        "--out", type=local_path, required=True, metavar="DIR", help="folder for the results (new or empty)"
    )
    command.add_argument("--gold", type=local_path, metavar="FILE",
        help="known classes (columns task, gold; .parquet, .csv; of sentences token and tag): the accuracy on them is "
        "printed, of sentences F1, of ratings R², MAE and RMSE",
    )  # fmt: skip
    command.add_argument("--use-gold", action="store_true",
        help="the algorithm takes the classes of --gold for certain, and no accuracy is printed",
    )  # fmt: skip
    command.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", dest="settings",
        help="any setting of the algorithm, such as prior=0.1; may be given several times",
    )  # fmt: skip
    command.add_argument("--max-iter", type=integer(1, MOST), metavar="N", help="most EM iterations")
    command.add_argument("--tol", type=number(), metavar="X", help="stop when the objective gains less per annotation")
    command.add_argument(
        "--seed", type=integer(0, 2**63 - 1), default=0, help="seed of random tie breaking and starts (default 0)"
    )
    _add_kinds(command)
    _add_reading(command)
    _add_outputs(
        command, ("annotations", "gold"), Output("out", "--out", cli_outputs.is_result, folder=True), REJECTS
    )  # fmt: skip


def _aggregate(arguments: argparse.Namespace) -> None:
    from crowdzoo.commands.ratings import refuse_scale

    given = {"max_iter": arguments.max_iter, "tol": arguments.tol}
    settings = {name: value for name, value in given.items() if value is not None}
    settings |= dict(map(_setting, arguments.settings))
    if arguments.task == "regression":
        from crowdzoo.commands.ratings import aggregate_ratings

        aggregate_ratings(arguments, settings, _read_annotations)
        return
    refuse_scale(arguments)
    if arguments.task == "sequence":
        from crowdzoo.commands.sentences import aggregate_sentences

        aggregate_sentences(arguments, settings)
        return
    arguments.method = arguments.method or "dawid-skene"
    from crowdzoo.aggregation import create
    from crowdzoo.instances.instances import read_gold
    from crowdzoo.report.tables import print_table

    aggregator = create(arguments.method, **{**_accepted(arguments.method, seed=arguments.seed), **settings})
    if arguments.use_gold and arguments.gold is None:
        raise ConfigError("--use-gold takes the classes of --gold FILE: give that file.")
    annotations = _read_annotations(arguments)
    gold = None if arguments.gold is None else read_gold(arguments.gold, annotations.tasks, annotations.classes)
    result = aggregator.fit(annotations, **({"gold": gold} if arguments.use_gold else {}))
    result.to_parquet(arguments.out)
    counts = dict(zip(*_class_counts(result), strict=True))
    rows = [
        ("annotations", f"{len(annotations):,}"),
        *_rejected(annotations),
        ("tasks", f"{annotations.num_tasks:,}"),
        ("annotators", f"{annotations.num_annotators:,}"),
        *((f"label {name}", f"{count:,}") for name, count in counts.items()),
        *_gold_row(result, gold, arguments.use_gold),
        ("iterations", f"{result.num_iterations} ({'converged' if result.converged else 'NOT converged'})"),
        *(("note", note) for note in result.notes),
        ("results", str(arguments.out)),
    ]
    print_table(arguments.method, ("", ""), rows)


def _setting(words: str) -> tuple[str, Any]:
    """NAME=VALUE; the value as JSON where it is that, else as text."""
    name, equals, value = words.partition("=")
    if not equals or not name:
        raise ConfigError(f"--set takes NAME=VALUE, such as prior=0.1. Received: {words!r}.")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
    except RecursionError:
        raise ConfigError(f"--set {shorten(words)}: the value is nested too deep.") from None


def _gold_row(result: Any, gold: Any, used: bool) -> list[tuple[str, str]]:
    if gold is None:
        return []
    known = int((gold >= 0).sum())
    if used:
        return [("tasks of known class", f"{known:,}")]
    accuracy = f"{result.expected_accuracy(gold):.4f}" if known else "unknown"
    return [("accuracy", f"{accuracy} (on {known:,} tasks with gold, ties at random)")]


def _rejected(annotations: Any) -> list[tuple[str, str]]:
    """A row of the table where rows of the file were left out: no vote disappears quietly."""
    return [("rows left out", f"{annotations.num_rejected:,}")] if annotations.num_rejected else []


def _class_counts(result: Any) -> tuple[list[str], list[int]]:
    import numpy as np

    counts = np.bincount(result.labels, minlength=len(result.classes))
    return [str(name) for name in result.classes], counts.tolist()


# -- quality -----------------------------------------------------------------------------------------------------------


def _describe_quality(command: argparse.ArgumentParser) -> None:
    command.add_argument("annotations", type=local_path, help=f"columns task, annotator, label ({LABEL_FORMATS})")
    command.add_argument(
        "--method", default="dawid-skene",
        help="aggregate to compare with, as in `crowdzoo aggregate` (default dawid-skene); none for no aggregate",
    )  # fmt: skip
    command.add_argument("--out", type=local_path, metavar="DIR", help="folder for the tables (new or empty)")
    command.add_argument("--format", choices=("parquet", "csv"), default="parquet", help="of the tables in --out")
    command.add_argument("--plot", type=local_path, metavar="FILE.png", help="draw a picture (needs matplotlib)")
    command.add_argument(
        "--metric", choices=("nominal", "ordinal", "interval", "ratio"), default="nominal",
        help="distance of labels in Krippendorff's alpha (default nominal: equal or not)",
    )  # fmt: skip
    command.add_argument(
        "--bootstrap", type=integer(0, 10**6), default=200, metavar="N",
        help="samples of tasks for the interval of alpha (default 200; 0 for none)",
    )  # fmt: skip
    command.add_argument("--top", type=integer(0, MOST), default=5, metavar="N", help="lines of each list (default 5)")
    command.add_argument("--seed", type=integer(0, 2**63 - 1), default=0, help="default 0")
    _add_reading(command)
    _add_outputs(
        command, ("annotations",), Output("out", "--out", cli_outputs.is_quality, folder=True),
        Output("plot", "--plot", cli_outputs.is_picture), REJECTS,
    )  # fmt: skip


def _quality(arguments: argparse.Namespace) -> None:
    from crowdzoo.aggregation import create
    from crowdzoo.constraints import SEED
    from crowdzoo.quality import quality_report
    from crowdzoo.report.plots import plot_quality
    from crowdzoo.report.quality_tables import print_quality

    SEED.checked("", "seed", arguments.seed)
    aggregator = None
    if arguments.method != "none":
        aggregator = create(arguments.method, **_accepted(arguments.method, seed=arguments.seed))
    if arguments.plot is not None:
        if arguments.plot.suffix != ".png":
            raise ConfigError(f"--plot {arguments.plot}: a picture's file ends in .png.")
        import matplotlib  # noqa: F401  says what is missing before any work is done
    annotations = _read_annotations(arguments)
    aggregation = None if aggregator is None else aggregator.fit(annotations)
    with _progress("bootstrap", arguments.bootstrap) as step:
        report = quality_report(
            annotations, aggregation, metric=arguments.metric, bootstrap=arguments.bootstrap, seed=arguments.seed,
            on_sample=step,
        )  # fmt: skip
    print_quality(report, arguments.top)
    if arguments.out is not None:
        print(f"\ntables: {report.write(arguments.out, arguments.format, replace=arguments.force)}")
    if arguments.plot is not None:
        print(f"\npicture: {plot_quality(report, arguments.plot)}")


def _accepted(method: str, **settings: Any) -> dict[str, Any]:
    """Those settings that a method of aggregation has; an unknown method is `create`'s to refuse."""
    from inspect import signature

    from crowdzoo.aggregation import METHODS

    known = signature(METHODS[method]).parameters if method in METHODS else {}
    return {name: value for name, value in settings.items() if name in known}


# -- train, export, predict --------------------------------------------------------------------------------------------


def _describe_train(command: argparse.ArgumentParser) -> None:
    command.add_argument("annotations", type=local_path, help=f"columns task, annotator, label ({LABEL_FORMATS})")
    command.add_argument("instances", type=local_path, nargs="?",
        help="columns task, features, optional gold and split (.parquet, .csv, .csv.gz); none for sentences",
    )  # fmt: skip
    command.add_argument(
        "--out", type=local_path, required=True, metavar="FILE.keras", help="where the trained model goes"
    )
    command.add_argument(
        "--method", default="crowdsourced-layer", metavar="NAME",
        help="a method that learns from every annotator's labels (default crowdsourced-layer), or an algorithm of "
        "`crowdzoo aggregate`, on whose posteriors (estimates) the base is trained; a name that there is not lists "
        "them all. Of ratings rating-em is the former, and aggregated the latter of that name",
    )  # fmt: skip
    command.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", dest="settings",
        help="any setting of the method, such as connection=VW; may be given several times",
    )  # fmt: skip
    command.add_argument("--hidden", metavar="N,N,…", help="units of the hidden layers (default 128); of a regressor "
        "of texts of the last one")  # fmt: skip
    command.add_argument("--form", metavar="FORM",
        help="of a regressor of texts: convolutional (default) or bag-of-words",
    )  # fmt: skip
    command.add_argument("--dropout", type=number(), help="share of hidden units dropped in training")
    command.add_argument("--epochs", type=integer(1, MOST), help="passes over the tasks (default: by their number)")
    command.add_argument("--batch-size", type=integer(1, MOST), help="tasks in a batch (default: by their number)")
    command.add_argument("--learning-rate", type=number())
    command.add_argument("--seed", type=integer(0, 2**32 - 1), default=0, help="default 0")
    _add_kinds(command)
    command.add_argument("--gold", type=local_path, metavar="FILE",
        help="of sentences: their true tags, to print F1; of classes and ratings gold is a column of the instances",
    )  # fmt: skip
    _add_reading(command)
    _add_outputs(
        command, ("annotations", "instances", "gold"), Output("out", "--out", cli_outputs.is_model),
        Output("out", "names of --out", cli_outputs.is_names, place=cli_outputs.names_path), REJECTS,
    )  # fmt: skip


def _train(arguments: argparse.Namespace) -> None:
    import numpy as np

    from crowdzoo import aggregation
    from crowdzoo.commands.ratings import refuse_scale
    from crowdzoo.instances.instances import read_instances
    from crowdzoo.report.tables import print_table
    from crowdzoo.training.features import train
    from crowdzoo.training.length import length_rows, num_labelled, with_length
    from crowdzoo.training.methods import AGGREGATED, METHODS
    from crowdzoo.training.settings import TrainingSettings

    if arguments.out.suffix != ".keras":
        raise ConfigError(f"--out {arguments.out}: a model's file ends in .keras.")
    given = {
        name: value
        for name in ("dropout", "epochs", "batch_size", "learning_rate")
        if (value := getattr(arguments, name)) is not None
    }
    if arguments.hidden is not None:
        given["hidden"] = _whole_numbers("--hidden", arguments.hidden)
    hyperparameters = dict(map(_setting, arguments.settings))
    if arguments.task != "regression":
        refuse_scale(arguments)
        if arguments.form is not None:
            raise ConfigError(
                f"--form {arguments.form}: it is of a regressor of texts, and belongs to --task regression."
            )
    if arguments.task == "sequence":
        from crowdzoo.commands.sentences import train_sentences

        if arguments.instances is not None:
            raise ConfigError(f"{arguments.instances}: sentences are in the file of annotations; leave this one away.")
        if arguments.hidden is not None:
            raise ConfigError(f"--hidden {arguments.hidden}: a tagger has no such layers; leave it away.")
        given["seed"] = arguments.seed
        trained = train_sentences(arguments, hyperparameters, given, _progress)
        _save_model(trained["model"], arguments.out, trained, encoder=trained["encoder"])
        print_table(arguments.method, ("", ""), [*trained["rows"], ("model", str(arguments.out))])
        return
    if arguments.instances is None:
        raise ConfigError("the file of instances is missing: crowdzoo train ANNOTATIONS INSTANCES --out FILE.keras")
    if arguments.task == "regression":
        from crowdzoo.commands.ratings import train_ratings

        given["seed"] = arguments.seed
        trained = train_ratings(arguments, hyperparameters, given, _read_annotations, _progress)
        more = {"text_ids": trained["text_ids"]} if "text_ids" in trained else {}
        _save_model(trained["model"], arguments.out, trained, **more)
        print_table(arguments.method, ("", ""), [*trained["rows"], ("model", str(arguments.out))])
        return
    instances = read_instances(arguments.instances)
    annotations = _read_annotations(arguments, tasks=instances.tasks)  # so task codes are rows of the instances
    gold = instances.gold_codes(annotations.classes, file=str(arguments.instances))
    training = np.ones(len(instances), bool) if instances.split is None else instances.split != "eval"
    learned = arguments.method in METHODS and arguments.method != AGGREGATED
    if not learned and arguments.method not in aggregation.METHODS:
        names = [*(name for name in METHODS if name != AGGREGATED), *aggregation.METHODS]
        hint = did_you_mean(arguments.method, names)
        raise ConfigError(
            f"--method {arguments.method}: there is no such method; choose one of {', '.join(names)}.{hint}"
        )
    settings = TrainingSettings(
        method=arguments.method if learned else AGGREGATED, arguments=hyperparameters if learned else {},
        seed=arguments.seed, **given,
    )  # fmt: skip
    used = annotations.select_tasks(np.flatnonzero(training))
    labels: dict[str, Any] = {"annotations": used, "tasks": used.tasks}
    if not learned:
        aggregator = aggregation.create(
            arguments.method, **_accepted(arguments.method, seed=arguments.seed), **hyperparameters
        )
        labels = {"label_distribution": aggregator.fit(used).posteriors}
    settings = with_length(settings, num_labelled(used))
    with _progress("training", settings.epochs) as step:
        model = train(settings, instances.features[training], callbacks=[_epoch_callback(step)], **labels)
    _save_model(model, arguments.out, {"classes": annotations.classes, "annotators": annotations.annotators})
    rows = [
        ("tasks trained on", f"{used.num_tasks:,}"),
        ("annotations trained on", f"{len(used):,}"),
        *_rejected(annotations),
        ("annotators", f"{used.num_annotators:,}"),
        *length_rows(settings),
    ]
    for name, chosen in (("training", training), ("held-out", ~training)):
        known = chosen & (gold >= 0)
        if known.any():
            correct = model.predict(instances.features[known], verbose=0).argmax(axis=1) == gold[known]
            rows.append((f"{name} accuracy against gold", f"{correct.mean():.3f} ({known.sum():,} tasks)"))
    print_table(arguments.method, ("", ""), [*rows, ("model", str(arguments.out))])


def _save_model(model: Any, path: Path, vocabularies: Mapping[str, Any], **more: Any) -> None:
    """Save beside the model's file the names that its codes stand for; both appear complete or not at all."""
    names = {**{name: _as_strings(vocabularies[name]) for name in ("classes", "annotators")}, **more}  # ratings: None
    with atomic_path(path) as scratch, atomic_file(cli_outputs.names_path(path)) as file:
        model.save(scratch)
        file.write(json.dumps(names).encode())


def _as_strings(names: Any) -> list[str] | None:
    return None if names is None else [str(name) for name in names]


def _describe_export(command: argparse.ArgumentParser) -> None:
    command.add_argument("model", type=local_path, help="a .keras file from `crowdzoo train`")
    command.add_argument("out", type=local_path, help="the served folder; the model becomes its next version")
    command.add_argument(
        "--warmup", type=local_path, metavar="INSTANCES", help="instances whose first rows become warm-up requests"
    )


def _export(arguments: argparse.Namespace) -> None:
    _use_tensorflow()
    from crowdzoo.commands.sentences import encoder_of, read_texts
    from crowdzoo.export.saved_model import WARMUP_INSTANCES, export_model
    from crowdzoo.files.model_files import read_model_names
    from crowdzoo.files.version_folders import next_version
    from crowdzoo.instances.instances import read_instances
    from crowdzoo.saving import load_model

    if not arguments.model.is_file():
        raise DataError(
            f"{arguments.model}: there is no such file. `crowdzoo train --out {arguments.model}` makes one."
        )
    target = arguments.out / str(next_version(arguments.out))
    check_output_folder(target, "out")
    names_path = cli_outputs.names_path(arguments.model)
    if not names_path.is_file():
        raise DataError(f"{names_path}: is missing; it holds the class names and was written beside {arguments.model}.")
    names = read_model_names(names_path)
    encoder = encoder_of(names, names_path)
    warmup = None
    if arguments.warmup:
        found = read_instances(arguments.warmup).features if encoder is None else read_texts(arguments.warmup)[1]
        warmup = found[:WARMUP_INSTANCES]
    model = load_model(arguments.model)
    vocabularies = {name: names[name] for name in ("classes", "annotators")}
    export_model(model, target, **vocabularies, encoder=encoder, warmup_instances=warmup)
    print(target)


def _describe_predict(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "model", help="a served folder, one version of it, or the URL of a server (http://… or grpc://…)"
    )
    command.add_argument("instances", type=local_path,
        help="columns task and features, or task and text (.parquet, .csv, .csv.gz); or a text a line (.txt)",
    )  # fmt: skip
    command.add_argument(
        "--out", type=local_path, metavar="FILE.csv", help="where the predictions go; default: the terminal"
    )
    command.add_argument("--name", default=None, help="the model's name on a server (default: model)")
    _add_outputs(command, ("instances",), Output("out", "--out", cli_outputs.is_predictions))


def _predict(arguments: argparse.Namespace) -> None:
    from crowdzoo.commands.ratings import value_lines
    from crowdzoo.commands.sentences import read_texts, span_lines
    from crowdzoo.instances.instances import holds_texts, read_instances

    tasks: Any
    given: Any
    if holds_texts(arguments.instances):
        tasks, given = read_texts(arguments.instances)
    else:
        instances = read_instances(arguments.instances)
        tasks, given = instances.tasks, instances.features
    outputs = _answers(arguments, given)
    if "types" in outputs:
        lines = span_lines(tasks, outputs, _quoted)
    elif "value" in outputs:
        lines = value_lines(tasks, outputs, _quoted)
    elif "class" in outputs:
        classes = [_text(name) for name in outputs["class"]]
        confident = outputs["probabilities"].max(axis=1)
        lines = ["task,class,probability"]
        lines += [
            f"{_quoted(task)},{_quoted(name)},{probability:.6f}"
            for task, name, probability in zip(tasks, classes, confident, strict=True)
        ]
    else:
        raise DataError(f"{arguments.model}: answers with {', '.join(outputs)}, which this command does not print.")
    text = "\n".join(lines) + "\n"
    if arguments.out is None:
        sys.stdout.write(text)
    else:
        with atomic_file(arguments.out) as file:
            file.write(text.encode(errors="backslashreplace"))


def _answers(arguments: argparse.Namespace, instances: Any) -> dict[str, Any]:
    """What a served folder, or a server, answers; of a tagger the spans."""
    if "://" in arguments.model:
        from crowdzoo.serving import Client

        with Client(arguments.model, **({"model": arguments.name} if arguments.name else {})) as client:
            if "spans" in client.metadata()["signatures"]:
                return client.predict(instances, signature="spans", batch_size=256)
            return client.predict(instances)
    from crowdzoo.export.saved_model import MODEL_CARD_FILE, load_and_predict
    from crowdzoo.files.model_files import read_model_card
    from crowdzoo.files.version_folders import newest_version

    card = newest_version(arguments.model) / MODEL_CARD_FILE
    spans = card.is_file() and "spans" in (read_model_card(card).get("signatures") or ())
    return load_and_predict(arguments.model, instances, signature="spans" if spans else "serving_default")


def _text(name: Any) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)


def _quoted(value: Any) -> str:
    text = str(value)
    return '"' + text.replace('"', '""') + '"' if any(letter in text for letter in ',"\n\r') else text


# -- run, demo, serve, datasets ----------------------------------------------------------------------------------------


def _describe_run(command: argparse.ArgumentParser) -> None:
    command.add_argument("config", type=local_path, help="the pipeline's YAML file")
    command.add_argument("--check", action="store_true", help="only check the configuration and the input files")
    command.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides",
        help="replace a setting, as in --set training.epochs=20; may be given again",
    )  # fmt: skip


def _run(arguments: argparse.Namespace) -> int:
    from crowdzoo.pipelines.config import load_config
    from crowdzoo.pipelines.yaml_files import read_value

    overrides = {}
    for text in arguments.overrides:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise ConfigError(f"--set {text}: write KEY=VALUE, as in --set training.epochs=20.")
        overrides[key] = read_value(value, f"--set {shorten(key)}")
    config = load_config(arguments.config, overrides)
    if arguments.check:
        print(f"{arguments.config}: fine")
        return 0
    _use_tensorflow()
    from crowdzoo.pipelines.local import run

    result = run(config)
    print(result.summary())
    return 0


def _describe_demo(command: argparse.ArgumentParser) -> None:
    command.add_argument("name", nargs="?", choices=("labelme", "ner", "ratings"), default="labelme",
        help="labelme: photographs (default); ner: sentences with entities, raw text to a served tagger; ratings: "
        "numbers by harsh and mild annotators to a served regressor",
    )  # fmt: skip
    command.add_argument(
        "--out", type=local_path, metavar="DIR", help="where everything goes (default crowdzoo-runs/NAME)"
    )
    command.add_argument("--seeds", type=integer(1, 10**4), metavar="N", help="trainings of each row in the table")


def _demo(arguments: argparse.Namespace) -> None:
    _use_tensorflow()
    out = arguments.out or Path("crowdzoo-runs") / arguments.name
    check_folder(out, "--out")
    seeds = {} if arguments.seeds is None else {"seeds": range(arguments.seeds)}
    if arguments.name == "ner":
        from crowdzoo.pipelines.demo_ner import run_ner_demo

        run_ner_demo(out, **seeds)
        return
    if arguments.name == "ratings":
        from crowdzoo.pipelines.demo_ratings import run_ratings_demo

        run_ratings_demo(out, **seeds)
        return
    from crowdzoo.pipelines.demo import run_demo

    run_demo(out, **seeds)


def _describe_serve(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "model_dir", type=local_path, help="folder with one subfolder per version, as the pipeline pushes"
    )
    command.add_argument("--name", default=None, help="the model's name in URLs (default: model)")
    command.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    command.add_argument("--rest-port", type=integer(0, 65535), default=8501, help="default 8501; 0 takes a free one")
    command.add_argument("--grpc-port", type=integer(0, 65535), default=8500, help="default 8500; 0 takes a free one")
    command.add_argument(
        "--poll-seconds", type=number(0.01, 10**6), default=2.0, help="how often to look for new versions (default 2)"
    )
    command.add_argument("--wait", action="store_true", help="start without a model and wait for the first version")
    command.add_argument(
        "--limit", action="append", default=[], metavar="NAME=VALUE",
        help="what requests may take, such as --limit queue=128; docs/serving.md lists the names and defaults",
    )  # fmt: skip
    command.add_argument(
        "--new-signatures", action="store_true",
        help="let a version take over whose signatures differ from those of the version that is served",
    )  # fmt: skip


def _serve(arguments: argparse.Namespace) -> None:
    _use_tensorflow()
    from crowdzoo.serving.limits import Limits
    from crowdzoo.serving.server import serve

    named = {"name": arguments.name} if arguments.name else {}
    serve(
        arguments.model_dir, host=arguments.host, rest_port=arguments.rest_port, grpc_port=arguments.grpc_port,
        poll_seconds=arguments.poll_seconds, wait=arguments.wait, new_signatures=arguments.new_signatures,
        limits=Limits().changed(arguments.limit), **named,
    )  # fmt: skip


def _describe_datasets(command: argparse.ArgumentParser) -> None:
    command.add_argument("name", nargs="?", help="show this one; without it, list all")
    command.add_argument("--write", type=local_path, metavar="DIR", help="write its annotations and instances as files")
    _add_outputs(command, (), Output("write", "--write", cli_outputs.is_data_set, folder=True))


def _datasets(arguments: argparse.Namespace) -> None:
    from crowdzoo import datasets
    from crowdzoo.report.tables import print_table

    if arguments.name is None:
        if arguments.write:
            raise ConfigError("--write needs the name of a data set, as in `crowdzoo datasets labelme --write DIR`.")
        loaded = [datasets.load(name) for name in datasets.names()]
        header = ("name", "tasks", "annotators", "classes", "annotations", "majority right", "licence")
        rows = [
            (one.name, f"{one.annotations.num_tasks:,}", f"{one.annotations.num_annotators:,}",
             str(one.annotations.num_classes), f"{len(one.annotations):,}", f"{one.majority_accuracy():.3f}",
             one.licence)
            for one in loaded
        ]  # fmt: skip
        print_table("data sets that crowdzoo ships", header, rows)
        for kind, what in (("sequence", "sentences"), ("regression", "ratings")):
            print(f"of {what}: {', '.join(datasets.names(kind))}")
        return
    chosen = datasets.load(arguments.name)
    if arguments.write:
        for path in datasets.write_files(chosen, arguments.write):
            print(path)
        return
    print(f"{chosen.name}: {chosen.description}\n\nlicence: {chosen.licence}\ncite: {chosen.citation}")


# -- small parts -------------------------------------------------------------------------------------------------------


def _whole_numbers(flag: str, text: str) -> tuple[int, ...]:
    try:
        numbers = tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        numbers = (0,)
    if not 1 <= len(numbers) <= MOST_LAYERS or any(not 1 <= number <= MOST_UNITS for number in numbers):
        raise ConfigError(
            f"{flag} {shorten(text)}: write 1 to {MOST_LAYERS} whole numbers of 1 to {MOST_UNITS:,} with commas "
            "between, as in 128,64."
        )
    return numbers


def _quiet_libraries() -> None:
    """Leave the terminal to crowdzoo: TensorFlow's start-up lines, and a library's notice about Python 3.10."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    warnings.filterwarnings("ignore", message="You are using a .*Python version", category=FutureWarning)


def _use_tensorflow() -> None:
    """Choose Keras' backend before its first import: the SavedModel, the pipeline and the server need this one."""
    os.environ["KERAS_BACKEND"] = "tensorflow"


@contextlib.contextmanager
def _progress(title: str, total: int) -> Any:
    """A bar on the terminal's error stream; yields a function that counts one step."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task(title, total=total)
        yield lambda: progress.advance(bar)


def _epoch_callback(step: Callable[[], None]) -> Any:
    import keras

    return keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: step())


# name -> (adds the arguments, runs it, one sentence)
COMMANDS: dict[str, tuple[Callable, Callable, str]] = {
    "aggregate": (_describe_aggregate, _aggregate, "One label per task, and what each annotator is like."),
    "quality": (_describe_quality, _quality, "How far annotators agree, and which tasks and whom to look at."),
    "train": (_describe_train, _train, "Train a model from annotators' labels, without the pipeline."),
    "run": (_describe_run, _run, "Run the TFX pipeline from a YAML file, ending in a pushed model."),
    "export": (_describe_export, _export, "Write a trained model as the next version of a served folder."),
    "serve": (_describe_serve, _serve, "Answer TF Serving's REST and gRPC APIs for a served folder."),
    "predict": (_describe_predict, _predict, "Predict with a served folder or a running server."),
    "datasets": (_describe_datasets, _datasets, "List the data sets that ship with crowdzoo, or write one as files."),
    "demo": (_describe_demo, _demo, "The whole road on a crowd set that ships, with a table of what learns best."),
}
