"""`crowdzoo convert`: convert an export of a labelling platform to crowdzoo's own files."""

import argparse

from crowdzoo.commands import options
from crowdzoo.commands.options import add_options, group, path
from crowdzoo.commands.outputs import Output, holds
from crowdzoo.errors import ConfigError
from crowdzoo.files.writing import atomic_folder
from crowdzoo.reading.platforms.export import PLATFORMS, Export
from crowdzoo.reading.tables.layout import Layout
from crowdzoo.report.tables import print_table


def describe(command: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    command.add_argument("annotations", metavar="EXPORT", type=path, help="a file, a zip archive, or a folder of such")
    out = {"--out DIR": "folder (new or empty) for annotations.csv and instances.csv; for sentences, for spans.jsonl"}
    add_options(group(command, options.OUTPUT), out, type=path, required=True)
    columns = {
        f"--{name} COLUMN": f"column of the export that is the {name}; default: '{name}'" for name in ("text", "image")
    }
    columns["--keep A,B,…"] = "columns of the export that are kept in addition to text and image"
    add_options(command, columns)
    options.add_reading(command)
    options.add_kinds(command)
    own = holds(("spans.jsonl",), ("annotations.csv", "instances.csv"))
    outputs = Output("out", "--out", own, folder=True), options.REJECTS
    options.add_outputs(command, ("annotations",), *outputs)


def run(arguments: argparse.Namespace) -> None:
    """Read an export, check it like any file of annotations, and write it."""
    if arguments.platform is None:
        raise ConfigError(f"--platform is missing: name the platform of the export, one of {', '.join(PLATFORMS)}.")
    kind = options.checked_kind(arguments)
    # here --image names a column of the instances; tasks keep the platform's names
    reading = {name: value for name, value in options.reading_options(arguments, kind).items() if name != "image"}
    crowd = kind.reading.read(arguments.annotations, **reading)
    export = Export(arguments.annotations, arguments.platform, kind.name, arguments.field, layout=Layout.of(reading))
    columns = options.given(arguments, ("text", "image"))
    keep = [name.strip() for name in (arguments.keep or "").split(",") if name.strip()]
    with atomic_folder(arguments.out, replace=arguments.force) as folder:
        files = kind.reading.write_export(crowd, export, folder, columns, keep)
    written = [name if name == own else f"{name} ({own})" for own, name in files.items() if name is not None]
    left_out = [own for own, name in files.items() if name is None]
    rows = [
        *kind.reading.size_rows(crowd),
        ("question", export.question),
        *([("columns of the instances", ", ".join(written))] if written else []),
        *([("columns left out (see --keep)", ", ".join(left_out))] if left_out else []),
        ("results", str(arguments.out)),
    ]
    print_table(export.platform.title, ("", ""), rows)
