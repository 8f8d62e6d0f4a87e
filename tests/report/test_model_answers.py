"""A model's answers next to those of annotators, on pages of ratings, spans, regions and free texts."""

import json

import numpy as np
import pytest
from command_line import run

from crowdzoo import Annotations
from crowdzoo.data.regions import MarkedImage
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.kinds import kind_of
from crowdzoo.report.page import report_page

PAIRS = ["model and aggregated labels", "annotators and aggregated labels", "model and annotators", "two annotators"]
TEXTS = ["Ann Lee met Bob in Rome today", "Nobody went to Paris last May", "Bob sang", "Tim Cook likes Oslo"]
TRUE = [{"Ann Lee": "PER", "Bob": "PER", "Rome": "LOC"}, {"Paris": "LOC"}, {"Bob": "PER"}, {"Tim Cook": "PER",
    "Oslo": "LOC"}]  # fmt: skip
MODEL = [{"Ann Lee": "PER", "Bob": "LOC", "Rome": "LOC"}, {}, {"Bob": "PER"}, {"Tim": "PER", "Oslo": "LOC"}]


def page_of(annotations, predictions, **settings):
    kind = kind_of(annotations.label_kind.name)
    result = kind.aggregation.create(None, seed=0).fit(annotations)
    return result, report_page(annotations, result, bootstrap=0, predictions=predictions, **settings)


def rows_of(page, name):
    """Rows of a table of the page's numbers."""
    return [*zip(*json.loads(page.to_json())["tables"][name]["values"].values(), strict=True)]


def spans_of(sentence, marks):
    places = [(TEXTS[sentence].index(word), word, label) for word, label in marks.items()]
    return [{"start": start, "end": start + len(word), "label": label} for start, word, label in places]


def line_of(sentence, annotator, marks):
    spans = spans_of(sentence, marks)
    return json.dumps({"task": f"s{sentence}", "annotator": annotator, "text": TEXTS[sentence], "spans": spans})


@pytest.fixture
def sentences(tmp_path, monkeypatch):
    """Four sentences of three annotators, of whom c misses two spans; and a model's spans in two forms."""
    monkeypatch.chdir(tmp_path)
    rows = []
    for sentence, marks in enumerate(TRUE):
        missed = {"Ann Lee", "Tim Cook"}
        rows += [line_of(sentence, who, marks) for who in "ab"]
        rows.append(line_of(sentence, "c", {word: label for word, label in marks.items() if word not in missed}))
    (tmp_path / "s.jsonl").write_text("\n".join(rows) + "\n")
    (tmp_path / "m.jsonl").write_text("\n".join(line_of(place, "m", marks) for place, marks in enumerate(MODEL)) + "\n")
    spans = [(f"s{place}", *span.values()) for place, marks in enumerate(MODEL) for span in spans_of(place, marks)]
    lines = [f"{task},{start},{end},{label},x,0.9" for task, start, end, label in spans]
    (tmp_path / "m.csv").write_text("\n".join(["task,start,end,type,text,score", *lines]) + "\n")
    return tmp_path


def boxes(*regions, size=(60, 100)):
    """An image with boxes (class, left, top, width, height)."""
    return MarkedImage.of(size, [{"category": name, "bbox": box, "score": 0.9} for name, *box in regions])


def marked(images, annotators):
    """Images that all annotators mark alike."""
    rows = [(f"i{place}", f"w{who}", image.text) for place, image in enumerate(images) for who in range(annotators)]
    return Annotations.from_arrays(*map(list, zip(*rows, strict=True)), kind="region")


def test_ratings_are_compared_as_numpy_does():
    rng, number = np.random.default_rng(0), 40
    truth = rng.normal(3, 1, number)
    ratings = truth[:, None] + rng.normal(0, [0.2, 0.3, 0.6], (number, 3))
    tasks, who = np.divmod(np.arange(3 * number), 3)
    model = truth + rng.normal(0, 0.5, number)
    model[7] = np.nan
    result, page = page_of(Annotations.from_arrays(tasks, who, ratings.ravel(), kind="regression"), model)
    some = ~np.isnan(model)
    estimates, ratings, known = result.estimates[some], ratings[some], model[some]
    errors = np.abs(known - estimates)
    half = 1.959964 * errors.std(ddof=1) / np.sqrt(39)
    between = np.mean([np.abs(ratings[:, one] - ratings[:, two]).mean() for one, two in ((0, 1), (0, 2), (1, 2))])
    expected = [errors.mean(), np.abs(ratings - estimates[:, None]).mean(), np.abs(ratings - known[:, None]).mean()]
    rows = rows_of(page, "model_people")
    assert [row[:2] for row in rows] == [(name, 39) for name in PAIRS]
    np.testing.assert_allclose([row[2] for row in rows], [*expected, between], atol=1e-4)
    np.testing.assert_allclose(rows[0][3:], [errors.mean() - half, errors.mean() + half], atol=1e-3)
    assert page.values["model_error"] == pytest.approx(errors.mean(), abs=1e-4)
    listed = rows_of(page, "model_tasks")
    order = np.argsort(-np.abs(np.nan_to_num(model - result.estimates)))[:39]
    assert [row[0] for row in listed] == order.tolist()
    assert json.loads(page.to_json())["model"] == {"metric": "absolute difference", "tasks": 39, "without": 1}
    assert "model_people" in page.to_html()


