"""`--kind sequence` on the command line: from annotators' spans to predicted ones."""

import json

import pytest
from command_line import run

TEXTS = ["Ann met Bob", "Bob saw a dog", "the dog saw Ann", "Eve and Bob slept", "a dog met Eve", "Ann slept"]
NAMES = {"Ann", "Bob", "Eve"}


@pytest.fixture(scope="module")
def spans(tmp_path_factory):
    """Sentences in which two annotators and the gold mark the names; one of the annotators forgets Eve."""
    path = tmp_path_factory.mktemp("data") / "spans.jsonl"
    lines = []
    for task, text in enumerate(TEXTS * 4):
        for who in ("x", "y", None):
            found = [
                {"start": text.index(word), "end": text.index(word) + len(word), "label": "PER"}
                for word in text.split()
                if word in NAMES - ({"Eve"} if who == "y" else set())
            ]
            line = {"task": f"s{task}", "text": text, "spans": found}
            lines.append(json.dumps({**line, "gold": True} if who is None else {**line, "annotator": who}))
    path.write_text("\n".join(lines) + "\n")
    return path


def test_aggregate_prints_f1_and_writes_tags(spans, tmp_path, capsys):
    words = ("aggregate", spans, "--kind", "sequence", "--method", "majority-vote", "--out", tmp_path / "out")
    assert run(*words) == 0
    shown = capsys.readouterr().out
    assert "F1 of spans" in shown
    assert "answers (one sentence by one annotator)" in shown
    assert (tmp_path / "out" / "tags.txt").read_text().startswith("Ann")


@pytest.mark.parametrize(
    ("command", "words", "message"),
    [
        ("aggregate", ("--gold", "{spans}"), "--gold: spans have their gold in the same file"),
        ("aggregate", ("--gold", "{spans}", "--use-gold"), "--use-gold: no method for sentences takes known tags"),
        ("aggregate", ("--low", 0), "--low 0: an end of a scale of ratings belongs to --kind regression"),
        ("aggregate", ("--method", "bsc"), "Did you mean 'bsc-seq'?"),
        ("train", ("--hidden", "3"), "--hidden 3: a tagger has no such layers"),
        ("train", ("--fit", "crop"), "--fit: is not for sentences"),
        ("train", ("--form", "bag-of-words"), "--form bag-of-words: a form belongs to texts"),
        ("train", ("--method", "rating-em"), "unknown method 'rating-em'"),
    ],
)
def test_what_is_not_for_sentences_is_said(spans, tmp_path, refusal_of, command, words, message):
    out = tmp_path / ("out" if command == "aggregate" else "model.keras")
    words = [str(word).format(spans=spans) for word in words]
    assert message in refusal_of(command, spans, "--kind", "sequence", *words, "--out", out)
    assert not any(tmp_path.iterdir())


def test_gold_for_an_export_goes_into_the_file_that_convert_writes(tmp_path, capsys, refusal_of):
    for name in ("ann", "bob"):
        folder = tmp_path / "corpus" / name
        folder.mkdir(parents=True)
        (folder / "d.txt").write_text("Zoe met Bob.")
        (folder / "d.ann").write_text("T1\tPER 0 3\tZoe\n")
    words = (tmp_path / "corpus", "--kind", "sequence", "--platform", "brat")
    said = refusal_of("aggregate", *words, "--gold", tmp_path / "gold.jsonl", "--out", tmp_path / "labels")
    assert "`crowdzoo convert EXPORT --kind sequence --platform" in said
    assert run("convert", *words, "--out", tmp_path / "dir") == 0
    with open(tmp_path / "dir" / "spans.jsonl", "a") as file:
        file.write(
            '{"task": "d", "text": "Zoe met Bob.", "gold": true, "spans": [{"start": 0, "end": 3, "label": "PER"}]}\n'
        )
    assert run("aggregate", tmp_path / "dir" / "spans.jsonl", "--kind", "sequence", "--out", tmp_path / "labels") == 0
    assert "F1 of spans" in capsys.readouterr().out
