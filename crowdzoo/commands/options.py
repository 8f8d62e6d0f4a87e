"""Options shared by several commands."""

import argparse
import csv
import math
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from crowdzoo.checks.constraints import Flag, Number, setting_value
from crowdzoo.commands.outputs import Output, marked
from crowdzoo.data.annotations import Annotations
from crowdzoo.data.label_kinds import LABEL_KINDS
from crowdzoo.errors import ConfigError, DataError, as_argument, option_text, shorten
from crowdzoo.files.paths import local_path
from crowdzoo.files.regular import open_regular
from crowdzoo.files.text import readable
from crowdzoo.files.writing import csv_cell
from crowdzoo.kinds import KINDS, Kind, kind_of
from crowdzoo.kinds.reading import date
from crowdzoo.reading.tables.annotation_files import HEADER
from crowdzoo.reading.tables.layout import Layout
from crowdzoo.training.settings import ImageSettings, Settings, TextSettings, TrainingSettings

# Headings in --help; options of a kind of label are under its name
READING, OUTPUT, INSTANCES = "reading the annotations", "output", "instances and gold"
CLASSES = next(iter(KINDS))  # the default of --kind
LABEL_FORMATS = ".csv, .tsv, .jsonl, also .gz; .xlsx or .parquet"
ONE_ANSWER = (
    ": all labels by one annotator (in several rows, or one cell with --label-separator) are one answer, and an empty "
    "cell says that none holds; "
)  # of --multi-label
MOST = 10**9  # epochs, iterations, lines
TIMES = ("since", "until")  # options that are dates
PEOPLE_AND_MODELS = "people-and-models"
REJECTS = Output("rejects", "--rejects", marked(rf"^{','.join(HEADER)}(\r?\n|$)"))


# === Types of options ===


def path(text: str) -> Path:
    """Parse a local path without changing it.

    Raises:
        ArgumentTypeError: a URL, or characters that paths cannot contain.
    """
    try:
        local_path(text, "the path")
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return Path(text)