@pytest.mark.parametrize("file", ["m.csv", "m.jsonl"])
def test_spans_of_a_model_are_read_and_compared(sentences, file, capsys):
    words = ("report", "s.jsonl", "--kind", "sequence", "--predictions", file, "--out", "r.html", "--bootstrap", 0)
    assert run(*words, "--fail-if", "model_agreement<0.7", "--fail-if", "model_agreement>0.7") == 7
    out = capsys.readouterr()
    assert "predictions: 4 compared; 0 labelled tasks have none\n" in out.out
    assert "model_agreement<0.7 holds: model_agreement is 0.6154" in out.err
    tables = json.loads((sentences / "r.json").read_text())["tables"]
    people, tasks = (tables[name]["values"] for name in ("model_people", "model_tasks"))
    # 4 of 6 spans of the model are among the 7 true ones. Of three annotators one misses a span in s0 and in s3
    means = np.array([[16 / 3, 17 / 3], [2, 2], [2, 2], [10 / 3, 11 / 3]]).sum(axis=0)
    pairs = np.array([[(6 + 4 + 4) / 3, (6 + 5 + 5) / 3], [2, 2], [2, 2], [(4 + 2 + 2) / 3, (4 + 3 + 3) / 3]])
    with_model = np.array([[(4 + 4 + 2) / 3, (6 + 6 + 5) / 3], [0, 1], [2, 2], [(2 + 2 + 2) / 3, (4 + 4 + 3) / 3]])
    (total, weight), (same, spans) = with_model.sum(axis=0), pairs.sum(axis=0)
    assert people["score"] == pytest.approx([8 / 13, means[0] / means[1], total / weight, same / spans], abs=1e-4)
    assert tasks["task"] == ["s1", "s3", "s0"]
    assert tasks["score"] == [0.0, 0.5, 0.6667]
    assert tasks["predicted"][1:] == ["Tim (PER), Oslo (LOC)", "Ann Lee (PER), Bob (LOC), Rome (LOC)"]


def test_objects_of_a_model_that_differ_are_listed_worst_first():
    cat, dog = ("cat", 5, 10, 10, 10), ("dog", 40, 10, 20, 20)
    annotations = marked([boxes(cat, dog)] * 6, 2)
    model = [boxes(cat, dog), boxes(dog), boxes(("dog", *cat[1:]), dog), boxes(cat, ("dog", 50, 10, 20, 20)),
        boxes(cat, dog, ("cat", 80, 40, 10, 10)), None]  # fmt: skip
    result, page = page_of(annotations, model)
    assert rows_of(page, "model_objects") == [
        ("i1", "missed by the model", "cat", None, None, 1.0),
        ("i2", "other class", "cat", "dog", 1.0, 0.9),
        ("i4", "by the model alone", None, "cat", None, 0.9),
        ("i3", "other place or extent", "dog", "dog", 0.3333, 0.6667),  # 200 of 600 pixels
    ]
    # pixels of both, twice, of the pixels of each
    scores = [1, 2 * 400 / 900, 2 * 400 / 1000, 2 * 300 / 1000, 2 * 500 / 1100]
    assert [row[4] for row in rows_of(page, "model_tasks")] == pytest.approx(sorted(scores)[:4], abs=1e-4)
    assert page.values["model_agreement"] == pytest.approx(np.mean(scores), abs=1e-4)
    assert [row[1] for row in rows_of(page, "model_people")] == [5] * 4
    shown = page.numbers.tables["tasks"]
    pictures = {row: detail["instance"]["marks"] for row, detail in zip(shown.rows, shown.details, strict=True)}
    assert pictures[0] != pictures[5]  # no outline of the model
    assert result.marked[0] is not None


