"""docs/sequences.md: its examples run, its figures are those of the saved results; and messages of the readers."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from crowdzoo.aggregation import SEQUENCE_METHODS
from crowdzoo.errors import DataError
from crowdzoo.sequences import Span, read_conll, read_spans

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "sequences.md").read_text(encoding="utf-8")
PLAIN = " ".join(GUIDE.split())


def saved(name):
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8"))


RESULTS = saved("sequence_aggregation")


@pytest.mark.slow
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
    assert compared == 9
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


COLUMNS = {
    "uneven columns": "Anna O O O\nmet O\n",
    "no tag": "Anna b-PER O O\n",
    "broken scheme": "Anna O O\nmet O O\nBob I-PER O\n",
    "half a sentence": "Anna O O\nmet O ?\nBob O O\n",
    "other tokens in gold": "Anna O O\nmet O O\n",
    "bytes": b"Anna O O ?\nm\xe9t O O ?\n",
}
SPANS = {
    "edge in a token": {"spans": [{"start": 0, "end": 2, "label": "PER"}]},
    "overlap": {"spans": [{"start": 0, "end": 7, "label": "PER"}, {"start": 4, "end": 7, "label": "PER"}]},
    "misspelt key": {"anotator": "ann"},
}
MESSAGES = {
    "uneven columns": "answers.txt, row 2: 'met O' has 2 values where line 1 has 4.",
    "no tag": "answers.txt, row 1, column 'ann': 'b-PER' is no tag of BIO: O, B-TYPE, I-TYPE. Did you mean 'B-PER'?",
    "broken scheme": "answers.txt, row 3, column 'ann': 'I-PER' follows 'O'; a span of type PER begins with B-PER.",
    "half a sentence": "answers.txt, row 2, column 'bob': '?' is missing, ... 2 of the sentence's 3 tokens",
    "other tokens in gold": "gold.txt, row 2, column 'token': 'saw' stands where answers.txt, line 2, has 'met'.",
    "bytes": "answers.txt, row 2: 'm\\xe9t O O ?' is not UTF-8 at byte 2 of the line.",
    "edge in a token": "spans.jsonl, row 1, column 'spans[0].end': 2 is inside ... on_bad_tags='mend' widens it.",
    "overlap": "spans.jsonl, row 1, column 'spans[1]': ... overlaps spans[0]. A token has one tag: leave one out.",
    "misspelt key": "spans.jsonl, row 1, column 'anotator': 'ann' stands ... Did you mean 'annotator'?",
}


@pytest.mark.parametrize("mistake", [*COLUMNS, *SPANS])
def test_messages_are_those_of_the_readers(tmp_path, monkeypatch, mistake):
    monkeypatch.chdir(tmp_path)
    if mistake in COLUMNS:
        content = COLUMNS[mistake]
        Path("answers.txt").write_bytes(content if isinstance(content, bytes) else content.encode())
        Path("gold.txt").write_text("Anna O\nsaw O\n")
        width = 3 if mistake in ("uneven columns", "no tag", "bytes") else 2
        with pytest.raises(DataError) as error:
            read_conll(
                "answers.txt",
                annotators=["ann", "bob", "cid"][:width],
                gold="gold.txt" if mistake == "other tokens in gold" else None,
            )
    else:
        line = {"task": "s1", "annotator": "ann", "text": "Zoë met Bob.", "spans": []} | SPANS[mistake]
        Path("spans.jsonl").write_text(json.dumps(line))
        with pytest.raises(DataError) as error:
            read_spans("spans.jsonl")
    shown = str(error.value).replace("\\\\", "\\")
    for part in MESSAGES[mistake].split("..."):
        assert part.strip() in shown


def test_figures_are_those_of_the_results():
    rows = RESULTS["sets"]["ner"]["rows"]
    found = re.findall(r"^\| `([a-z-]+)`(, share 0.3)? \| ([\d.]+) \| ", GUIDE, flags=re.M)
    assert len(found) == 6
    for name, share, f1 in found:
        row = rows.get(f"{name}{share}") or rows[f"{name}, valid"]
        assert f1 == f"{row['f1']:.1f}", name
        assert name in SEQUENCE_METHODS
    trained = saved("reproduce_ner")
    for row, words in (
        ("DL-BSC", "trained on the tags of `bsc-seq` has F1"), ("CL MW", "one with `CrowdsourcedLayer`"),
        ("DL-MV", "on majority votes"), ("gold", "on the true tags"),
    ):  # fmt: skip
        f1 = np.array([100 * run["f1"] for run in trained[row]["runs"]])
        assert f"{words} {f1.mean():.1f} ± {f1.std(ddof=1):.1f}" in PLAIN


def test_what_the_guide_recommends_is_what_was_measured():
    for each in RESULTS["sets"].values():
        rows = {name: row for name, row in each["rows"].items() if "error" not in row and ", words 1" not in name}
        assert max(rows, key=lambda name: rows[name]["f1"]) == "bsc-seq"
        assert rows["span-majority-vote"]["recall"] < rows["span-majority-vote, share 0.3"]["recall"]


def test_the_pipelines_settings_are_valid(tmp_path):
    config = pytest.importorskip("crowdzoo.pipelines.config")
    (text,) = re.findall(r"```yaml\n(.*?)```", GUIDE, flags=re.DOTALL)
    (tmp_path / "news.yaml").write_text(text)
    for name in ("spans.jsonl", "gold.txt"):
        (tmp_path / name).write_text("{}\n")
    assert config.load_config(tmp_path / "news.yaml").minimum == 0.5
    (tmp_path / "news.yaml").write_text(text.replace("# gold:", "gold:"))
    assert config.load_config(tmp_path / "news.yaml").data.gold == tmp_path / "gold.txt"
