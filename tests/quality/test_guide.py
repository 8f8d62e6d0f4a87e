"""What docs/quality.md shows is what comes out."""

import re
from pathlib import Path

import numpy as np
import pytest

from crowdzoo import quality
from crowdzoo.commands import main as cli
from crowdzoo.datasets import load_labelme

GUIDE = (Path(__file__).parents[2] / "docs" / "quality.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_example_is_as_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for command in re.findall(r"^    \$ crowdzoo (.*)$", GUIDE, flags=re.M):
        capsys.readouterr()
        assert cli.main(command.split()) == 0
    shown = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    example = GUIDE.split("--top 3\n\n")[1].split("\n\nThis crowd")[0]
    lines = [line[4:] for line in example.splitlines()]
    assert len(lines) == 15
    assert shown[: len(lines)] == lines


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:one-coin. Class:UserWarning")  # annotations without a truth behind them
def test_the_python_lines_run():
    import crowdzoo

    blocks = re.findall(r"((?:^    .*\n)+)", GUIDE, flags=re.M)
    annotations = crowdzoo.Annotations.from_arrays(
        np.repeat(np.arange(30), 3), np.tile(["ann", "bo", "cy"], 30), np.arange(90) % 7 % 4
    )
    names = {"crowdzoo": crowdzoo, "annotations": annotations}
    python = [block for block in blocks if "quality." in block and "crowdzoo quality" not in block]
    assert len(python) == 2
    for block in python:
        exec("\n".join(line[4:] for line in block.splitlines()), names)
    assert names["report"].alpha.low < names["report"].alpha.value


def test_every_public_name_has_a_docstring():
    for name in quality.__all__:
        assert getattr(quality, name).__doc__, name


def test_a_list_of_many_classes_is_cut_and_lists_can_be_left_out(capsys):
    from crowdzoo import Annotations
    from crowdzoo.report.quality_tables import print_quality

    labels = np.repeat(np.arange(30), np.arange(1, 31))
    table = Annotations.from_arrays(np.arange(len(labels)) // 2, np.arange(len(labels)) % 2, labels)
    print_quality(quality.quality_report(table, bootstrap=0), top=0)
    shown = capsys.readouterr().out
    assert "the 20 most frequent of 30 classes" in shown
    assert re.search(r"^ +29 +30 ", shown, flags=re.M)
    assert not re.search(r"^ +3 +4 ", shown, flags=re.M)
    assert "to look at" not in shown


def test_figures_of_the_guide_are_those_of_labelme():
    assert f".{round(quality.krippendorff_alpha(load_labelme().annotations).value * 1000)}" in GUIDE
