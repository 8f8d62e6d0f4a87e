"""docs/sequences.md: its examples run, its messages are the readers' own, its figures those of the saved results."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

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
    assert compared == 13
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
MESSAGES = dict(re.findall(r"^\| ([^|]+) \| `((?:answers|gold|spans)\..*)` \|$", GUIDE, flags=re.M))


def test_every_message_of_the_table_is_tested():
    assert set(MESSAGES) == set(COLUMNS) | set(SPANS)


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
    found = re.findall(
        r"^\| ([^|`]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", GUIDE, flags=re.M
    )
    assert len(found) == 14
    for name, *cells in found:
        own = rows[name]
        expected = [f"{own[key]:.1f}" for key in ("tokens", "precision", "recall", "f1")]
        assert cells == [*expected, f"{own['seconds']:.2f}"], name
    measured = RESULTS["published majority vote"]["measured"]
    published = " / ".join(f"{measured[key]:.1f}" for key in ("precision", "recall", "f1"))
    assert f"has {published}." in " ".join(GUIDE.split())
    generated = RESULTS["sets"]["generated"]["rows"]
    for row, name in (("majority-vote, valid", "majority-vote"), ("ibcc, valid", "ibcc"), ("hmm-crowd",) * 2):
        assert f"{generated[row]['f1']:.1f} for `{name}`" in " ".join(GUIDE.split())
    words = [f"{generated[f'{name}, no words']['f1']:.1f}" for name in ("hmm-crowd", "bsc-seq")]
    assert f"the two models have {words[0]} and {words[1]}." in " ".join(GUIDE.split())


def test_what_the_guide_recommends_is_what_was_measured():
    for saved in RESULTS["sets"].values():
        rows = {name: row for name, row in saved["rows"].items() if "error" not in row and ", words 1" not in name}
        assert max(rows, key=lambda name: rows[name]["f1"]) == "bsc-seq"
        assert rows["span-majority-vote"]["precision"] == max(row["precision"] for row in rows.values())
        assert rows["span-majority-vote"]["recall"] < rows["span-majority-vote, share 0.3"]["recall"]
    ner = RESULTS["sets"]["ner"]["rows"]
    assert 0.5 <= ner["bsc-seq"]["f1"] - ner["ibcc, valid"]["f1"] <= 1
    assert 1 <= ner["bsc-seq"]["f1"] - ner["dawid-skene, valid"]["f1"] <= 2


def test_every_method_of_the_guide_exists():
    named = set(re.findall(r"^- `([a-z-]+)`", GUIDE, flags=re.M)) - {"classes"}
    assert {"span-majority-vote", "hmm-crowd", "bsc-seq"} <= named
    assert all(name in SEQUENCE_METHODS for name in named if "-" in name)


NER = saved("reproduce_ner")
ROWS = {
    "majority vote": "DL-MV", "the majority's tags that came with the set": "DL-MV, released", "`DoctorNet`": "DL-DN",
    "`DoctorNet(weighted=True)`": "DL-WDN", "`DeepEM`": "DL-EM", "Dawid-Skene's tags": "DL-DS",
    "HMM-crowd's tags": "DL-HMM", "BSC-seq's tags": "DL-BSC", "BSC-seq's posteriors": "DL-BSC, posteriors",
    "`CrowdsourcedLayer`, VW": "CL VW", "`CrowdsourcedLayer`, VW+B": "CL VW+B", "`CrowdsourcedLayer`, MW": "CL MW",
    "MW, no majority first": "CL MW, no majority first",
    "MW, 2 epochs of majority first": "CL MW, 2 epochs of majority first",
    "MW, 10 epochs of majority first": "CL MW, 10 epochs of majority first",
    "majority vote under a CRF": "DL-MV, CRF", "MW under a CRF": "CL MW, CRF",
    "BSC-seq's tags under a CRF": "DL-BSC, CRF", "the true tags": "gold", "the true tags under a CRF": "gold, CRF",
    "the true tags, both directions, characters": "gold, both directions, characters",
}  # fmt: skip


def per_cent(row, metric="f1"):
    assert [run["seed"] for run in NER[row]["runs"]] == [0, 1, 2, 3, 4]
    return np.array([100 * run[metric] for run in NER[row]["runs"]])


def above(row, other):
    """Mean of the paired differences and half their 95 % interval, as text."""
    differences = per_cent(row) - per_cent(other)
    half = stats.t.ppf(0.975, 4) * differences.std(ddof=1) / np.sqrt(5)
    return f"{differences.mean():+.1f} ± {half:.1f}"


def table_of(page):
    lines = re.search(r"<!-- ner -->\n(.*?)<!-- end -->", page, flags=re.DOTALL)[1].splitlines()[2:]
    return [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in lines]


def test_the_table_of_training_is_that_of_the_results():
    shown = {name: cells for name, *cells in table_of(GUIDE)}
    assert {ROWS[name] for name in shown} == set(NER)
    for name, cells in shown.items():
        row = ROWS[name]
        f1 = per_cent(row)
        assert cells == [
            *(f"{per_cent(row, metric).mean():.1f}" for metric in ("token_accuracy", "precision", "recall")),
            f"{f1.mean():.1f} ± {f1.std(ddof=1):.1f}", "" if row == "DL-MV" else above(row, "DL-MV"),
            f"{per_cent(row, 'own_f1').mean():.1f}", f"{NER[row]['cpu_seconds_a_training']:.0f}", cells[-1],
        ], name  # fmt: skip


def test_what_the_text_says_of_the_table_is_so():
    def difference(row, other):
        return above(row, other).lstrip("+")

    assert f"MW is {difference('CL MW', 'DL-MV')} above majority" in PLAIN
    assert f"Both under a CRF, MW is {difference('CL MW, CRF', 'DL-MV, CRF')} above." in PLAIN
    assert f"BSC-seq's tags are {difference('DL-BSC', 'CL MW')} above MW." in PLAIN
    assert f"they are still {difference('DL-BSC, CRF', 'CL MW, CRF')} above." in PLAIN
    assert f"Dawid-Skene's tags are level with MW ({above('DL-DS', 'CL MW')})." in PLAIN
    lost = {
        epochs: (per_cent("CL MW") - per_cent(f"CL MW, {epochs} epochs of majority first")).mean() for epochs in (2, 10)
    }
    assert f"instead of five lose {lost[2]:.1f}, none at all loses nearly everything, ten lose {lost[10]:.1f}." in PLAIN
    assert f"(recall {per_cent('DL-MV', 'recall').mean():.1f})" in PLAIN
    assert NER["DL-BSC"]["cpu_seconds_a_training"] < 0.36 * NER["CL MW"]["cpu_seconds_a_training"]
    assert per_cent("gold").mean() >= 60
    first = [f"{per_cent(row).mean():.1f}" for row in ("CL MW", "CL MW, CRF", "gold", "gold, CRF")]
    assert f"Under MW it raises F1 from {first[0]} to {first[1]}, on gold from {first[2]} to {first[3]}." in PLAIN


def test_the_request_and_its_answer_fit_each_other():
    (request,) = re.findall(r"curl -d '(.*?)'", GUIDE)
    (answer,) = re.findall(r"```json\n(.*?)```", GUIDE, flags=re.DOTALL)
    request, (found,) = json.loads(request), json.loads(answer)["predictions"]
    text = request["instances"][0].encode()
    places = zip(found["starts"], found["ends"], strict=True)
    assert [text[start:end].decode() for start, end in places] == found["texts"]
    assert len(found["types"]) == len(found["scores"]) == found["lengths"]
    (row,) = re.findall(rf"^\| `{request['signature_name']}` \|.*\| (.*) \|$", GUIDE, flags=re.M)
    outputs = set(re.findall(r"`(\w+)`", row)) - {"instances"}
    assert outputs == set(found)


def test_the_pipelines_settings_are_valid(tmp_path):
    config = pytest.importorskip("crowdzoo.pipelines.config")
    (text,) = re.findall(r"```yaml\n(.*?)```", GUIDE, flags=re.DOTALL)
    (tmp_path / "news.yaml").write_text(text)
    for name in ("spans.jsonl", "gold.txt"):
        (tmp_path / name).write_text("{}\n")
    assert config.load_config(tmp_path / "news.yaml").minimum == 0.5
    (tmp_path / "news.yaml").write_text(text.replace("# gold:", "gold:"))
    assert config.load_config(tmp_path / "news.yaml").data.gold == tmp_path / "gold.txt"