def test_masks_are_compared_as_numpy_does():
    rng = np.random.default_rng(3)
    truth = rng.random((8, 30, 40)) < 0.3
    answers = truth[:, None] ^ (rng.random((8, 3, 30, 40)) < np.array([0.02, 0.05, 0.1])[:, None, None])
    model = truth ^ (rng.random(truth.shape) < 0.15)

    def image(pixels):
        return MarkedImage.of((30, 40), [{"category": "cell", "counts": runs(pixels)}])

    rows = [(f"i{task}", f"w{who}", image(answers[task, who]).text) for task in range(8) for who in range(3)]
    annotations = Annotations.from_arrays(*map(list, zip(*rows, strict=True)), kind="region")
    result, page = page_of(annotations, [image(pixels) for pixels in model])

    def near(one, other):
        return 2 * (one & other).sum() / (one.sum() + other.sum())

    labels = [pixels_of(each) for each in result.marked]
    expected = [
        np.mean([near(label, pixels) for label, pixels in zip(labels, model, strict=True)]),
        np.mean([near(labels[task], answers[task, who]) for task in range(8) for who in range(3)]),
        np.mean([near(model[task], answers[task, who]) for task in range(8) for who in range(3)]),
        np.mean([near(answers[task, who], answers[task, who - 1]) for task in range(8) for who in range(3)]),
    ]
    assert [row[2] for row in rows_of(page, "model_people")] == pytest.approx(expected, abs=1e-4)


def runs(pixels):
    """Lengths of the runs of a mask, column by column, outside first."""
    flat = np.r_[False, pixels.T.ravel()]
    return np.diff(np.r_[0, np.flatnonzero(flat[1:] != flat[:-1]), pixels.size]).tolist()


def pixels_of(image):
    from pycocotools import mask

    return mask.decode(image.of_classes["cell"]).astype(bool)


def test_points_of_a_model_are_compared_within_the_distance():
    def points(*places):
        return MarkedImage.of((60, 100), [{"category": "nest", "point": place} for place in places])

    annotations = marked([points((10, 10), (50, 30))] * 2, 2)
    result = kind_of("region").aggregation.create(None, seed=0, distance=10.0).fit(annotations)
    model = [points((10, 10), (56, 30)), points((11, 10))]
    page = report_page(annotations, result, bootstrap=0, predictions=model)
    assert rows_of(page, "model_objects") == [
        ("i1", "missed by the model", "nest", None, None, 1.0),
        ("i0", "other place or extent", "nest", "nest", 0.4, 0.6),
    ]
    assert page.values["model_agreement"] == pytest.approx((1 + 2 / 3) / 2, abs=1e-4)
    assert page.numbers.model["metric"] == "F1 of points"


