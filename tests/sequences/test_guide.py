"""docs/sequences.md: its examples run, its settings are valid."""

import re
from pathlib import Path

import pytest

from crowdzoo.reading.sentences.sentence_files import read_sentences
from crowdzoo.sequences import Span, read_conll, read_spans

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "sequences.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*inside longer ones", "ignore:.*is the label of no task")
def test_the_examples_run_and_give_what_they_say(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    compared = 0
    for block in re.findall(r"```python\n(.*?)```", GUIDE, flags=re.DOTALL):
        exec(block, names)
        # "expression      # value", where the value is a literal or its beginning
        for expression, value in re.findall(r"^(\S.*?) {2,}# (\[.*|\(.*|\{.*|'.*)$", block, flags=re.M):
            shown = repr(eval(expression, names))
            beginning = value.split(", ...")[0]
            assert shown.startswith(beginning), expression
            assert shown == value or "..." in value, expression
            compared += 1
    assert compared == 10
    assert names["spans_of"](names["broken"]) == [Span("PER", 1, 3), Span("LOC", 3, 4)]
    printed = capsys.readouterr().out
    assert "processed 11305 tokens" in printed
    assert float(re.search(r"^F1 (\d\.\d\d)$", printed, flags=re.M).group(1)) > 0.75
    assert {path.name for path in tmp_path.iterdir()} > {"again.txt.gz", "again.jsonl"}
    again = read_conll("again.txt.gz", header=True)
    assert again.annotations.annotators.tolist() == ["ann", "bob", "cid"]
    assert "num_mended                                    # 1:" in GUIDE
    read = read_conll("answers.txt", gold="gold.txt", annotators=["ann", "bob", "cid"], on_bad_tags="mend")
    assert read.num_mended == 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*inside longer ones", "ignore:.*is the label of no task")
def test_gamma_takes_the_spans_as_the_guide_gives_them(tmp_path, monkeypatch):
    pytest.importorskip("pygamma_agreement", reason="needs cvxopt, under the GPL")
    monkeypatch.chdir(tmp_path)
    names = {"read_spans": read_spans}
    exec(*(block for block in re.findall(r"```python\n(.*?)```", GUIDE, flags=re.DOTALL) if "nested =" in block), names)
    (block,) = re.findall(r"```py\n(.*?)```", GUIDE, flags=re.DOTALL)
    gamma = re.sub(r"^(?=continuum.compute)", "gamma = ", block, flags=re.M)
    exec(gamma, names)
    units = {who: [(unit.segment.start, unit.segment.end, unit.annotation) for unit in of]
             for who, of in names["continuum"]._annotations.items()}  # fmt: skip
    assert units == {
        "ann": [(0, 3, "ORG"), (2, 3, "LOC")],
        "bob": [(0, 3, "ORG"), (2, 3, "LOC")],
        "cid": [(0, 1, "ORG")],
    }
    assert names["gamma"] < 1
    names["nested"] = read_sentences("nested.jsonl", exclude=["cid"])
    exec(gamma, names)
    assert names["gamma"] == 1  # ann and bob drew the same


def test_the_pipelines_settings_are_valid(tmp_path):
    config = pytest.importorskip("crowdzoo.pipelines.config.load")
    (text,) = re.findall(r"```yaml\n(.*?)```", GUIDE, flags=re.DOTALL)
    (tmp_path / "news.yaml").write_text(text)
    for name in ("spans.jsonl", "gold.txt"):
        (tmp_path / name).write_text("{}\n")
    assert config.load_config(tmp_path / "news.yaml").minimum == 0.5
    (tmp_path / "news.yaml").write_text(text.replace("# gold:", "gold:"))
    assert config.load_config(tmp_path / "news.yaml").data.gold == tmp_path / "gold.txt"