def integer(low: int, high: int) -> Callable[[str], int]:
    """Type of an option with an integer from low to high."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = low - 1
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{shorten(text)!r} is not an integer from {low:,} to {high:,}")
        return value

    return read


def number(low: float = -math.inf, high: float = math.inf) -> Callable[[str], float]:
    """Type of an option with a finite number from low to high."""
    limits = "" if low == -math.inf else f" of at least {low:g}" if high == math.inf else f" from {low:g} to {high:g}"

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (low <= value <= high and math.isfinite(value)):
            raise argparse.ArgumentTypeError(f"{shorten(text)!r} is not a finite number{limits}")
        return value

    return read


# === Options ===


def group(command: argparse.ArgumentParser, title: str) -> argparse._ArgumentGroup:
    """Get or create the group of options under a heading of the help."""
    titled = (section for section in command._action_groups if section.title == title)
    return next(titled, None) or command.add_argument_group(title)


def add_options(command: argparse._ActionsContainer, helps: Mapping[str, str], **how: Any) -> None:
    """Add options that differ only in name and help.

    Args:
        command: its parser, or a group of its options.
        helps: option, with the name of its value if it has one, such as "--sheet NAME" -> help text.
        **how: arguments of `add_argument` for all of them.
    """
    for words, text in helps.items():
        flag, _, value = words.partition(" ")
        metavar: dict[str, Any] = {"metavar": value} if value else {}
        command.add_argument(flag, help=text, **metavar, **how)


def add_outputs(command: argparse.ArgumentParser, inputs: Sequence[str], *outputs: Output) -> None:
    """Declare the outputs of a command, to be checked before it runs, and add --force.

    Args:
        command: its parser.
        inputs: names of the arguments that are input files.
        outputs: outputs of the command.
    """
    force = {"--force": "replace existing files and earlier results of this command"}
    add_options(group(command, OUTPUT), force, action="store_true")
    command.set_defaults(inputs=inputs, outputs=outputs)


def add_spreadsheet(command: argparse.ArgumentParser) -> None:
    """Add the options for writing CSV for spreadsheets; see `check_outputs`."""
    output = group(command, OUTPUT)
    separator = "character between the values in written CSV: , ; | or a tab (default ,)"
    output.add_argument("--out-separator", choices=(",", ";", "|", "\t"), metavar="X", help=separator)
    decimal = "decimal mark in written CSV: . or , (default .)"
    output.add_argument("--out-decimal", choices=(".", ","), metavar="X", help=decimal)
    bom = "begin written CSV with a mark of UTF-8, without which Excel misreads letters such as é"
    output.add_argument("--bom", action="store_true", help=bom)


def add_reading(command: argparse.ArgumentParser, second: str | None = None) -> None:
    """Add the options for reading annotations.

    Args:
        command: its parser.
        second: the other table that the command reads, "instance" or "gold".
    """
    reading = group(command, READING)
    texts = {
        "--platform NAME": "the annotations are an export of this labelling platform: a file, a zip archive or a "
        "folder; an unknown name prints the list",
        "--field NAME": "question to read, where an export (--platform), or cells that hold JSON objects, have several",
        "--columns NAME=COLUMN,…": "names of the columns in the file, OURS=THEIRS, such as "
        "task=HITId,annotator=WorkerId,label=Answer (default: found by their names)",
        "--separator X": "character between the values of a CSV file (default: comma, semicolon, tab or |, as the "
        "header shows)",
        "--sheet NAME": "sheet of an Excel workbook (default: the first one)",
        "--missing A,B,…": "labels that mean that there is no label, such as --missing=-1,NA",
        "--label-separator X": "mark between several labels in one cell, such as '|'; --on-duplicate says which of "
        "them count",
        "--annotator-separator X": "mark between several annotators in one cell, whose labels are in another cell in"
        " the same order; lists need no mark",
        "--rename OLD=NEW,…": "labels to replace by others, such as 'Dog=dog,both=tie'",
        "--no-label LABEL": "label that an empty cell represents (default: an empty cell is an invalid row; with "
        "--multi-label '(none)', the answer that no label holds)",
        "--classes A,B,…": 'names of the classes in order (one with a comma: "a, b"); other labels are '
        "invalid (default: the labels that occur, sorted)",
        "--exclude NAME,…|FILE": 'annotators to leave out: names with commas between (one with a comma: "a, b"), or a '
        "text file with one name per line; NAME:2026-02-14.. leaves out the answers from this time on (UTC), "
        "NAME:..2026-02-14 those before it",
        "--only NAME,…|FILE": "annotators to keep, without all others: names, or a file, as for --exclude",
    }
    add_options(reading, texts)
    times = {
        "--since DATE": "keep annotations from this time on, such as 2026-03-01 or 2026-03-01T12:00 (UTC), by their "
        "timestamps",
        "--until DATE": "keep annotations before this time",
    }
    add_options(reading, times, type=date)
    add_text_options(command)
    header = {
        "--no-header": "the annotations have no header; give --columns as numbers, such as task=1,annotator=2,label=3",
    }
    add_options(reading, header, dest="header", action="store_const", const=False)
    wide = {
        "--wide": "each row is a task and each column an annotator; or, with --columns annotator=NAME, each row an "
        "annotator and each column a task. An empty cell is not a label",
    }
    add_options(reading, wide, action="store_true", default=None)
    bad_rows = {"--on-bad-rows": "what to do with invalid rows: stop (default), or skip them"}
    add_options(reading, bad_rows, choices=("error", "reject"), default="error")
    add_options(
        reading,
        {"--rejects FILE": "CSV file for the rows that --on-bad-rows reject skips, with the reasons"},
        type=path,
    )
    duplicates = {
        "--on-duplicate": "an annotator's second label for a task: stop (default), keep the first, keep the last, or"
        " count all of them (only majority-vote and dawid-skene)",
    }
    add_options(reading, duplicates, choices=("error", "first", "last", "all"), default="error")
    if second is not None:
        add_second_columns(command, second)


def add_annotations(command: argparse.ArgumentParser) -> None:
    """Add the argument for the file of annotations, of any kind."""
    text = "columns task, annotator, label; for preferences left, right, annotator, label"
    command.add_argument("annotations", type=path, help=f"{text} ({LABEL_FORMATS})")


def add_values(command: argparse._ActionsContainer, flag: str, what: str, dest: str = "settings") -> None:
    """Add an option with NAME=VALUE, for `settings_of` or `named_values`.

    Args:
        command: parser, or a group of its options.
        flag: the option.
        what: description of a value, for its help.
        dest: attribute of the arguments that stores the words.
    """
    helps = {f"{flag} NAME=VALUE": f"{what}; may be given several times"}
    add_options(command, helps, action="append", default=[], dest=dest)


def add_multi_label(command: argparse.ArgumentParser, more: str) -> None:
    """Add --multi-label; `more` is the end of its help."""
    helps = {"--multi-label": f"several labels may hold for a task{more}"}
    add_options(group(command, CLASSES), helps, action="store_true", default=None)


def add_annotator_table(command: argparse.ArgumentParser, what: str) -> None:
    """Add --annotator-table; `what` is its purpose, for the help."""
    helps = {
        "--annotator-table FILE": f"{what}: columns annotator, and source (model or person), cost (of an answer, "
        "above 0), or both (.parquet, .csv, .csv.gz)",
    }
    add_options(group(command, CLASSES), helps, type=path)


def check_mixed(arguments: argparse.Namespace, kind: Kind, refused: Sequence[str] = ()) -> None:
    """Check the options for aggregating people and models.

    Args:
        arguments: arguments with `method` and `annotator_table`.
        kind: kind of label.
        refused: options that do not work with a table of annotators.

    Raises:
        ConfigError: no table of annotators, another kind, a method that does not distinguish people and models, or a
            refused option.
    """
    if arguments.annotator_table is None:
        raise ConfigError(f"--method {PEOPLE_AND_MODELS}: say with --annotator-table FILE which annotators are models.")
    refuse(arguments, refused, "--annotator-table")
    check_for_classes(arguments, kind, ["annotator_table"])
    if arguments.method not in (None, PEOPLE_AND_MODELS):
        raise ConfigError(f"--method {arguments.method} takes people and models alike: leave out --annotator-table.")


def check_for_classes(arguments: argparse.Namespace, kind: Kind, names: Iterable[str]) -> None:
    """Reject options for classes if labels are of another kind."""
    for name in () if kind.labels.one_class else given(arguments, names):
        raise ConfigError(f"{arguments.options[name]} is for classes; leave it out with --kind {kind.name}.")


def refuse(arguments: argparse.Namespace, names: Iterable[str], option: str, usual: object = None) -> None:
    """Reject options that do not work with a given one.

    Args:
        arguments: of the command.
        names: names of the options to reject.
        option: the given option.
        usual: a further default of theirs, besides None, False and an empty list.

    Raises:
        ConfigError: both are given; names them.
    """
    for name in names:
        value = getattr(arguments, name, None)
        if not (value is None or value is False or value == [] or value == usual):
            word = arguments.options.get(name, value)  # files have no option
            raise ConfigError(f"{word} does not go with {option}: leave one of them out.")


def annotator_table(arguments: argparse.Namespace, crowd: Annotations) -> Any:
    """Read --annotator-table, with the decimal mark and encoding of the annotations."""
    from crowdzoo.reading.instances.annotator_table import read_annotator_table

    layout = Layout.of_second(None, vars(arguments), "")
    return read_annotator_table(arguments.annotator_table, crowd.annotators, layout)


def models_of(arguments: argparse.Namespace, annotations: Annotations) -> list[str]:
    """Names of the annotators that are models.

    Raises:
        DataError: the file cannot be read, has no sources, or contains no model.
    """
    table, read = arguments.annotator_table, annotator_table(arguments, annotations)
    if read.sources is None:
        raise DataError(f"{table}: has no column 'source', which says who is a model. Add it, with model or person.")
    models = [str(name) for name in annotations.annotators[read.sources == "model"]]
    if not models:
        raise DataError(f"{table}: none of the {len(read.sources):,} annotators is a model.")
    return models


def add_image(command: argparse.ArgumentParser, more: str = "") -> None:
    """Add --image; `more` is the end of its help."""
    helps = {
        "--image COLUMN": "with --platform: name tasks after the files of their images, which this column of the "
        f"export names{more}",
    }
    add_options(group(command, READING), helps)


def add_text_options(command: argparse.ArgumentParser) -> None:
    """Add the options for the format of text files."""
    reading = group(command, READING)
    encoding = "encoding of text files, such as latin-1 (default: UTF-8, or as a byte order mark says)"
    reading.add_argument("--encoding", metavar="NAME", help=encoding)
    decimal = "decimal mark of numbers in text: . or , (default .)"
    reading.add_argument("--decimal", choices=(".", ","), metavar="X", help=decimal)


def add_second_columns(command: argparse.ArgumentParser, second: str) -> None:
    """Add options for column names of instances or gold; `second` is "instance" or "gold"."""
    table, names = "gold", "task, gold"
    if second == "instance":
        table, names = "instances", "task, gold, split, text, image, features"
        outside = {"--outside-images": "allow the table of instances to name images outside of its own folder"}
        add_options(group(command, INSTANCES), outside, action="store_true")
    columns = {
        f"--{second}-columns NAME=COLUMN,…": f"names of the columns in the file of {table}, OURS=THEIRS, such as "
        f"task=image (ours: {names}); numbers count the columns of a file without a header",
    }
    add_options(group(command, INSTANCES), columns)


def add_kinds(command: argparse.ArgumentParser) -> None:
    """Add --kind, the options of each kind of label, and --help-all; see `hide_other_kinds`."""
    helps = {
        "--kind": "kind of labels: classification (default), one of a few classes; sequence, tagged sentences (spans"
        " in .jsonl, or CoNLL columns under any other ending); regression, numbers such as ratings; preference, "
        "which of two tasks is better; free-text, such as transcriptions; region, boxes, masks or points on images",
    }
    add_options(command, helps, choices=tuple(LABEL_KINDS), default=CLASSES)
    add_options(command, {"--help-all": "show this help with the options for all kinds of labels"}, action="help")
    for kind in KINDS.values():
        of_kind = group(command, kind.name)
        for option in kind.options.own:
            values: dict[str, Any] = {"choices": option.choices} if option.choices else {}
            values |= {"type": number()} if option.is_number else {}
            values |= {"metavar": option.metavar} if option.metavar else {}
            flag = f"--{option.name.replace('_', '-')}"
            of_kind.add_argument(flag, default=option.default, help=option.help, **values)


def hide_other_kinds(command: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """Hide options for other kinds of labels from the help of a command.

    Args:
        command: its parser.
        words: arguments of the command line: `--help-all` shows all options, `--kind` selects a kind.
    """
    if "--help-all" not in command._option_string_actions or any(word.startswith("--help-") for word in words):
        return
    reader = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    reader.add_argument("--kind", nargs="?")
    shown = KINDS.get(reader.parse_known_args(words)[0].kind) or KINDS[CLASSES]
    for options in command._action_groups:
        other = options.title in KINDS and options.title != shown.name
        for action in options._group_actions:
            if other or action.dest in shown.options.refused:
                action.help = argparse.SUPPRESS
    command.epilog = "Options for other kinds of labels: --kind KIND --help. All options: --help-all."


def checked_kind(arguments: argparse.Namespace, not_several: Iterable[str] = ()) -> Kind:
    """Return the kind of label of --kind or --multi-label, after rejecting options for other kinds.

    Args:
        arguments: of the command.
        not_several: names of options that do not work with --multi-label.

    Raises:
        ConfigError: names the rejected option and the reason.
    """
    kind = kind_of(arguments.kind)
    own = {option.name: option.refusal for other in KINDS.values() for option in other.options.own}
    for name, why in {
        **own,
        **dict.fromkeys(option.name for option in kind.options.own),
        **kind.options.refused,
    }.items():
        value = getattr(arguments, name, None)
        if value is not None and why:
            # task=x would look like an argument in Python
            shown = f" {value:g}" if isinstance(value, float) else f" {value}"
            shown = "" if isinstance(value, bool) or "=" in shown else shown
            raise ConfigError(f"--{name.replace('_', '-')}{shown}: {why}")
    for name, file in (("gold_columns", "gold"), ("instance_columns", "instances"), ("outside_images", "instances")):
        if getattr(arguments, file, "") is None and getattr(arguments, name, None):
            raise ConfigError(f"--{name.replace('_', '-')} is for a file of {file}: give that file, or leave it out.")
    if not getattr(arguments, "multi_label", None):
        return kind
    check_for_classes(arguments, kind, ["multi_label"])
    refuse(arguments, not_several, "--multi-label")
    if arguments.on_duplicate in ("first", "last"):
        raise ConfigError(
            f"--on-duplicate {arguments.on_duplicate} does not go with --multi-label, where all labels count: leave it "
            "out."
        )
    return kind_of("multi-label")


def add_seed(command: argparse.ArgumentParser, of: str, most: int = 2**63 - 1) -> None:
    """Add --seed; `of` is what it seeds, `most` the largest value."""
    command.add_argument("--seed", type=integer(0, most), default=0, help=f"seed of {of} (default 0)")


def add_alpha(command: argparse.ArgumentParser, metric: str | None, of_kinds: str = "") -> None:
    """Add the options of Krippendorff's alpha; `metric` is the default, `of_kinds` describes that of other kinds."""
    metrics = {
        "--metric": "how far apart two labels are, for the agreement beyond chance (alpha): nominal, equal or"
        f" not (default{of_kinds}); ordinal, steps between ordered classes; interval, difference of numbers; ratio, "
        "relative difference"
    }
    add_options(command, metrics, choices=("nominal", "ordinal", "interval", "ratio"), default=metric)
    samples = {"--bootstrap N": "number of bootstrap samples for the interval of alpha (default 200; 0: no interval)"}
    add_options(command, samples, type=integer(0, 10**6), default=200)


