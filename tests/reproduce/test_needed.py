"""A benchmark script that lacks its data says so, and ends with an error."""

import re
import runpy
import sys
import warnings
from pathlib import Path
from unittest.mock import patch

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
BASELINES = Path(__file__).parents[2] / "examples" / "baselines"
READS = re.compile(
    r"data_folder\(\)|load_ner_amt|load_movie_reviews|real_sets\(|CROWDZOO_DATA\"|from (?:lia|deep_methods) import"
)
# no scripts; or scripts that read what ships or saved results, or whose parser asks for the data
OTHERS = ("real_crowds", "load_movie_reviews", "load_ner_amt", "needed", "crowd_layer", "pages", "efficientnet_lite0",
          "method_figures", "conal")  # fmt: skip
# what a script needs on its command line before it reads
ARGUMENTS = {"train": ["all"]}
SCRIPTS = sorted(
    path
    for path in BENCHMARKS.rglob("*.py")
    if path.stem not in OTHERS and READS.search(path.read_text(encoding="utf-8"))
)


@pytest.fixture
def started(monkeypatch, tmp_path):
    """Starts a script as from a shell, with an empty folder of data."""
    monkeypatch.setenv("CROWDZOO_DATA", str(tmp_path))
    paths, modules = [*sys.path], {*sys.modules}

    def run(script: Path, *words: str) -> None:
        monkeypatch.setattr(sys, "argv", [str(script), *ARGUMENTS.get(script.stem, []), *words])
        sys.path.insert(0, str(script.parent))
        runpy.run_path(str(script), run_name="__main__")

    with warnings.catch_warnings(), patch.dict("crowdzoo.plugins._registered"):  # what a script registers goes with it
        yield run
    sys.path[:] = paths
    for name in {*sys.modules} - modules:
        file = str(getattr(sys.modules[name], "__file__", ""))
        if str(BENCHMARKS) in file or str(BASELINES) in file:  # another test imports, and registers, them anew
            del sys.modules[name]


def test_there_are_scripts_with_data():
    assert len(SCRIPTS) > 15


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_without_its_data_ends_with_an_error(script, started, tmp_path):
    with pytest.raises(SystemExit, match=rf"{tmp_path} has no .*docs/datasets\.md") as ended:
        started(script)
    assert ended.value.code != 0


def test_saved_tables_are_printed_without_data(started, capsys):
    started(BENCHMARKS / "crowds.py", "--print")
    assert "all crowds" in capsys.readouterr().out
