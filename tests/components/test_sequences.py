"""Sentences through the components: from annotators' files to Examples, one answer each, and scores of taggers."""

import functools
import json
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from known_models import save_model

from crowdzoo.aggregation import create
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError
from crowdzoo.kinds.sentences.records import SpanRecords, read_crowd_sequences, read_examples, sentence_example
from crowdzoo.records.crowd_answers import add_answer
from crowdzoo.records.example_files import read_dataset_info, split_by_hash
from crowdzoo.sequences import CrowdSequences, convert_tags

NAMES = [
    "Anna", "Bruno", "Carla", "Dario", "Elif", "Farid", "Greta", "Hugo", "Ines", "Jakob", "Kofi", "Lena", "Marek",
    "Nadia", "Oskar", "Priya", "Rosa", "Samir", "Tilda", "Zoë",
]  # fmt: skip
BOTH, FIRST_ONLY = ["B-PER", "O", "B-PER"], ["B-PER", "O", "O"]


def sentence(number):
    """Tokens of a sentence, and what each annotator says of it; every fourth nobody labelled."""
    tokens = [NAMES[number], "saw", NAMES[number - 1]]
    if number % 4 == 3:
        return tokens, {}
    return tokens, {"ann": BOTH, "cid": BOTH, "bob": FIRST_ONLY} if number % 2 else {"ann": BOTH, "bob": FIRST_ONLY}


def span_line(text, **more):
    return json.dumps({"task": text, "text": text, **more}, ensure_ascii=False) + "\n"


def spans_file(path, gold=True, without=0):
    """Twenty sentences of three words; the text is the task's name. The first ones may be without gold."""
    with open(path, "w", encoding="utf-8") as file:
        for number in range(len(NAMES)):
            tokens, answers = sentence(number)
            text = " ".join(tokens)
            spans = (
                {"start": 0, "end": len(tokens[0]), "label": "PER"},
                {"start": len(text) - len(tokens[2]), "end": len(text), "label": "PER"},
            )
            for who, tags in answers.items():
                file.write(span_line(text, annotator=who, spans=spans[: 2 if tags == BOTH else 1]))
            if gold and number >= without:
                file.write(span_line(text, gold=True, spans=spans))
            elif not answers:
                file.write(span_line(text))
    return str(path)


def columns_files(folder, scheme="BIO"):
    """Eighteen sentences of which "U.S." will be cut, ann's and bob's tags; returns both paths."""
    answers, gold = folder / "answers.txt", folder / "gold.txt"
    with open(answers, "w", encoding="utf-8") as said, open(gold, "w", encoding="utf-8") as true:
        for number in range(18):
            tokens = [NAMES[number], "left", "U.S.", "today"]
            tags = ["B-PER", "O", "B-LOC", "O"]
            ann = tags if number % 5 else ["O", "O", "B-LOC", "I-LOC"]
            bob = ["?"] * 4 if number % 3 == 0 else ["B-PER", "O", "O", "O"]
            rows = [tags, ann] if scheme == "BIO" else [convert_tags(each, "BIO", scheme) for each in (tags, ann)]
            if scheme != "BIO" and bob[0] != "?":
                bob = convert_tags(bob, "BIO", scheme)
            for token, right, one, two in zip(tokens, *rows, bob, strict=True):
                said.write(f"{token}\t{one}\t{two}\n")
                true.write(f"{token} NN {right}\n")
            said.write("\n")
            true.write("\n")
    return str(answers), str(gold)


def options(annotations, **more):
    """Settings of AnnotationExampleGen, as the pipeline gives them."""
    return {
        "kind": "sequence", "annotations": annotations, "gold": None, "scheme": "BIO", "classes": None,
        "on_bad_tags": "error", "eval_fraction": 0.4, **more,
    }  # fmt: skip


def tasks_of(records):
    return {record["task"][0].decode(): record for record in records}


def pattern(examples, split):
    return [f"{examples.uri}/Split-{split}/*"]


