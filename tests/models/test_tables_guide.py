"""docs/tables.md: its code runs as it stands."""

import re
from pathlib import Path

import pytest

pytest.importorskip("tensorflow")

from crowdzoo.export import load_and_predict

TEXT = (Path(__file__).parents[2] / "docs" / "tables.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_code_of_the_guide_runs_and_what_it_exports_takes_the_request_of_the_guide(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.S)
    exec(code, {})
    assert capsys.readouterr().out == "(1, 2)\n"
    columns = eval(re.search(r'\{"inputs": (\{.*?\})\}', TEXT)[1], {"NaN": float("nan")})
    assert load_and_predict("served", columns)["class"][0] == "yes"
