"""Every kind of label has every part, and the parts fit the rooms and pages that they come from."""

import argparse
import re
from pathlib import Path

import numpy as np
import pytest
from command_line import actions_of

from crowdzoo import datasets, kinds
from crowdzoo.aggregation import create
from crowdzoo.commands.options import add_kinds, checked_kind
from crowdzoo.data.label_kinds import LABEL_KINDS, MULTI_LABEL
from crowdzoo.errors import ConfigError, DataError, DataWarning
from crowdzoo.instances import INSTANCE_KINDS
from crowdzoo.kinds import KINDS, kind_of
from crowdzoo.kinds.measure import Measure
from crowdzoo.kinds.page import KindPage
from crowdzoo.kinds.page_parts import FLAGS, WARNINGS
from crowdzoo.kinds.questions import Questions
from crowdzoo.kinds.records import Records
from crowdzoo.kinds.sentences.kind import counted_in_characters
from crowdzoo.tables import Annotations
from crowdzoo.training.bases import BASES
from crowdzoo.training.methods import AGGREGATED


@pytest.fixture(params=[*KINDS])
def kind(request):
    return kind_of(request.param)


def test_every_kind_of_label_has_one_object():
    assert set(KINDS) == {*LABEL_KINDS, MULTI_LABEL.name}
    for name, kind in KINDS.items():
        assert kind.name == name
        assert kind.labels is {**LABEL_KINDS, MULTI_LABEL.name: MULTI_LABEL}[name]


def test_every_kind_has_every_part(kind):
    scoring = kind.scoring
    assert all([kind.title, kind.reading.counted, scoring.metric, scoring.metric_title, kind.prediction.header])
    assert issubclass(kind.page, KindPage)
    assert issubclass(kind.measure, Measure)
    assert kind.page.kind == kind.name
    assert kind.questions is None or isinstance(kind.questions, Questions)
    assert kind.load_records is None or isinstance(kind.records, Records)
    assert set(kind.options.needed) <= set(kind.options.inputs)
    assert kind.aggregation.default in kind.aggregation.methods()
    if not kind.labels.trained:
        assert not [*kind.training.methods()]
        assert not kind.training.bases
        message = "unknown kind" if kind.labels.has_several else rf"no method learns from {kind.title}\. Aggregate them"
        with pytest.raises(ConfigError, match=message):
            kind.training.split_method(kind.aggregation.default)
        return
    assert AGGREGATED in kind.training.methods()
    assert kind.training.default in kind.training.methods()
    assert kind.training.bases
    for base in kind.training.bases:
        settings = kind.training.settings(base)
        assert (settings.base, settings.kind, settings.method) == (base, kind.name, kind.training.default)
    assert set(kind.options.scale) <= {*kind.options.reading, "distance"}  # which aggregators alone take


def test_every_base_model_belongs_to_one_kind_of_instance():
    bases = [base for instances in INSTANCE_KINDS for base in {*instances.bases.values()}]
    assert sorted(bases) == sorted([*BASES, "sequence-tagger"])
    assert {name for instances in INSTANCE_KINDS for name in instances.bases} <= set(KINDS)


def test_an_aggregator_gets_the_seed_where_it_takes_one_and_the_settings_win():
    ratings, classes, sentences = (kind_of(name) for name in ("regression", "classification", "sequence"))
    assert ratings.aggregation.create("mean", seed=5) == create("mean", kind="regression")
    assert classes.aggregation.create("glad", seed=5).seed == 5
    assert sentences.aggregation.create("hmm-crowd", seed=5).seed == 5
    assert sentences.aggregation.create("glad", seed=5).settings == {"seed": 5}
    assert sentences.aggregation.create().seed == 0
    with pytest.raises(ConfigError, match="glad"):
        ratings.aggregation.create("glad")


def refused_by(kind):
    """Names of options that a kind refuses."""
    own = {option.name for option in kind.options.own}
    others = {option.name for other in KINDS.values() for option in other.options.own if option.refusal}
    return {*kind.options.refused, *others} - own


@pytest.mark.parametrize("name", LABEL_KINDS)
def test_options_of_other_kinds_are_refused_by_name(name):
    names = refused_by(kind_of(name))
    assert names
    for option in names:
        flag = f"--{option.replace('_', '-')}"
        for value, shown in ((3, f"{flag} 3: "), (0.0, f"{flag} 0: "), (True, f"{flag}: ")):
            with pytest.raises(ConfigError, match=shown):
                checked_kind(argparse.Namespace(kind=name, **{option: value}))
    assert checked_kind(argparse.Namespace(kind=name, **dict.fromkeys(names))) is kind_of(name)
    assert {option.name for option in kind_of(name).options.own} <= {action.dest for action in actions_of(add_kinds)}


