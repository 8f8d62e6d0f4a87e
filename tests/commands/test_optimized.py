"""`python -OO`, which drops docstrings and asserts: help, cards and messages stay; what cannot work says so."""

import subprocess
import sys

import keras
import pytest

SCRIPT = """
import contextlib, io
from crowdzoo.commands.main import COMMANDS, main
from crowdzoo.report.cards import method_cards
from crowdzoo.testing import check_aggregator
from crowdzoo.aggregation import DawidSkene
from crowdzoo.errors import ConfigError

def said(*words):
    with contextlib.redirect_stdout(io.StringIO()) as text:
        try:
            code = main(words)
        except SystemExit as end:
            code = end.code
    if code:
        raise SystemExit(f"{words}: exit code {code}")
    return text.getvalue()

for command in COMMANDS:
    help = said(command, "--help")
    if "None" in help or "usage: crowdzoo " + command not in help:
        raise SystemExit(help)
if "share of hidden units" not in said("train", "--help"):
    raise SystemExit("train --help does not describe --dropout")
for card in method_cards():
    text = said("methods", card.name)
    if "Not said." in text or card.source.split()[0] not in text:
        raise SystemExit(text)
try:
    DawidSkene(max_iter=0)
    raise SystemExit("max_iter=0 is not refused")
except ConfigError as error:
    print(error)
try:
    check_aggregator(DawidSkene())
    raise SystemExit("a check passed without its asserts")
except RuntimeError as error:
    print(error)
"""


def optimized(*words: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-OO", *words], capture_output=True, text=True, timeout=300, check=False)


def test_help_cards_and_settings_do_not_need_docstrings():
    result = optimized("-c", SCRIPT)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "DawidSkene: max_iter must be" in result.stdout
    assert "run the tests without -O" in result.stdout


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="TensorFlow is what does not start")
def test_a_training_works_or_says_that_tensorflow_needs_docstrings(tmp_path):
    """TensorFlow 2.16 does not start under -OO, 2.21 does."""
    folder = str(tmp_path)
    assert optimized("-m", "crowdzoo", "datasets", "labelme", "--write", folder).returncode == 0
    files = f"{folder}/annotations.csv", f"{folder}/instances.parquet"
    result = optimized("-m", "crowdzoo", "train", *files, "--out", f"{folder}/m.keras")
    if optimized("-c", "import tensorflow").returncode:
        assert result.returncode == 1
        assert "TensorFlow does not start under python -OO" in result.stderr
    else:
        assert result.returncode == 0, result.stderr