@pytest.fixture(scope="module")
def spans(tmp_path_factory, new_folder):
    """The components run on spans with gold."""
    folder = new_folder(tmp_path_factory.mktemp("spans"))
    settings = options(spans_file(folder.path / "spans.jsonl"))
    examples, annotations = folder.generate(**settings)
    aggregated, report = folder.aggregate(examples, annotations, "majority-vote")
    sequences = read_crowd_sequences(settings)
    split = split_by_hash(sequences.texts, 0.4)
    labelled = sequences.annotations.redundancy > 0
    # both kinds of sentences are on both sides, or the tests below would say nothing
    assert {(one, bool(two)) for one, two in zip(split, labelled, strict=True)} == {
        (side, there) for side in ("train", "eval") for there in (True, False)
    }
    return SimpleNamespace(**locals())


@pytest.fixture(scope="module")
def columns(tmp_path_factory, new_folder):
    """The same on columns in IOBES without gold, with a method that looks at words."""
    folder = new_folder(tmp_path_factory.mktemp("columns"))
    settings = options(columns_files(folder.path, "IOBES")[0], scheme="IOBES")
    examples, annotations = folder.generate(**settings)
    aggregated, _ = folder.aggregate(examples, annotations, "hmm-crowd")
    sequences = read_crowd_sequences(settings)
    return SimpleNamespace(**locals(), split=split_by_hash(sequences.texts, 0.4))


# === AnnotationExampleGen ===


def test_examples_of_spans_hold_text_tokens_codes_and_gold(spans):
    classes = ["O", "B-PER", "I-PER"]
    expected = {"train": {}, "eval": {}}
    for number, side in enumerate(spans.split):
        tokens, answers = sentence(number)
        if not answers and side == "train":
            continue
        text = " ".join(tokens).encode()
        who = sorted(answers)
        expected[side][text.decode()] = {
            "task": [text],
            "instances": [text],
            "tokens": [token.encode() for token in tokens],
            "annotator_ids": [["ann", "bob", "cid"].index(name) for name in who],
            "annotator_labels": [classes.index(tag) for name in who for tag in answers[name]],
            "gold": [1, 0, 1],
        }
    for side, records in expected.items():
        assert tasks_of(spans.folder.records(spans.examples, side)) == records
    info = read_dataset_info(spans.examples.uri)
    assert info.pop("sha256").keys() == {"annotations"}
    assert info.pop("reading")["kind"] == "sequence"
    assert info == {
        "kind": "sequence",
        "classes": classes,
        "scheme": "BIO",
        "annotators": ["ann", "bob", "cid"],
        "num_tasks": {side: len(records) for side, records in expected.items()},
        "num_gold": {side: int(np.sum(spans.split == side)) for side in expected},
    }


def test_columns_are_cut_into_the_tokens_that_a_server_sees(columns):
    records = [record for side in ("train", "eval") for record in columns.folder.records(columns.examples, side)]
    assert len(records) == 18
    classes = read_dataset_info(columns.examples.uri)["classes"]
    for record in records:
        number = int(record["task"][0])
        assert record["tokens"] == [token.encode() for token in (NAMES[number], "left", *"U.S.", "today")]
        assert record["instances"] == [f"{NAMES[number]} left U.S. today".encode()]
        assert "gold" not in record
        ann = [classes[code] for code in record["annotator_labels"][:7]]
        wrong = ["O", "O", "B-LOC", "I-LOC", "I-LOC", "I-LOC", "E-LOC"]
        assert ann == (wrong if number % 5 == 0 else ["S-PER", "O", "B-LOC", "I-LOC", "I-LOC", "E-LOC", "O"])
        assert record["annotator_ids"] == ([0] if number % 3 == 0 else [0, 1])


# === Splits ===


def some_texts(number):
    names = [np.array(each, object) for each in ([f"s{i}" for i in range(number)], ["ann"], ["O", "B-X", "I-X"])]
    none = np.empty(0, np.int64)
    texts = [f"text {i % 150}" for i in range(number)]  # the first ones come twice
    offsets = [np.array([[0, 4], [5, len(text)]]) for text in texts]
    return CrowdSequences(
        [text.split(" ") for text in texts],
        Annotations("sequence", none, none, none, *names, positions=none),
        texts=texts,
        offsets=offsets,
    )