def given(arguments: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """The arguments with these names that were given."""
    return {name: value for name in names if (value := getattr(arguments, name, None)) is not None}


def add_settings(command: argparse._ActionsContainer, helps: Mapping[str, str]) -> None:
    """Add an option for each training setting, name -> help; the settings class defines the valid values."""
    for name, text in helps.items():
        cls = next(cls for cls in (TrainingSettings, TextSettings, ImageSettings) if hasattr(cls, name))
        rule, kind = cls.rules.get(name), "" if hasattr(Settings, name) else f"{cls.instances.name}: "
        more: dict[str, Any] = {"metavar": name.rpartition("_")[2].upper()}
        if isinstance(rule, Flag):
            more = {"action": argparse.BooleanOptionalAction}
        elif isinstance(rule, Number):
            more["type"] = integer(int(rule.least), int(rule.most)) if rule.whole else number()
        usual = getattr(cls, name)
        text = kind + text + ("" if usual is None or "action" in more else f" (default {usual})")
        command.add_argument(f"--{name.replace('_', '-')}", default=None, help=text, **more)


def add_column_types(command: argparse.ArgumentParser) -> None:
    """Add --inputs."""
    helps = {
        "--inputs COLUMN=TYPE,…": "types of columns of a table, where they are not recognised: number, category, "
        "text, vector or image",
    }
    add_options(group(command, INSTANCES), helps, dest="types")


def column_types(text: str | None) -> dict[str, str]:
    """Parse the column types in --inputs."""
    if text is None:
        return {}
    pairs = [part.partition("=") for part in text.split(",")]
    wrong = next(("".join(pair) for pair in pairs if not (pair[0].strip() and pair[2].strip())), None)
    if wrong is not None:
        raise ConfigError(f"--inputs {shorten(wrong)}: write COLUMN=TYPE with commas between, as in postcode=category.")
    return {name.strip(): kind.strip() for name, _, kind in pairs}


def reading_options(arguments: argparse.Namespace, kind: Kind) -> dict[str, Any]:
    """The options of `Reading.read` that were given.

    Raises:
        ConfigError: incompatible options.
    """
    if arguments.rejects and arguments.on_bad_rows == "error":
        raise ConfigError("--rejects keeps what --on-bad-rows reject leaves out: give both.")
    reading = given(arguments, kind.options.reading)
    if arguments.classes is not None:
        reading["classes"] = names_of(arguments.classes, "classes")
        if len(set(reading["classes"])) < len(reading["classes"]):
            raise ConfigError(f"--classes {arguments.classes}: names a class twice.")
    for option in ("exclude", "only"):
        if (text := getattr(arguments, option)) is not None:
            reading[option] = _chosen(text, option)
    return reading | given(arguments, TIMES)


def options_of(command: argparse.ArgumentParser) -> dict[str, str]:
    """Options of a command: name of the Python argument -> option."""
    return {action.dest: action.option_strings[0] for action in command._actions if action.option_strings}


def as_option(options: Mapping[str, str], name: str, value: object) -> str:
    """Write a setting as an option of the command line; see `crowdzoo.errors.Setting`.

    Args:
        options: options of the command by Python argument; other settings are written as in Python.
        name: Python argument.
        value: its value; for a flag, the value is part of the option's name.
    """
    option = options.get("types" if name == "inputs" else name)
    if option is None:
        return as_argument(name, value)
    if value is ... or isinstance(value, bool):
        return option
    if isinstance(value, Mapping):
        value = ",".join(f"{key}={own}" for key, own in value.items())
    elif isinstance(value, list):
        value = ",".join(csv_cell(each) if "," in str(each) else str(each) for each in value)
    elif name.endswith("separator"):
        value = str(value).replace("\n", "\\n").replace("\t", "\\t")
    return option_text(option, str(value))


def source_of(arguments: argparse.Namespace, kind: Kind) -> str:
    """The file of annotations and the options for reading it, quoted for a shell, for suggested commands."""
    words = [shlex.quote(str(arguments.annotations))]
    for name, value in given(arguments, (*kind.options.reading, "exclude", "only", *TIMES)).items():
        if value != "error" and name != "rejects":  # the default of --on-bad-rows and --on-duplicate
            value = f"{datetime.fromtimestamp(value, timezone.utc):%Y-%m-%dT%H:%M:%S}" if name in TIMES else value
            words.append(as_option(arguments.options, name, value))
    return " ".join(words)


def names_of(text: str, option: str) -> list[str]:
    """Parse comma-separated names, in double quotes if they contain a comma, a line break or quotes.

    Raises:
        ConfigError: no name, or an empty one.
    """
    try:
        names = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
    except csv.Error:  # a line break outside of quotes
        names = []
    if not names or not all(names) or "\0" in text:
        way = 'write names with commas between, and double quotes around one with a comma or a line break, as "b, c"'
        raise ConfigError(f"--{option} {shorten(repr(text))}: has an empty name; {way}.")
    return names


def _chosen(text: str, option: str) -> list[str]:
    """Names from `names_of`, or from a file."""
    if not os.path.isfile(text):
        return names_of(text, option)
    with open_regular(text) as file:
        names = [name for line in readable(file.read()).removeprefix("\ufeff").splitlines() if (name := line.strip())]
    if not names:
        raise ConfigError(f"--{option} {text}: the file has no name; write one per line.")
    return names


def add_worth(command: argparse.ArgumentParser, effect: str, enough: str) -> None:
    """Add --worth and --target, for classes.

    Args:
        command: its parser.
        effect: for the help: what happens to tasks whose answers are expected to correct more than they cost.
        enough: for the help: what happens once the target is reached.
    """
    worth = {
        "--worth X": f"classes: value of a corrected label, in the unit of --pay: tasks are {effect} if further "
        "answers are expected to correct more than they cost (default: the price of twenty answers)",
    }
    add_options(group(command, CLASSES), worth, type=number(0))
    target = {"--target P": f"classes: share of settled labels that is enough, from 0 to 1{enough} (default: none)"}
    add_options(group(command, CLASSES), target, type=number(0, 1))


OWN_OPTIONS = {"method": "--method", "seed": "--seed", "kind": "--kind"}  # not allowed in --set


def settings_of(
    words: Iterable[str], flag: str = "--set", own_options: Mapping[str, str] = OWN_OPTIONS
) -> dict[str, Any]:
    """Parse settings from NAME=VALUE; values are JSON if possible, else text.

    Args:
        words: the given words.
        flag: name of the option, for messages.
        own_options: rejected names, with the options to use instead.

    Raises:
        ConfigError: not NAME=VALUE, or a name that has its own option.
    """
    settings: dict[str, Any] = {}
    for name, value in named_values(words, "prior=0.1", flag):
        if name == "self":
            raise ConfigError(f"{flag} self: unknown setting.")
        if name in own_options:
            raise ConfigError(f"{flag} {name}: use the option {own_options[name]}.")
        try:
            settings[name] = setting_value(value)
        except RecursionError:
            raise ConfigError(f"{flag} {shorten(f'{name}={value}')}: the value is nested too deep.") from None
    return settings


def second_layout(arguments: argparse.Namespace, second: str) -> Layout:
    """Layout of the file next to the annotations; `second` as in `add_second_columns`."""
    option = f"{second}_columns"
    return Layout.of_second(getattr(arguments, option), vars(arguments), option)


def gold_of(arguments: argparse.Namespace, kind: Kind, crowd: Any) -> Any:
    """Read --gold for the tasks of a crowd; see `Reading.gold_of`."""
    read: Any = kind.reading.gold_of
    return read(crowd, arguments.gold, second_layout(arguments, "gold"), **given(arguments, kind.options.gold))


def named_values(words: Iterable[str], example: str, flag: str = "--set") -> Iterator[tuple[str, str]]:
    """Yield names and values from the NAME=VALUE of --set, or another option.

    Raises:
        ConfigError: not NAME=VALUE; the message contains the example.
    """
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise ConfigError(f"{flag} takes NAME=VALUE, such as {example}, got {shorten(word)!r}.")
        yield name, value
