"""`crowdzoo compare`: compare methods on your own data, with intervals and the command that uses the best."""

import argparse
import json
import re
import shlex
import shutil
from datetime import datetime, timezone
from typing import Any

from crowdzoo.commands import options
from crowdzoo.commands.options import add_options, group, integer, path
from crowdzoo.commands.outputs import Output, holds, progress
from crowdzoo.commands.train import FIELDS, add_training, settings_of, training_set_of
from crowdzoo.errors import ConfigError, CrowdzooError
from crowdzoo.files.writing import write_rows
from crowdzoo.kinds import KINDS
from crowdzoo.process import say, use_tensorflow
from crowdzoo.report.tables import print_table

# Options only of `crowdzoo train`, and those that are not part of the command for the best method
TRAINING = (*FIELDS, "hidden", "base", "instance_columns", "types", "base_settings", "encoder_settings")
FILES_AND_GOLD = ("out", "out_separator", "out_decimal", "bom", "force", "rejects", "gold", "gold_columns")
OWN = ("methods", "seeds", "track", "debug", *FILES_AND_GOLD)
FILES = ("runs.parquet", "comparison.csv", "comparison.png", "tensorboard")


def describe(command: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    options.add_annotations(command)
    methods = {
        "--methods A,B,…": "methods to compare: quick (default), all, or names with commas between, each followed by"
        " its settings, as in 'majority-vote,crowdsourced-layer connection=VW'. They are methods of crowdzoo "
        "aggregate, or with instances of crowdzoo train; for sentences, --base sequence-tagger means the latter",
    }
    add_options(command, methods, default="quick")
    add_options(
        command,
        {"--seeds N": "number of repetitions of everything, with seeds from 0 (default 1)"},
        type=integer(1, 10**4),
        default=1,
    )
    output = group(command, options.OUTPUT)
    out = {
        "--out DIR": "folder for runs.parquet, comparison.csv and comparison.png. If it holds an unfinished "
        "comparison, the same command goes on from there, also with further methods or seeds",
    }
    add_options(output, out, type=path, required=True)
    track = {
        "--track": "log parameters and figures of each method, and the plot: to MLflow (crowdzoo[mlflow]), where "
        "MLFLOW_TRACKING_URI says, or for TensorBoard's HParams to a folder of --out",
    }
    add_options(output, track, choices=("mlflow", "tensorboard"))
    options.add_spreadsheet(command)
    gold = {
        "--gold FILE": "true labels (for preferences true scores, for several labels all that hold in one cell): "
        "columns task, gold in .parquet or .csv; for sentences a file of true tags; with instances their column gold "
        "is used where this is not given. Without gold methods are compared by what they say of annotations that were "
        "hidden",
    }
    add_options(group(command, options.INSTANCES), gold, type=path)
    add_training(command)
    options.add_reading(command, "instance")
    options.add_second_columns(command, "gold")
    options.add_image(command, "; with a folder of images it is found where there is only one")
    options.add_kinds(command)
    options.add_multi_label(command, ", as in `crowdzoo aggregate`; needs --gold")
    comparison = Output("out", "--out", holds(FILES, leftovers=True), folder=True, goes_on=True)
    command.set_defaults(format="csv")  # of comparison.csv
    options.add_outputs(command, ("annotations", "instances", "gold"), comparison, options.REJECTS)


def run(arguments: argparse.Namespace) -> None:
    """Read, compare, write the table and the plot, and print the table."""
    kind = options.checked_kind(arguments, ("classes", "wide", "no_label", "instances"))
    if kind.labels.has_several and arguments.gold is None:
        raise ConfigError("--multi-label: methods for several labels are compared with gold: give --gold FILE.")
    words = [word.strip() for word in re.split(r",(?![^[]*\])", arguments.methods) if word.strip()]  # not within lists
    passed: dict[str, Any] = {"methods": words, "track": arguments.track}
    if not passed["methods"]:
        raise ConfigError("--methods: names no method; write quick, all, or names with commas between.")
    trains = next((arguments.options[name] for name in TRAINING if getattr(arguments, name) not in (None, [])), None)
    if arguments.instances is None and (trains is None or "instances" in kind.options.inputs):
        if trains is not None:
            raise ConfigError(f"{trains}: is for deep methods: name the file of instances behind the annotations.")
        passed |= options.given(arguments, kind.options.scale)
        crowd = kind.reading.read(arguments.annotations, **options.reading_options(arguments, kind))
        gold = options.gold_of(arguments, kind, crowd)
    else:
        use_tensorflow()
        passed["settings"] = settings_of(arguments, kind)
        # gold for training has pairs, this file has scores
        own = arguments.gold if "gold" in kind.options.reading else None
        data = training_set_of(argparse.Namespace(**{**vars(arguments), "gold": own}), kind)
        crowd, gold = data.crowd, data.gold
        if gold is not None and not kind.measure.scoring.known(gold).any():
            gold = None
        passed["held_out"] = data.held_out
        if arguments.instances is not None:
            passed |= {"instances": data.x, "tasks": crowd.tasks}
            gold = gold if arguments.gold is None else options.gold_of(arguments, kind, crowd)
    from crowdzoo.comparison.compare import compare
    from crowdzoo.report.plots import plot_comparison

    if arguments.force:
        shutil.rmtree(arguments.out / "runs.parquet", ignore_errors=True)
    with progress("comparing", 100) as step:
        num_shown = [0]

        def on_run(done: int, total: int) -> None:
            while num_shown[0] < 100 * done // total:
                num_shown[0] += 1
                step()

        comparison = compare(
            crowd, gold=gold, seeds=range(arguments.seeds), folder=arguments.out, on_run=on_run, **passed
        )
    write_rows(arguments.out / "comparison.csv", comparison.frame, comparison.frame.itertuples(index=False, name=None))
    try:
        plot_comparison(comparison, arguments.out / "comparison.png")
    except CrowdzooError as error:  # matplotlib is not installed; the table is enough
        say(f"warning: comparison.png is left out: {error}")
    _print(comparison, arguments, "train" if "settings" in passed else "aggregate")


def _print(comparison: Any, arguments: argparse.Namespace, command: str) -> None:
    left_out = print_table(*comparison.table(), whole=3)
    frame, best = comparison.frame, comparison.best
    if left_out:  # notes are the last column
        print(f"The terminal is too narrow for {', '.join(left_out)}: see {arguments.out / 'comparison.csv'}.")
        print(*(f"{row.method}: {row.notes}" for row in frame.itertuples() if row.notes), sep="\n")
    level = [title for title in frame["method"][frame["level"].astype(bool)] if title not in (best.title, "gold")]
    print()
    print(f"The best is {best.title}." + (f" Level with it: {', '.join(level)}." if level else ""))
    if not comparison.has_gold:
        print("This ranks predictions of annotators. To rank labels, give gold of a few hundred tasks (--gold).")
    print("To use the best method:")
    print(f"  {_line(best, arguments, command)}")


def _line(best: Any, arguments: argparse.Namespace, command: str) -> str:
    """The command that aggregates or trains with a method, with the options of this one."""
    words = ["crowdzoo", command, str(arguments.annotations)]
    words += [] if arguments.instances is None else [str(arguments.instances)]
    words += ["--method", best.name]
    for name, value in best.arguments.items():
        words += ["--set", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
    usual = (None, "error", "BIO", next(iter(KINDS)))
    left_out = (*OWN, "outside_images") if command == "aggregate" else OWN
    for name, option in arguments.options.items():
        value = None if name in left_out else getattr(arguments, name, None)
        if name in options.TIMES and value is not None:
            value = datetime.fromtimestamp(value, timezone.utc).isoformat()
        if value is True:
            words.append(option)
        elif value is False and name in ("header", *FIELDS):
            words.append(f"--no-{option.removeprefix('--').removeprefix('no-')}")
        elif value not in usual and value is not False:
            for item in value if isinstance(value, list) else [value]:
                words += [f"{option}={item}"] if str(item).startswith("-") else [option, str(item)]
    return shlex.join([*words, "--out", "result" if command == "aggregate" else "model.keras"])