def test_the_same_text_is_never_on_both_sides_and_a_sentence_keeps_its_side():
    sequences = some_texts(200)
    split = split_by_hash(sequences.texts, 0.25)
    assert {*split} == {"train", "eval"}
    np.testing.assert_array_equal(split[:50], split[150:])
    assert 20 <= np.sum(split[:150] == "eval") <= 56, "a quarter of 150, give or take three standard deviations"
    np.testing.assert_array_equal(split_by_hash(sequences.select(np.arange(30)).texts, 0.25), split[:30])
    # whoever is of eval at a small share is of eval at a larger one
    larger = split_by_hash(sequences.texts, 0.5)
    assert np.sum(larger == "eval") > np.sum(split == "eval")
    assert (larger[split == "eval"] == "eval").all()


# === CrowdAggregator ===


def test_posteriors_are_those_of_each_split_alone(spans):
    for side in ("train", "eval"):
        tasks = np.flatnonzero((spans.split == side) & (spans.labelled | (side == "eval")))
        fitted = create("majority-vote", kind="sequence", seed=0).fit(spans.sequences.select(tasks))
        found = tasks_of(spans.folder.records(spans.aggregated, side))
        assert len(found) == len(tasks)
        posteriors, labels = (np.split(each, fitted.starts[1:-1]) for each in (fitted.posteriors, fitted.labels))
        for row, task in enumerate(tasks):
            record = found[" ".join(sentence(task)[0])]
            if not spans.labelled[task]:
                assert record["aggregated_label"] == [0, 0, 0], "what nobody labelled is outside"
                assert record.get("posterior", []) == []
                continue
            np.testing.assert_allclose(np.reshape(record["posterior"], (-1, 3)), posteriors[row], atol=1e-6)
            assert record["aggregated_label"] == labels[row].tolist()
            if task % 2:  # by hand: two of three marked the second name
                assert record["aggregated_label"] == [1, 0, 1]
                np.testing.assert_allclose(record["posterior"], [0, 1, 0, 1, 0, 0, 1 / 3, 2 / 3, 0], atol=1e-6)


def test_without_gold_evaluation_falls_back_to_the_aggregation(folder):
    examples, annotations = folder.generate(**options(spans_file(folder.path / "spans.jsonl", gold=False)))
    aggregated, _ = folder.aggregate(examples, annotations, "majority-vote")
    info = read_dataset_info(aggregated.uri)
    assert info["truth"] == "aggregated"
    assert info["num_gold"] == {"train": 0, "eval": 0}
    records = folder.records(aggregated, "eval")
    assert {len(record.get("annotator_ids", ())) > 0 for record in records} == {True, False}
    for record in records:
        assert record["evaluation_label"] == record["aggregated_label"]
        assert record["evaluation_weight"] == [float(len(record["annotator_ids"]) > 0)]


# === From Examples back to sentences ===


def test_sentences_are_read_back_as_they_were_written(tmp_path):
    sequences = read_crowd_sequences(options(columns_files(tmp_path)[0], gold=str(tmp_path / "gold.txt")))
    info = {"classes": sequences.classes, "annotators": [str(name) for name in sequences.annotations.annotators]}
    rng = np.random.default_rng(0)
    posteriors = [rng.dirichlet(np.ones(len(sequences.classes)), length) for length in sequences.lengths]
    posteriors[4] = None
    with tf.io.TFRecordWriter(str(tmp_path / "examples.gz"), tf.io.TFRecordOptions("GZIP")) as writer:
        for task, own in enumerate(posteriors):
            example = sentence_example(sequences, task)
            flat = [] if own is None else own.ravel().tolist()
            codes = [0] * int(sequences.lengths[task]) if own is None else own.argmax(axis=1).tolist()
            add_answer(example, flat, codes, "aggregated", "int64_list")
            writer.write(example.SerializeToString())
    found = read_examples([str(tmp_path / "*.gz")], info)
    assert found.texts == [*sequences.texts]
    assert found.tokens == [[*tokens] for tokens in sequences.tokens]
    again = CrowdSequences(found.tokens, found.annotations, scheme="BIO")
    for task in range(18):
        said = sequences.answers(task)
        assert again.answers(task) == {str(who): tags for who, tags in said.items()}
        none = posteriors[task] is None
        expected = np.zeros((sequences.lengths[task], 5)) if none else posteriors[task]
        np.testing.assert_allclose(found.posteriors[task], expected, atol=1e-7)
        np.testing.assert_array_equal(found.evaluation_labels[task], expected.argmax(axis=1))
        assert found.evaluation_weights[task] == (len(said) > 0)


