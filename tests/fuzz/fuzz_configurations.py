"""Fuzzing of the pipeline's configurations, as `crowdzoo run --check` reads them: valid YAML, then changed."""

import atexit
import contextlib
import shutil
import sys
import tempfile
from pathlib import Path

import yaml
from fuzz_annotations import changed
from hypothesis import strategies as st
from target import Target

from crowdzoo.aggregation import METHODS, RATING_METHODS, SEQUENCE_METHODS
from crowdzoo.errors import ConfigError
from crowdzoo.pipelines.config.load import load_config
from crowdzoo.pipelines.yaml_files import read_value
from crowdzoo.training.methods import METHODS as DEEP_METHODS

if Path(sys.argv[0]).name == "run.py":  # where Keras would take longer to import than one input may
    import keras  # noqa: F401

SPANS = '{"task": "a", "annotator": "b", "text": "Anna", "spans": []}\n'
VALID = [
    {
        "name": "x",
        "seed": 1,
        "data": {"annotations": "a.csv", "instances": "i.csv", "classes": ["cat", "dog"], "eval_fraction": 0.5},
        "aggregation": {"method": "dawid-skene", "max_iter": 5, "tol": 0.1},
        "model": {"base": "feature-classifier", "hidden": [8, 4], "dropout": 0.1, "batch_normalization": True},
        "method": {"name": "crowdsourced-layer", "connection": "VW"},
        "training": {"epochs": 2, "batch_size": 8, "learning_rate": 0.1},
        "evaluation": {"tolerance": 0.1, "minimum_accuracy": 0.2},
        "output": {"root": "out", "serving": "served"},
        "beam": {"runner": "FnApiRunner", "options": ["--direct_num_workers=1"]},
    },
    {
        "name": "r",
        "kind": "regression",
        "data": {"annotations": "r.csv", "instances": "i.csv", "low": 0, "high": 10.5, "on_bad_rows": "reject"},
        "aggregation": {"method": "rating-em"},
        "model": {"base": "text-regressor", "form": "bag-of-words", "max_words": 9, "hidden": [4]},
        "method": {"name": "rating-em"},
    },
    {
        "name": "s",
        "kind": "sequence",
        "data": {"annotations": "s.jsonl", "scheme": "BIO", "on_bad_tags": "mend"},
        "aggregation": {"method": "hmm-crowd", "words": False},
        "model": {"base": "sequence-tagger", "units": 4, "crf": True},
        "method": {"name": "deep-em", "prior": 1.0},
    },
    {"name": "d", "data": {"dataset": "labelme"}},
]
NAMES = sorted({*METHODS, *RATING_METHODS, *SEQUENCE_METHODS, *DEEP_METHODS})
NUMBERS = st.sampled_from(
    [0, -1, 1, 2, 0.5, -0.0, 1e-300, 1e300, 2**31, 2**63, -(2**63), 10**40, float("nan"), float("inf")]
)
TEXTS = st.sampled_from(
    [*NAMES, "", " ", "a.csv", "gs://b/c", "~nobody/x", "/", "x" * 5000, "\u0000", "é", "yes", "010", "1:30"]
)
SCALARS = NUMBERS | TEXTS | st.none() | st.booleans() | st.text(max_size=8)
KEYS = st.sampled_from(
    sorted({key for one in VALID for section in one.values() if isinstance(section, dict) for key in section})
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | SCALARS, inner, max_size=3),
    max_leaves=5,
)
PIECES = st.sampled_from([
    "*a", "&a ", "<<: *a", "!!python/name:os.system", "!!binary ", "!!set ", "? ", "- ", ": ", "{", "}", "[", "]", "|",
    ">", "\t", "\n", "#", "'", '"', "%YAML 1.1\n---\n", "---", "...", "\x00", "\ufeff", "\ud800", '"\\ud800"',
    "9" * 5000, "0o8", "name: y\n",
    "[" * 2000, "{a: " * 2000, "- " * 2000, "a: &a [x,x]\nb: &b [*a,*a]\n",
])  # fmt: skip


@st.composite
def _structures(draw):
    """A valid configuration with some of its values and keys replaced."""
    value = draw(changed(draw(st.sampled_from(VALID)), VALUES, KEYS | SCALARS))
    return yaml.safe_dump(value, allow_unicode=True, default_flow_style=draw(st.none() | st.booleans()))


@st.composite
def _texts(draw):
    """The text of one with pieces put in, taken out, or doubled."""
    text = draw(_structures())
    for _ in range(draw(st.integers(1, 4))):
        begin = draw(st.integers(0, len(text)))
        end = begin + draw(st.integers(0, 12))
        text = text[:begin] + draw(PIECES | st.text(max_size=4) | st.just(text[begin:end] * 2)) + text[end:]
    return text


def _folder():
    """Input files, made once in each process."""
    global FOLDER
    if FOLDER is None:
        FOLDER = Path(tempfile.mkdtemp())
        atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
        (FOLDER / "a.csv").write_text("task,annotator,label\n1,a,cat\n")
        (FOLDER / "r.csv").write_text("task,annotator,label\n1,a,3\n")
        (FOLDER / "i.csv").write_text("task,text,x\n1,a,0.5\n")
        (FOLDER / "s.jsonl").write_text(SPANS)
    return FOLDER


FOLDER = None


def _short(message):
    if len(message) > 20_000:
        raise AssertionError(f"a message of {len(message):,} characters: {message[:500]}")


def check_file(text):
    """Loads a configuration; what is refused is refused with a short message that names the file."""
    path = _folder() / "fuzz.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    try:
        load_config(path)
    except ConfigError as error:
        message = str(error)
        _short(message)
        assert "fuzz.yaml" in message, message


def check_override(override):
    """The same for `--set KEY=VALUE`."""
    key, value = override
    path = _folder() / "valid.yaml"
    path.write_text(yaml.safe_dump(VALID[0]))
    try:
        load_config(path, {key: read_value(value, f"--set {key}")})
    except ConfigError as error:
        _short(str(error))


def check_value(text):
    """Any text as one value, twice the same."""
    with contextlib.suppress(ConfigError):
        assert repr(read_value(text, "x")) == repr(read_value(text, "x"))


DOTTED = st.lists(KEYS | st.sampled_from([*VALID[0], "", "x"]), min_size=1, max_size=4).map(".".join)
TARGETS = {
    "configuration-structure": Target(_structures(), check_file, examples=30),
    "configuration-text": Target(_texts() | st.binary(max_size=40), check_file, examples=30),
    "configuration-override": Target(
        st.tuples(DOTTED, PIECES | SCALARS.map(repr) | VALUES.map(yaml.safe_dump)), check_override, examples=20
    ),
    "yaml-value": Target(st.lists(PIECES | st.text(max_size=5), max_size=8).map("".join), check_value, examples=20),
}