def test_results_of_coco_are_read_by_the_numbers_of_images(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    images = [{"id": 7 + place, "file_name": f"i{place}.jpg", "height": 60, "width": 100, "annotators": ["a", "b"]}
        for place in range(2)]  # fmt: skip
    regions = [{"image_id": number, "category_id": 3, "bbox": [5, 10, 10, 10], "annotator": who}
        for number in (7, 8) for who in "ab"]  # fmt: skip
    regions = [{"id": place, **region} for place, region in enumerate(regions)]
    entry = {"images": images, "categories": [{"id": 3, "name": "cat"}], "annotations": regions}
    (tmp_path / "a.json").write_text(json.dumps(entry))
    results = [{"image_id": 7, "category_id": 3, "bbox": [5, 10, 10, 5], "score": 0.8},
        {"image_id": 8, "category_id": 3, "bbox": [5, 10, 10, 10], "score": 0.4}]  # fmt: skip
    (tmp_path / "results.json").write_text(json.dumps(results))
    words = ("report", "a.json", "--kind", "region", "--platform", "coco", "--out", "r.html", "--bootstrap", 0)
    assert run(*words, "--predictions", "results.json") == 0
    numbers = json.loads((tmp_path / "r.json").read_text())
    # 100 and 50 pixels, of which 50 are the same; the other one has a low score
    assert numbers["values"]["model_agreement"] == pytest.approx((2 * 50 / 150 + 0) / 2, abs=1e-4)
    assert numbers["tables"]["model_objects"]["values"]["finding"] == ["missed by the model"]
    (tmp_path / "results.json").write_text(json.dumps([{**results[0], "category_id": 4}]))
    assert run(*words, "--predictions", "results.json", "--force") == 0
    objects = json.loads((tmp_path / "r.json").read_text())["tables"]["model_objects"]["values"]
    assert [*zip(objects["finding"], objects["predicted"], strict=True)][1] == ("other class", "category 4")
    export = {**entry, "categories": [{"id": 3, "name": "1"}], "annotations": regions[::2]}  # one answer to each image
    images[:] = [{key: value for key, value in image.items() if key != "annotators"} for image in images]
    for region in regions:
        del region["annotator"]
    (tmp_path / "model.json").write_text(json.dumps(export))
    assert run(*words, "--predictions", "model.json", "--force", "--rename", "1=cat") == 0
    assert json.loads((tmp_path / "r.json").read_text())["values"]["model_agreement"] == 1
    (tmp_path / "results.json").write_text(json.dumps([{**results[0], "score": "high"}]))
    capsys.readouterr()
    assert run(*words, "--predictions", "results.json", "--force") == 3
    assert "entry 1: image_id 7, category_id 3 and score 'high'" in capsys.readouterr().err


def test_texts_and_ratings_of_a_model_are_read_from_what_predict_writes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(
        "task,annotator,label\n1,a,the quick brown fox\n1,b,the quick brown fox\n1,c,the quick fox\n"
        "2,a,so be\n2,b,so be\n"
    )
    (tmp_path / "p.csv").write_text("task,text\n1,the quick brown box\n2,so be\n")
    how = ("--out", "r.html", "--bootstrap", 0, "--predictions", "p.csv")
    assert run("report", "t.csv", "--kind", "free-text", *how) == 0
    numbers = json.loads((tmp_path / "r.json").read_text())
    assert numbers["values"]["model_error"] == pytest.approx(1 / 6, abs=1e-4)  # one of six words
    assert numbers["tables"]["model_tasks"]["values"]["predicted"] == ["the quick brown box"]
    (tmp_path / "t.csv").write_text("task,annotator,label\n1,a,2.5\n1,b,2.5\n2,a,4\n2,b,4\n")
    (tmp_path / "p.csv").write_text("task,value\n1,3\n2,4\n9,4\n")
    assert run("report", "t.csv", "--kind", "regression", "--method", "mean", *how, "--force") == 0
    assert json.loads((tmp_path / "r.json").read_text())["values"]["model_error"] == 0.25


def test_predictions_that_do_not_fit_are_refused(sentences, refusal_of):
    ratings = Annotations.from_arrays([0, 0, 1], ["a", "b", "a"], [1.0, 2, 3], kind="regression")
    for wrong, told in ((np.zeros(3), "one of the ratings for each of the 2 tasks"), (["x", "y"], "give a number for")):
        with pytest.raises(DataError, match=told):
            page_of(ratings, wrong)
    with pytest.raises(DataError, match="classes need a probability"):
        page_of(Annotations.from_arrays([0, 0, 1], ["a", "b", "a"], ["x", "y", "x"]), ["x", "y"])
    with pytest.raises(DataError, match="give a MarkedImage for each task"):
        page_of(marked([boxes(("cat", 1, 1, 5, 5))], 2), ["cat"])
    texts = Annotations.from_arrays([0, 0], ["a", "b"], ["so", "so"], kind="free-text")
    with pytest.raises(DataError, match="give a text for each task"):
        page_of(texts, [3])
    pairs = Annotations.from_arrays(["x"], ["a"], ["left"], right=["y"], kind="preference")
    with pytest.raises(ConfigError, match="predictions: a page does not compare preferences"):
        page_of(pairs, [1.0, 2.0])
    words = ("report", "s.jsonl", "--kind", "sequence", "--out", "r.html", "--bootstrap", 0, "--predictions")
    for name, text, told in (
        ("p.csv", "task,start,end,type\ns0,0,3,PER\ns0,90,95,PER\n", "p.csv, row 3, column 'start'"),
        ("p.csv", "task,start,end,type\ns0,0,x,PER\n", "p.csv, row 2, column 'end'"),
        ("p.csv", "task,start,end,type\nx0,0,3,PER\n", "none of its 1 tasks"),
        ("p.jsonl", line_of(0, "m", {}) + "\n" + line_of(0, "n", {}) + "\n", "has 2 annotators. Give the"),
        ("p.jsonl", line_of(0, "m", {}).replace("today", "to day") + "\n", "sentence 's0' has other tokens"),
    ):
        (sentences / name).write_text(text)
        assert told in refusal_of(*words, name, code=3)
