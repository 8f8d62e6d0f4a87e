"""Files as the tests of readers write them, and what was read of them."""

import gzip
import json

import pandas as pd
import pyarrow as pa
import pytest

from crowdzoo import Annotations
from crowdzoo.errors import ConfigError, DataError


def write(name, content):
    """Text or bytes as they are, other values as JSON; gzipped where the name says so."""
    text = content if isinstance(content, bytes | str) else json.dumps(content)
    data = text if isinstance(text, bytes) else text.encode()
    with open(name, "wb") as file:
        file.write(gzip.compress(data) if name.endswith(".gz") else data)
    return name


def rows_of(annotations):
    """(task, annotator, label) of each row, by name."""
    names = annotations.label_names
    label = annotations.labels if names is None else names[annotations.labels]
    tasks, annotators = annotations.tasks[annotations.task_ids], annotations.annotators[annotations.annotator_ids]
    return list(zip(tasks.tolist(), annotators.tolist(), label.tolist(), strict=True))


def texts_of(annotations):
    """The rows as text, sorted: what depends on neither their order nor the types of names."""
    return sorted(tuple(map(str, row)) for row in rows_of(annotations))


def message_of(name, **options):
    """Why a file is not read."""
    with pytest.raises((DataError, ConfigError)) as error:
        Annotations.read(name, **options)
    return str(error.value)


def write_table(columns, name):
    """Columns, or a frame of pandas or Arrow, in the format that the name ends in."""
    frame = columns.to_pandas() if isinstance(columns, pa.Table) else pd.DataFrame(columns)
    {
        "csv": lambda: frame.to_csv(name, index=False),
        "tsv": lambda: frame.to_csv(name, index=False, sep="\t"),
        "json": lambda: frame.to_json(name, orient="records"),
        "jsonl": lambda: frame.to_json(name, orient="records", lines=True),
        "parquet": lambda: frame.to_parquet(name, index=False),
        "xlsx": lambda: frame.to_excel(name, index=False),
    }[str(name).rpartition(".")[2]]()
    return name
