"""Free texts through their doors: read, aggregated, compared with gold, reported; refused where they do not belong."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from crowdzoo.aggregation import TEXT_METHODS
from crowdzoo.commands.main import main
from crowdzoo.errors import ConfigError, DataError, DataWarning
from crowdzoo.kinds import kind_of
from crowdzoo.tables import Annotations

TRUE = ["it was late in the day", "we saw the big dog run", "she has an old red hat", "they went home by train"]
NAMED = ("--kind", "free-text", "--columns", "label=text")


@pytest.fixture
def files(tmp_path):
    """Four annotators of 24 tasks: one has it right, three make an error in turn; the last one tells nothing."""
    rows = ["task,annotator,text"]
    for task in range(24):
        words = TRUE[task % 4].split()
        said = [words, [*words[:-1], "x"], words[1:], [words[0], *words]]
        said = [said[(who + task) % 3 + 1] if who else words for who in range(4)]
        rows += [f'{task},w{who},"{" ".join(each).capitalize()}."' for who, each in enumerate(said)]
        rows.append(f"{task},spam,nothing here at all {task}")
    (tmp_path / "texts.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "gold.csv").write_text("task,gold\n" + "".join(f"{task},{TRUE[task % 4]}\n" for task in range(6)))
    return tmp_path


def test_texts_are_aggregated_and_compared_with_gold(files, capsys):
    main(["aggregate", f"{files}/texts.csv", *NAMED, "--normalize", "words", "--gold", f"{files}/gold.csv",
          "--out", f"{files}/out.jsonl"])  # fmt: skip
    printed = capsys.readouterr().out
    assert "tasks with gold" in printed
    assert [line.split()[-1] for line in printed.splitlines() if line.startswith("word error")] == ["0.0000"]
    first = json.loads((files / "out.jsonl").read_text().splitlines()[0])
    assert first["text"] == "It was late in the day."  # as it was written


def test_a_further_text_brings_what_its_weight_takes_off_the_error_of_the_mean(files):
    crowd = Annotations.read(files / "texts.csv", kind="free-text", columns="label=text")
    questions = kind_of("free-text").questions
    result = kind_of("free-text").aggregation.create("text-rasa").fit(crowd)
    agreement = questions.skills(result, slice(None))
    lacks = 1 - agreement
    weights = np.average(lacks, weights=result.annotations_per_annotator) / lacks
    before = 1 + weights.sum()  # everybody answered, and one usual answer more
    gains = questions.gains(result, agreement, crowd)(np.array([0, 5]), np.arange(5))
    for row, task in enumerate((0, 5)):
        expected = (1 - result.confidence[task]) * (1 / before - 1 / (before + weights))
        assert gains[row] == pytest.approx(expected)


def test_methods_are_compared_and_the_line_that_takes_the_best_runs(files, capsys):
    main(["compare", f"{files}/texts.csv", *NAMED, "--normalize", "words", "--methods", "medoid",
          "--out", f"{files}/runs"])  # fmt: skip
    line = capsys.readouterr().out.splitlines()[-1].split()
    assert line[line.index("--normalize") + 1] == "words"
    assert main([*line[1:-1], f"{files}/taken.csv"]) == 0
    assert "It was late in the day." in (files / "taken.csv").read_text()


def test_errors_against_gold_are_counted_by_kind():
    truth, said = np.array(["a b c", "d e"], object), np.array(["a x c y", "e"], object)
    found = kind_of("free-text").scoring.score(truth, said)
    assert found["word_error"] == pytest.approx(3 / 5)
    assert [found[name] for name in ("substitutions", "insertions", "deletions")] == [0.2] * 3
    assert found["character_error"] == pytest.approx(5 / 8)


def test_the_report_aligns_texts_and_notes_who_tells_nothing(files):
    main(["report", f"{files}/texts.csv", *NAMED, "--normalize", "words", "--out", f"{files}/r.html"])
    found = json.loads((files / "r.json").read_text())
    people = {row["annotator"]: row for row in rows_of(found["tables"]["annotators"])}
    assert people["spam"]["notes"] == ["random"]
    assert people["w0"]["reliability"] > people["w1"]["reliability"]
    assert people["spam"]["substitutions"] > 0.5
    assert 0 < found["summary"]["krippendorff_alpha"]["value"] < 1
    page = (files / "r.html").read_text()
    assert "[+ it]" in page
    assert "[x ← day]" in page


def rows_of(table):
    """A table of report.json by rows."""
    values = table["values"]
    return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]


@pytest.mark.filterwarnings("ignore:.*columns were found by usual names")
@pytest.mark.parametrize("name", ["text", "output", "transcription", "transcript", "translation", "label"])
def test_the_column_of_texts_has_usual_names(write, name):
    with pytest.raises(DataError, match=r"row 3, column .* is empty"):
        kind_of("free-text").reading.read(write("a.csv", f"task,annotator,{name}\n1,ann,a cat\n1,bob,\n"))


def test_texts_that_are_read_as_classes_are_warned_of():
    texts = [f"this is text {number}" for number in range(30)]
    with pytest.warns(DataWarning, match="30 classes look like texts .*use kind='free-text'"):
        Annotations.from_arrays(range(30), ["ann"] * 30, texts)
    crowd = Annotations.from_arrays(range(30), ["ann"] * 30, texts, kind="free-text")
    assert crowd.classes is None
    assert crowd.values.tolist() == sorted(texts)


@pytest.mark.parametrize(
    ("words", "message"),
    [(["train", "instances.csv", "--kind", "free-text"], "no method learns from free texts"),
     (["train", "instances.csv", "--kind", "free-text", "--method", "medoid"], "no method learns from free texts"),
     (["compare", "gold.csv", "--kind", "free-text"], "which models of free texts do not support"),
     (["aggregate", "--normalize", "words"], "--normalize words: is for --kind free-text; leave it out"),
     (["aggregate", "--kind", "free-text", "--low", "0"], "--low 0"),
     (["quality", "--kind", "free-text", "--models", "ann"], "--models does not go with --kind free-text")],
)  # fmt: skip
def test_what_is_not_for_free_texts_is_refused(files, capsys, words, message):
    command, *rest = words
    rest = [f"{files}/{word}" if word.endswith(".csv") else word for word in rest]
    out = [] if command == "quality" else ["--out", f"{files}/{'m.keras' if command == 'train' else 'out'}"]
    assert main([command, f"{files}/texts.csv", *rest, *out]) != 0
    assert message in capsys.readouterr().err


def test_a_part_that_a_kind_lacks_is_refused():
    with pytest.raises(ConfigError, match="the pipeline does not support free texts"):
        assert kind_of("free-text").records


def test_the_guide_runs_and_its_figures_are_the_saved_ones():
    root = Path(__file__).parents[2]
    guide = (root / "docs" / "free_texts.md").read_text(encoding="utf-8")
    names = {}
    for block in re.findall(r"```python\n(.*?)```", guide, flags=re.S):
        exec(compile(block, "free_texts.md", "exec"), names)
    assert names["found"].texts.tolist() == ["The cat sat.", "it was late"]
    assert names["aligned"].texts.tolist() == ["the cat sat", "it was late"]
    saved = json.loads((root / "benchmarks" / "results" / "free_texts.json").read_text(encoding="utf-8"))
    for method in ("one text", *TEXT_METHODS):
        sets = ("crowdspeech", "wsa_j1", "wsa_t1", "wsa_t2")
        shown = [f"{saved[name][method]['runs'][0]['mean']:.3f}".lstrip("0") for name in sets]
        assert f"| {method} | {' | '.join(shown)} |" in guide
    assert all(row["runs"][0]["same"] == 1 for row in saved["times"].values())
