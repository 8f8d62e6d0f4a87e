"""The consensus as Label Studio stores answers: crowdzoo reads the same labels from it, and a real server takes it."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.aggregation import MajorityVote
from crowdzoo.data.regions import MarkedImage, mask_of_pixels
from crowdzoo.errors import DataError
from crowdzoo.label_studio.client import Client
from crowdzoo.label_studio.project import answers_kind, read_answers
from crowdzoo.label_studio.pushing import push_predictions
from crowdzoo.label_studio.result_form import consensus_results
from crowdzoo.reading.platforms.label_config import read_label_config
from crowdzoo.reading.platforms.shapes import brush_mask

TEXT = '<View><Text name="o" value="$text"/>{}</View>'
IMAGE = '<View><Image name="o" value="$image"/>{}</View>'
CATS = '<Choice value="cat"/><Choice value="dog"/><Choice value="Žížala"/>'
LABELS = '<Label value="PER"/><Label value="LOC"/>'
TEXT_DATA = {"text": "Ünal met Bob in Łódź."}
IMAGE_DATA = {"image": "https://example.com/a.png"}
SIZE = {"original_width": 40, "original_height": 20, "image_rotation": 0}


METHODS = {"classification": "majority-vote"}  # of others the default


def shape(**value):
    return {**SIZE, "value": value}


# tag -> labelling configuration, data of a task, and its results: two annotators say the first, one says the second
CASES = {
    "choices": (TEXT.format(f'<Choices name="c" toName="o">{CATS}</Choices>'), TEXT_DATA,
                [{"value": {"choices": ["Žížala"]}}], [{"value": {"choices": ["cat"]}}]),
    "several choices": (TEXT.format(f'<Choices name="c" toName="o" choice="multiple">{CATS}</Choices>'), TEXT_DATA,
                        [{"value": {"choices": ["cat", "dog"]}}], [{"value": {"choices": ["cat"]}}]),
    "taxonomy": (TEXT.format('<Taxonomy name="c" toName="o" maxUsages="1"><Choice value="a"><Choice value="b"/>'
                             '</Choice></Taxonomy>'), TEXT_DATA,
                 [{"value": {"taxonomy": [["a", "b"]]}}], [{"value": {"taxonomy": [["a"]]}}]),
    "rating": (TEXT.format('<Rating name="c" toName="o" maxRating="5"/>'), TEXT_DATA,
               [{"value": {"rating": 4}}], [{"value": {"rating": 4}}]),
    "number": (TEXT.format('<Number name="c" toName="o" min="0" max="10"/>'), TEXT_DATA,
               [{"value": {"number": 2.5}}], [{"value": {"number": 2.5}}]),
    "textarea": (TEXT.format('<TextArea name="c" toName="o"/>'), TEXT_DATA,
                 [{"value": {"text": ["Ünal and Bob"]}}], [{"value": {"text": ["Bob"]}}]),
    "labels": (TEXT.format(f'<Labels name="c" toName="o">{LABELS}</Labels>'), TEXT_DATA,
               [{"value": {"start": 0, "end": 4, "text": "Ünal", "labels": ["PER"]}},
                {"value": {"start": 16, "end": 20, "text": "Łódź", "labels": ["LOC"]}}],
               [{"value": {"start": 9, "end": 12, "text": "Bob", "labels": ["PER"]}}]),
    "rectanglelabels": (
        IMAGE.format(f'<RectangleLabels name="c" toName="o">{LABELS}</RectangleLabels>'), IMAGE_DATA,
        [shape(x=10, y=20, width=50, height=40, rotation=0, rectanglelabels=["LOC"])],
        [shape(x=10, y=20, width=55, height=40, rotation=0, rectanglelabels=["LOC"])]),
    "polygonlabels": (
        IMAGE.format(f'<PolygonLabels name="c" toName="o">{LABELS}</PolygonLabels>'), IMAGE_DATA,
        [shape(points=[[10, 20], [60, 20], [60, 80], [30, 80], [30, 50], [10, 50]], polygonlabels=["PER"])],
        [shape(points=[[10, 20], [60, 20], [60, 80]], polygonlabels=["PER"])]),
    "keypointlabels": (
        IMAGE.format(f'<KeyPointLabels name="c" toName="o">{LABELS}</KeyPointLabels>'), IMAGE_DATA,
        [shape(x=10, y=20, width=0.5, keypointlabels=["LOC"]), shape(x=70, y=45, width=0.5, keypointlabels=["PER"])],
        [shape(x=11, y=20, width=0.5, keypointlabels=["LOC"])]),
}  # fmt: skip


def head(tag):
    return {"from_name": "c", "to_name": "o", "type": tag.split()[-1], "id": "x"}


def written(path, config, data, answers):
    """An export of one task with these results, each by an annotator of their own."""
    tag = config.split("<")[3].split()[0].lower()
    annotations = [
        {"id": number, "completed_by": number, "was_cancelled": False, "ground_truth": False,
         "result": [{**head(tag), **one, "id": f"r{place}"} for place, one in enumerate(answer)]}
        for number, answer in enumerate(answers)
    ]  # fmt: skip
    path.write_text(json.dumps([{"id": 7, "data": data, "annotations": annotations}]))
    return path


def consensus(path, config):
    """The consensus on the task of an export as Label Studio stores answers."""
    (control,) = read_label_config(config)
    crowd = read_answers(control, path, platform="label-studio", field="c")
    aggregator = answers_kind(control).aggregation.create(METHODS.get(control.kind))
    return list(consensus_results(control, aggregator.fit(crowd), crowd))


@pytest.mark.parametrize("name", CASES)
def test_the_consensus_is_what_most_annotators_said(name, tmp_path):
    config, data, most, other = CASES[name]
    path = written(tmp_path / "export.json", config, data, [most, most, most, other])
    [(task, items, score)] = consensus(path, config)
    assert str(task) == "7"
    assert 0.5 <= score <= 1
    assert [item["from_name"] for item in items] == ["c"] * len(most)
    assert [item["to_name"] for item in items] == ["o"] * len(most)
    assert [item["type"] for item in items] == [name.split()[-1]] * len(most)
    assert [{**item["value"], "closed": True} for item in items] == [{**item["value"], "closed": True} for item in most]
    again = written(tmp_path / "again.json", config, data, [items, items])
    [(_, same, _)] = consensus(again, config)
    assert same == [{**item, **({"score": 1.0} if "score" in item else {})} for item in items]


@pytest.mark.parametrize("answers", [("cat", "dog"), ("cat", "cat"), ("cat", "dog", "ant")])
def test_classes_have_the_order_of_the_configuration_and_others_follow(answers, tmp_path):
    config = TEXT.format('<Choices name="c" toName="o"><Choice value="dog"/><Choice value="cat"/></Choices>')
    results = [[{"value": {"choices": [answer]}}] for answer in answers]
    path = written(tmp_path / "export.json", config, TEXT_DATA, results)
    crowd = read_answers(read_label_config(config)[0], path, platform="label-studio")
    assert crowd.classes.tolist() == ["dog", "cat"] + ["ant"] * ("ant" in answers)
    assert crowd.classes[crowd.labels].tolist() == [*answers]


def test_a_brush_mask_has_the_same_pixels(tmp_path):
    (control,) = read_label_config(IMAGE.format(f'<BrushLabels name="c" toName="o">{LABELS}</BrushLabels>'))
    pixels = np.random.default_rng(0).random((20, 40)) < 0.6
    image = MarkedImage.of((20, 40), [{"category": "PER", "counts": mask_of_pixels(pixels)}])
    result = SimpleNamespace(
        kind="region", marked=[image], confidence=[0.8], annotations_per_task=[2], tasks=np.array(["7"], object)
    )
    [(_, [item], score)] = consensus_results(control, result)
    assert score == 0.8
    assert item["value"]["brushlabels"] == ["PER"]
    assert brush_mask(item["value"]["rle"], (20, 40))["counts"] == image.regions[0].shape


def test_a_polygon_goes_around_each_part_and_not_around_holes():
    (control,) = read_label_config(CASES["polygonlabels"][0])
    pixels = np.zeros((10, 20), bool)
    pixels[1:5, 2:8] = True
    pixels[2:4, 4:6] = False
    pixels[7, 10] = True
    image = MarkedImage.of((10, 20), [{"category": "PER", "counts": mask_of_pixels(pixels)}])
    result = SimpleNamespace(
        kind="region", marked=[image], confidence=[1.0], annotations_per_task=[2], tasks=np.array(["7"], object)
    )
    [(_, items, _)] = consensus_results(control, result)
    assert sorted(sorted(item["value"]["points"]) for item in items) == [
        [[10, 10], [10, 50], [40, 10], [40, 50]],
        [[50, 70], [50, 80], [55, 70], [55, 80]],
    ]


@pytest.mark.parametrize(
    ("control", "name", "value"),
    [
        ('<Rating name="c" toName="o" maxRating="5"/>', "4", {"rating": 4}),
        ('<Number name="c" toName="o"/>', "2.5", {"number": 2.5}),
        ('<Pairwise name="c" toName="o"/>', "left", {"selected": "left"}),
    ],
)
def test_classes_are_shown_by_a_control_of_numbers_or_pairs(control, name, value):
    (control,) = read_label_config(TEXT.format(control))
    annotations = Annotations.from_arrays(task=["7", "7"], annotator=["a", "b"], label=[name, name])
    [(_, [item], _)] = consensus_results(control, MajorityVote().fit(annotations))
    assert item["value"] == value


def test_a_consensus_that_cannot_be_shown_is_refused():
    controls = '<HyperTextLabels name="c" toName="o"><Label value="A"/></HyperTextLabels>'
    config = f'<View><HyperText name="o" value="$html"/>{controls}</View>'
    (control,) = read_label_config(config)
    result = SimpleNamespace(kind="sequence", annotators_per_task=[1])
    with pytest.raises(DataError, match="'c': predictions for <HyperTextLabels> on <HyperText>"):
        list(consensus_results(control, result))


@pytest.mark.slow
@pytest.mark.xdist_group("label_studio")
@pytest.mark.parametrize("name", CASES)
def test_the_server_takes_the_consensus(name, studio, tmp_path):
    config, data, most, other = CASES[name]
    project = studio.project(config, [{"data": data}])
    [task] = studio.owner.json("GET", "/api/tasks", project=project)["tasks"]
    [(_, items, score)] = consensus(written(tmp_path / "export.json", config, data, [most, most, most, other]), config)
    with Client(studio.url, studio.owner.token) as client:
        for _ in range(2):
            said = push_predictions(client, project, [(task["id"], items, score)])
        assert said == ["predictions: 0 new, 0 changed, 0 removed, 1 unchanged"]
        shown = studio.owner.json(
            "POST", f"/api/tasks/{task['id']}/annotations/", {"result": items}
        )  # "Copy annotation"
    assert shown["result"] == items