@pytest.mark.parametrize("name", [name for name in KINDS if datasets.names(name)])
def test_a_shipped_data_set_is_read_aggregated_and_compared_with_gold(name, tmp_path):
    kind, name = kind_of(name), datasets.names(name)[0]
    written = dict(zip(kind.options.inputs, datasets.write_files(datasets.load(name), tmp_path), strict=False))
    crowd = kind.reading.read(written["annotations"])
    gold_path = written.get("instances")
    gold = kind.reading.gold_of(crowd, gold_path)
    result = kind.aggregation.create(next(iter(kind.aggregation.methods()))).fit(crowd)
    rows = dict([*kind.reading.size_rows(crowd), *kind.aggregation.rows(result, crowd, gold, False)])
    assert "annotators" in rows
    assert any("gold" in name or "gold" in text or "F1" in name for name, text in rows.items())
    kind.aggregation.write(result, crowd, tmp_path / "out")
    assert (tmp_path / "out" / "summary.json").exists()


def test_scores_are_those_of_perfect_and_of_wrong_answers():
    codes = np.array([0, 1, 1])
    found = kind_of("classification").scoring.score(codes, np.array([[1, 0], [0, 1], [0.75, 0.25]]))
    assert found["accuracy"] == pytest.approx(2 / 3)
    assert found["cross_entropy"] == pytest.approx(-np.log(0.25) / 3, abs=1e-6)
    found = kind_of("regression").scoring.score(np.array([1.0, 3.0]), np.array([1.0, 1.0]))
    assert found == {"r2": -1.0, "mae": 1.0, "rmse": pytest.approx(2**0.5)}
    with pytest.raises(ValueError, match="answers nan to 1 of the 2 tasks"):
        kind_of("regression").scoring.score(np.array([1.0, 3.0]), np.array([1.0, np.nan]))
    said = Annotations.from_arrays(
        ["a", "b", "c", "a"], ["x"] * 4, ["left", "right", "left", "equal"], right=["b", "c", "a", "c"],
        kind="preference",
    )  # fmt: skip
    # right, equal scores, wrong; "equal" does not count
    assert kind_of("preference").scoring.score(said, np.array([3.0, 1.0, 1.0])) == {"pair_accuracy": 0.5}
    tags = [["B-PER", "I-PER", "O"], ["O", "B-LOC"]]
    found = kind_of("sequence").scoring.score([["B-PER", "I-PER", "O"], ["O", "O"]], tags)
    assert (found["precision"], found["recall"], found["token_accuracy"]) == (0.5, 1.0, 0.8)


@pytest.mark.parametrize(
    ("name", "outputs", "lines"),
    [
        ("classification", {"class": np.array(["b", 'a "x"']), "probabilities": np.array([[0.1, 0.9], [0.75, 0.25]])},
         ["1,b,0.900000", '"t,2","a ""x""",0.750000']),
        ("regression", {"value": np.array([1.25, 3.0])}, ["1,1.25", '"t,2",3']),
        ("preference", {"score": np.array([-0.25, 3.0])}, ["1,-0.25", '"t,2",3']),
        ("sequence", {"lengths": np.array([1, 0]), "starts": np.array([[4]]), "ends": np.array([[7]]),
                      "types": np.array([["PER"]]), "texts": np.array([["Ann"]]), "scores": np.array([[0.5]])},
         ["1,4,7,PER,Ann,0.500000"]),
    ],
)  # fmt: skip
def test_predictions_are_lines_of_a_csv_file(name, outputs, lines):
    kind = kind_of(name)
    assert kind.prediction.answer in outputs
    found = kind.prediction.lines([1, "t,2"], outputs)
    assert found == lines
    assert all(len(line.split(",")) >= len(kind.prediction.header) for line in found)


