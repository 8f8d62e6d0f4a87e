"""Fuzzing of model files: a small saved model and the file of names beside it, and what can be done to them."""

import contextlib
import functools
import json
import os
import tempfile
import zipfile
from pathlib import Path

from fuzz_annotations import changed, damaged, file_of, zipped
from hypothesis import strategies as st
from target import Target

from crowdzoo.files.model_files import read_model_card, read_model_names

NAMES = {
    "classes": ["O", "B-X"], "annotators": ["a", "b"],
    "encoder": {"words": ["x", "y"], "characters": None}, "text_ids": {"words": ["x", "y"], "max_length": 3},
}  # fmt: skip
CARD = {"name": "m", "classes": ["a"], "annotators": [], "signatures": {"serving_default": {"inputs": {}}}}


@functools.cache
def saved_parts():
    """The parts of a small model's file, by name."""
    import keras

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m.keras")
        keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, kernel_initializer="ones", name="d")]).save(path)
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist()}


@st.composite
def model_files(draw):
    """Bytes of a `.keras` file: one part changed, or the whole archive damaged."""
    parts = dict(saved_parts())
    name = draw(st.sampled_from([*sorted(parts), "archive", "archive"]))
    if name == "config.json":
        parts[name] = json.dumps(draw(changed(json.loads(parts[name])))).encode()
    elif name != "archive":
        parts[name] = draw(damaged(st.just(parts[name])))
    file = zipped(parts.items(), draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])))
    return draw(damaged(st.just(file))) if name == "archive" else file


def check_model(content):
    """Loads the model, or says in crowdzoo's words why not."""
    import crowdzoo

    with (
        file_of(content, "m.keras") as path,
        open(os.devnull, "w") as nowhere,
        contextlib.redirect_stderr(nowhere),
    ):
        crowdzoo.load_model(path)


def check_names(content):
    """Reads the names and makes the encoder of them."""
    from crowdzoo.networks.encoders import encoder_of

    with file_of(content, "m.names.json") as path:
        names = read_model_names(path)
        "".join([*(names["classes"] or ()), *names["annotators"]]).encode()
        encoder_of(names, path)


def check_card(content):
    """Reads the card."""
    with file_of(content, "model_card.json") as path:
        read_model_card(path)


def texts(value):
    """JSON of a value with changes, or damaged bytes of it."""
    sound = json.dumps(value).encode()
    return changed(value).map(lambda found: json.dumps(found).encode()) | damaged(st.just(sound))


TARGETS = {
    "model file": Target(model_files(), check_model, examples=5),
    "names": Target(texts(NAMES), check_names, examples=25),
    "card": Target(texts(CARD), check_card, examples=25),
}