# === What cannot be used ===


def test_nothing_to_evaluate_with_is_refused(folder):
    marked = [{"start": 0, "end": 4, "label": "PER"}]
    lines = [span_line("Anna slept", annotator="ann", spans=marked), *(span_line(f"{name} left") for name in NAMES)]
    (folder.path / "spans.jsonl").write_text("".join(lines))
    settings = options(str(folder.path / "spans.jsonl"))
    sequences = read_crowd_sequences(settings)
    # the only one that is labelled is of train
    splits = {share: split_by_hash(sequences.texts, share) for share in (0.1, 0.2, 0.4, 0.6)}
    share = next(share for share, split in splits.items() if split[0] == "train" and "eval" in split)
    with pytest.raises(DataError, match="no task of the eval split has gold or annotations"):
        folder.generate(**{**settings, "eval_fraction": share})


# === Evaluation ===


def capital_tagger(folder, name_tag="B-PER"):
    """A served model that cuts at white space and tags words with a capital."""

    def answer(texts):
        tokens = tf.strings.split(texts)
        there = tf.strings.regex_full_match(tokens.flat_values, r"\p{Lu}.*")
        tags = tokens.with_flat_values(tf.where(there, name_tag, "O"))
        return {"tokens": tokens.to_tensor(""), "tags": tags.to_tensor(""), "lengths": tokens.row_lengths()}

    return str(save_model(folder, answer, instances=("string",)))


def test_scores_are_those_of_spans_counted_by_hand(spans, tmp_path):
    good, none = capital_tagger(tmp_path / "good"), capital_tagger(tmp_path / "none", name_tag="O")
    info = read_dataset_info(spans.aggregated.uri)
    (files,) = pattern(spans.aggregated, "eval")
    summary = SpanRecords().model_scores({"candidate": good, "baseline": none}, files, info)
    assert summary["candidate"]["tasks"] == np.sum(spans.split == "eval")
    for found in summary.values():
        assert (len(found["by_task"]), found["by_task"].mean()) == (found["tasks"], pytest.approx(found["f1"]))
    assert [summary["candidate"][key] for key in ("f1", "precision", "recall", "token_accuracy")] == [1, 1, 1, 1]
    assert [summary["baseline"][key] for key in ("f1", "recall")] == [0, 0]
    assert summary["baseline"]["token_accuracy"] == pytest.approx(1 / 3)


def test_a_model_that_cuts_text_otherwise_is_refused(columns, tmp_path):
    info, files = read_dataset_info(columns.aggregated.uri), pattern(columns.aggregated, "eval")
    with pytest.raises(ValueError, match=r"model: cuts .* into \[.*'U.S.', 'today'\], not \[.*'U'"):
        SpanRecords().model_scores({"candidate": capital_tagger(tmp_path / "model")}, *files, info)


@pytest.mark.parametrize(
    ("better", "minimum", "blessed"), [(True, 0.9, True), pytest.param(False, 0.0, False, marks=pytest.mark.slow)]
)
def test_a_tagger_is_blessed_by_its_f1(spans, tmp_path, new_folder, better, minimum, blessed):
    tags = ("B-PER", "O") if better else ("O", "B-PER")
    capital_tagger(tmp_path / "serving" / "7", name_tag=tags[1])
    write = functools.partial(capital_tagger, name_tag=tags[0])
    serving = str(tmp_path / "serving")
    summary, _, files = new_folder.evaluate(spans.aggregated, tmp_path, write, minimum=minimum, serving=serving)
    assert (summary["metric"], summary["blessed"]) == ("f1", blessed)
    assert [summary[name]["f1"] for name in ("candidate", "baseline")] == ([1, 0] if better else [0, 1])
    assert files == ["BLESSED" if blessed else "NOT_BLESSED"]
    assert "F1" in summary["reason"]
    assert "of version 7" in summary["reason"]