@pytest.mark.parametrize(("task", "labels"), [("classification", ("cat", "dog")), ("regression", ("2", "8"))])
def test_tasks_that_nobody_labelled_are_not_trained_on(tmp_path, task, labels):
    """An aggregation gave them the classes' prior, from which the base then learned; and they were counted."""
    said = [(number, who, labels[number % 2]) for number in range(1, 5) for who in ("ann", "bob")]
    rows = [("task", "annotator", "label"), *said]
    (tmp_path / "a.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
    lines = [
        f"{number},{number}.5,{split}\n" for number, split in enumerate(("train", "eval", "train", "train", "train"), 1)
    ]
    (tmp_path / "i.csv").write_text("task,f0,split\n" + "".join(lines))  # nobody labelled 5
    kind = kind_of(task)
    data = kind.training.read(tmp_path / "a.csv", tmp_path / "i.csv")
    assert data.training.tolist() == [True, False, True, True, False]
    assert data.instances.tolist() == [[1.5], [3.5], [4.5]]
    assert ("tasks trained on", "3") in kind.reading.size_rows(data.trained_on, " trained on")
    targets = kind.training.targets(
        kind.aggregation.create("majority-vote" if task == "classification" else "mean").fit(data.used), data.used
    )
    assert len(targets) == 3
    (tmp_path / "i.csv").write_text("task,f0,split\n" + "".join(lines).replace("train", "eval"))
    with pytest.raises(DataError, match="every annotated task is of the split 'eval'"):
        kind.training.read(tmp_path / "a.csv", tmp_path / "i.csv")


def test_labels_of_images_are_read_twice_but_warn_once(tmp_path):
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "photos").mkdir()
    for task in range(3):
        image.new("RGB", (4, 4)).save(tmp_path / f"photos/{task}.png")
    said = [f"{task},{name},cat" for task in range(3) for name in ("ann", "bob")]
    (tmp_path / "a.csv").write_text("\n".join(["task,annotator,label", *said, "0,ann,Cat", "9,bob,cat"]) + "\n")
    options = {"on_duplicate": "last", "on_bad_rows": "reject", "rejects": tmp_path / "rejects.csv"}
    with pytest.warns(DataWarning) as seen:
        data = KINDS["classification"].training.read(tmp_path / "a.csv", tmp_path / "photos", **options)
    assert ["differ only in case" in str(warning.message) for warning in seen] == [True]
    assert len(data.annotations) == 6
    assert len((tmp_path / "rejects.csv").read_text().splitlines()) == 3  # with the header


def test_offsets_of_spans_are_counted_in_characters():
    texts = ["é😀 Bob", "", "Bob"]
    outputs = {"starts": np.array([[7, 0], [0, 0], [0, 1]]), "ends": np.array([[10, 0], [0, 0], [3, 2]]), "other": 1}
    found = counted_in_characters(texts, outputs)
    assert found["starts"].tolist() == [[3, 0], [0, 0], [0, 1]]
    assert found["ends"].tolist() == [[6, 0], [0, 0], [3, 2]]
    assert found["other"] == 1
    assert outputs["starts"][0, 0] == 7


def test_a_kind_that_is_not_known_is_named():
    with pytest.raises(ConfigError, match="unknown kind of label 'clases'"):
        kind_of("clases")


SOURCE = "".join(path.read_text(encoding="utf-8") for path in Path(kinds.__file__).parent.rglob("*.py"))
FORMS = {"name", "task", "count", "number", "share", "interval", "flags"}


def test_every_page_has_its_facts_and_tables_and_no_column_twice():
    tables = [kind.page.own_columns for kind in KINDS.values()]
    assert all({"facts", "annotators", "tasks"} <= {*table} for table in tables)
    for columns in (columns for table in tables for columns in table.values()):
        keys = [each.key for each in columns]
        assert len({*keys}) == len(keys)
        assert {each.form for each in columns} <= FORMS
        assert all(each.title for each in columns)


def test_every_warning_is_used_and_every_one_that_is_used_is_there():
    used = set(re.findall(r'\bwarning\(\s*"([\w-]+)"', SOURCE)) | {"all-equal"}  # one of two, in one call
    assert used == WARNINGS.keys()
    assert all(f'"{name}"' in SOURCE for name in WARNINGS)


def test_notes_say_what_was_found_and_serious_ones_what_to_do():
    for flag in FLAGS.values():
        assert flag.title
        assert flag.text
        assert bool(flag.fix) == flag.serious
        assert flag.serious or not (flag.out or flag.keep)


def test_an_annotated_image_that_is_not_in_the_folder_is_said(tmp_path, write):
    image = pytest.importorskip("PIL.Image")
    folder = tmp_path / "photos"
    folder.mkdir()
    for name in "ab":
        image.new("RGB", (8, 8), "red").save(folder / f"{name}.png")
    answers = write("answers.csv", "task,annotator,label\na.png,ann,x\nb.png,ann,y\nc.png,ann,x\nc.png,bob,x\n")
    with pytest.raises(DataError, match=r"'c.png' is not one of (.*\n)*.*photos: The tasks are its"):
        KINDS["classification"].training.read(answers, folder)
    with pytest.warns(UserWarning, match="2 rows were left out"):
        found = KINDS["classification"].training.read(answers, folder, on_bad_rows="reject")
    assert found.crowd.tasks.tolist() == ["a.png", "b.png"]
    assert found.crowd.num_rejected == 2
