"""Each control of Label Studio, in the form that the server 1.23.2 exports."""

import base64
import io
import itertools
import json
import re
import warnings

import numpy as np
import pytest
from csv_files import read_csv

from crowdzoo import Annotations
from crowdzoo.commands import main as cli
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.sequences import read_spans

tools = pytest.importorskip("pycocotools.mask")
SIZE = {"original_width": 8, "original_height": 4, "image_rotation": 0}
SOUND = {"audio": "https://example.com/a.wav"}
TALK = {"talk": [{"author": "A", "text": "Anna \U0001f600 traf Bob."}, {"author": "B", "text": "In Ulm?"}]}
numbers = itertools.count(1)


def result(kind, name="q", more=None, **value):
    return {
        "id": "r1",
        "from_name": name,
        "to_name": "o",
        "type": kind,
        "origin": "manual",
        "value": value,
        **(more or {}),
    }


def answer(who, *results, updated="2026-11-29T03:27:31.347995Z", **more):
    number = next(numbers)
    return {
        "id": number, "completed_by": who, "result": list(results), "was_cancelled": False, "ground_truth": False,
        "created_at": "2026-11-29T03:27:31.347981Z", "updated_at": updated, "draft_created_at": None, "lead_time": 3.5,
        "prediction": {}, "result_count": len(results), "unique_id": f"c32947ea-{number}", "import_id": None,
        "last_action": None, "bulk_created": False, "task": 1, "project": 8, "updated_by": who,
        "parent_prediction": None, "parent_annotation": None, "last_created_by": None,
    } | more  # fmt: skip


def task(data, *answers, number=1):
    return {
        "id": number, "annotations": list(answers), "drafts": [], "predictions": [], "data": data, "meta": {},
        "created_at": "2026-11-29T03:27:31.245144Z", "updated_at": "2026-11-29T03:27:31.615368Z", "allow_skip": True,
        "inner_id": 1, "total_annotations": len(answers), "cancelled_annotations": 0, "total_predictions": 0,
        "comment_count": 0, "unresolved_comment_count": 0, "last_comment_updated_at": None, "project": 8,
        "updated_by": 1, "comment_authors": [],
    }  # fmt: skip


def minimal(data, who, *values, number=1):
    """An entry of JSON-MIN."""
    return {**data, "id": number, "q": list(values), "annotator": who, "annotation_id": 30,
            "created_at": "2026-11-29T03:27:31.407181Z", "updated_at": "2026-11-29T03:27:31.407198Z",
            "lead_time": 3.5}  # fmt: skip


def preferences(path, **options):
    frame = Annotations.read(path, platform="label-studio", kind="preference", **options).to_frame()
    return [tuple(row) for row in frame[["left", "right", "annotator", "label"]].itertuples(index=False)]


# === Text areas ===


def test_text_areas_are_free_texts_and_a_kind_that_does_not_fit_says_so(write, rows_of):
    path = write("a.json", [
        task({"text": "Anna met Bob."}, answer(2, result("textarea", text=["Anna traf Bob."])),
             answer(3, result("textarea", text=["Anna traf Bob"]), result("choices", "mood", choices=["sad"]))),
    ])  # fmt: skip
    crowd = Annotations.read(path, platform="label-studio", kind="free-text")
    assert [crowd.values[code] for code in crowd.labels] == ["Anna traf Bob.", "Anna traf Bob"]
    with pytest.warns(UserWarning, match="without an answer to 'mood': 1"):
        assert rows_of(path, "label-studio") == [(1, 3, "sad")]
    path = write("a.json", [task({"text": "a"}, answer(2, result("textarea", text=["b"])))])
    with pytest.raises(DataError, match=r"the questions are: 'q' \(texts, for kind='free-text'\)\.$"):
        rows_of(path, "label-studio")


def test_the_kind_that_a_message_names_reads_the_export(write, here, refusal_of):
    write("a.json", [task({"text": "a"}, *(answer(who, result("textarea", text=["b"])) for who in (2, 3)))])
    words = ["aggregate", "a.json", "--platform", "label-studio", "--out", "labels.csv"]
    advice = re.search(r"'q' \(texts, for (--kind \S+)\)", refusal_of(*words, code=3))
    assert cli.main([*words, *advice[1].split()]) == 0


def test_text_areas_of_json_min_are_free_texts_with_one_text_or_more(write):
    path = write("a.json", [
        minimal(SOUND, 2, "one two") | {"q": "one two"}, minimal(SOUND, 3, {"text": ["one", "two"]}, number=2),
    ])  # fmt: skip
    with pytest.warns(UserWarning, match="1 row was left out"):
        crowd = Annotations.read(path, platform="label-studio", kind="free-text", on_duplicate="first")
    assert [crowd.values[code] for code in crowd.labels] == ["one two", "one"]


# === Preferences ===


def test_pairs_are_preferences_and_classes(write, rows_of):
    sides = {"text1": "short", "text2": "long", "prompt": "?"}
    path = write("a.json", [
        task(sides, answer(2, result("pairwise", selected="left")), answer(3, result("pairwise", selected="right"))),
        task(sides | {"text2": "short", "text1": "wide"}, answer(2, result("pairwise", selected="left")), number=2),
    ])  # fmt: skip
    assert preferences(path) == [
        ("1/left", "1/right", 2, "left"), ("1/left", "1/right", 3, "right"), ("2/left", "2/right", 2, "left"),
    ]  # fmt: skip
    assert preferences(path, columns="left=text1,right=text2") == [
        ("short", "long", 2, "left"), ("short", "long", 3, "right"), ("wide", "short", 2, "left"),
    ]  # fmt: skip
    assert rows_of(path, "label-studio") == [(1, 2, "left"), (1, 3, "right"), (2, 2, "left")]
    with pytest.raises(DataError, match=r"column 'data\.txt': .*columns=\{'left': 'FIRST', 'r"):
        preferences(path, columns={"left": "txt", "right": "text2"})


def test_choices_between_two_sides_are_preferences_with_ties(write):
    said = [answer(who, result("choices", choices=[label])) for who, label in ((2, "A"), (3, "B"), (4, "same"))]
    path = write("a.json", [task({"a": "x", "b": "y"}, *said)])
    found = preferences(path, columns="left=a,right=b", classes=["A", "B", "same"])
    assert found == [("x", "y", 2, "A"), ("x", "y", 3, "B"), ("x", "y", 4, "same")]


def test_a_list_in_order_is_a_preference_for_each_pair(write, rows_of):
    data = {"items": [{"id": "a", "title": "Ape"}, {"id": "b", "title": "Bee"}, {"id": "c", "title": "Cat"}]}
    path = write("a.json", [task(data, answer(2, result("ranker", ranker={"q": ["b", "c", "a"]})), number=7)])

    def better(rows):
        return {(left, right) if label == "left" else (right, left) for left, right, _, label in rows}

    found = preferences(path)
    assert better(found) == {("7/b", "7/c"), ("7/b", "7/a"), ("7/c", "7/a")}
    assert {label for *_, label in found} == {"left", "right"}
    assert better(preferences(path, columns="task=title")) == {("Bee", "Cat"), ("Bee", "Ape"), ("Cat", "Ape")}
    with pytest.raises(DataError, match=r"the answers are rankings\. Read them with kind='preference'"):
        rows_of(path, "label-studio")
    path = write("a.json", [task(data, answer(2, result("ranker", ranker={"best": ["b"], "_": ["c", "a"]})))])
    with pytest.raises(DataError, match=r"is not one list in order\. Buckets are not read"):
        preferences(path)


def test_the_sides_of_pairs_of_lists_do_not_depend_on_which_is_better(write):
    data = {"items": [{"id": name} for name in "abc"]}
    sides = []
    for order in itertools.permutations("abc"):
        path = write("a.json", [task(data, answer(2, result("ranker", ranker={"q": [*order]})))])
        sides.append({(left, right) for left, right, *_ in preferences(path)})
    assert all(each == sides[0] for each in sides)


def test_the_command_line_ranks_what_was_compared(write, capsys, here):
    pairs = [("ape", "bee", "left"), ("bee", "cat", "left"), ("cat", "ape", "right")]
    path = write("a.json", [
        task({"one": left, "two": right}, answer(2, result("pairwise", selected=side)), number=number)
        for number, (left, right, side) in enumerate(pairs, start=1)
    ])  # fmt: skip
    words = [str(path), "--platform", "label-studio", "--kind", "preference", "--columns", "left=one,right=two"]
    assert cli.main(["aggregate", *words, "--method", "bradley-terry", "--out", "scores.csv"]) == 0
    assert [row["task"] for row in read_csv(here / "scores.csv")] == ["ape", "bee", "cat"]
    assert "best task" in capsys.readouterr().out
    assert cli.main(["convert", *words, "--out", "converted"]) == 0
    assert not (here / "converted" / "instances.csv").exists()
    assert "ape,bee,2,left" in (here / "converted" / "annotations.csv").read_text()


def test_a_platform_without_preferences_says_so():
    with pytest.raises(ConfigError, match="does not read preferences of doccano"):
        Annotations.read("a.jsonl", platform="doccano", kind="preference")


# === Spans ===


def tags(path):
    crowd = read_spans(path, platform="label-studio")
    frame = crowd.annotations.to_frame()
    found = {}
    for number, who, label in frame[["task", "annotator", "label"]].itertuples(index=False, name=None):
        found.setdefault((number, who), []).append(label)
    return [" ".join(each) for each in crowd.tokens], found


def test_labels_of_paragraphs_are_spans_of_their_text(write):
    # U+1F600 is two units in the offsets of a browser: Bob stands at 13 of 'Anna \U0001f600 traf Bob.'
    bob = result(
        "paragraphlabels", start="0", end="0", startOffset=13, endOffset=16, text="Bob", paragraphlabels=["PER"]
    )
    ulm = result("paragraphlabels", start="1", end="1", startOffset=3, endOffset=6, paragraphlabels=["LOC"])
    both = result(
        "paragraphlabels", start="0", end="1", startOffset=13, endOffset=2, text="Bob.\n\nIn", paragraphlabels=["X"]
    )
    path = write("a.json", [task(TALK, answer(2, bob, ulm), answer(3, both)), task(TALK, answer(2), number=2)])
    texts, found = tags(path)
    assert texts == ["Anna \U0001f600 traf Bob . In Ulm ?"] * 2
    assert found[1, 2] == ["O", "O", "O", "B-PER", "O", "O", "B-LOC", "O"]
    assert found[1, 3] == ["O", "O", "O", "B-X", "I-X", "I-X", "O", "O"]
    assert found[2, 2] == ["O"] * 8


@pytest.mark.parametrize(
    ("change", "data", "words"),
    [
        ({"start": "5", "end": "5"}, TALK, "outside of the 2 paragraphs"),
        ({"endOffset": None}, TALK, "outside of the 2 paragraphs"),
        ({}, {"talk": [{"phrase": "Anna"}], "text": "b"}, "has 0 lists of objects with a 'text'"),
        ({"text": "Eva"}, TALK, "is what was marked, and the text has 'Anna'"),
    ],
)
def test_paragraphs_that_cannot_be_read_are_named(write, change, data, words):
    value = {"start": "0", "end": "0", "startOffset": 0, "endOffset": 4, "paragraphlabels": ["PER"]} | change
    with pytest.raises(DataError, match=words):
        read_spans(
            write("a.json", [task(data, answer(2, result("paragraphlabels", **value)))]), platform="label-studio"
        )


def test_paths_of_a_taxonomy_label_spans(write):
    span = result("taxonomy", start=0, end=4, text="Anna", taxonomy=[["being", "person"]])
    _, found = tags(write("a.json", [task({"text": "Anna met Bob."}, answer(2, span))]))
    assert found[1, 2] == ["B-being/person", "O", "O", "O"]


LINKED = {
    "seconds of a sound": (SOUND, result("labels", start=1, end=3, channel=0, labels=["speech"])),
    "seconds of a sound without a channel": (SOUND, result("labels", start=0, end=5, labels=["speech"])),
    "a sound next to its text": (
        SOUND | {"text": "one two three"}, result("labels", start=0, end=3, labels=["speech"]),
    ),
    "parts of a second": (SOUND, result("labels", start=0.5, end=3.0, labels=["speech"])),
    "a sound with its length": (
        {"audio": "a"}, result("labels", more={"original_length": 9}, start=0, end=1, labels=["x"]),
    ),
    "a time series": (
        {"csv": "s3://bucket/a.csv"},
        result("timeserieslabels", start=1, end=3, instant=False, timeserieslabels=["up"]),
    ),
    "frames of a video": (
        {"video": "/data/upload/a.mp4"},
        result("timelinelabels", ranges=[{"start": 1, "end": 7}], timelinelabels=["x"]),
    ),
    "choices for a part of a sound": (SOUND, result("choices", start=1, end=3, channel=0, choices=["loud"])),
    "texts for a part of a sound": (SOUND, result("textarea", start=1.5, end=3, channel=0, text=["one two"])),
    "a text behind a link": ({"url": "https://example.com/a.txt"}, result("labels", start=0, end=5, labels=["PER"])),
}  # fmt: skip


@pytest.mark.parametrize("what", LINKED)
@pytest.mark.parametrize("form", ["json", "json-min"])
def test_places_in_what_the_export_does_not_hold_are_never_read(write, what, form):
    data, marked = LINKED[what]
    if "original_length" in marked:  # JSON-MIN has values alone
        form = "json"
    entry = task(data, answer(2, marked)) if form == "json" else minimal(data, 2, marked["value"])
    path = write("a.json", [entry])
    for reading in (
        lambda **field: read_spans(path, platform="label-studio", on_bad_tags="mend", **field),
        lambda **field: Annotations.read(path, platform="label-studio", **field),
        lambda **field: Annotations.read(path, platform="label-studio", kind="free-text", **field),
    ):
        with pytest.raises(DataError, match=r"'q' \(places in a sound, a video, a series or a text"):
            reading()
        with pytest.raises(ConfigError, match="field='q' is answered with places in a sound"):
            reading(field="q")


def test_spans_of_a_text_that_holds_a_link_are_read(write):
    span = result("labels", start=0, end=3, text="See", labels=["verb"])
    _, found = tags(write("a.json", [task({"text": "See https://example.com/a.wav"}, answer(2, span))]))
    assert found[1, 2][0] == "B-verb"


# === Regions ===


def png(alpha):
    from PIL import Image

    pixels, stream = np.zeros((*alpha.shape, 4), np.uint8), io.BytesIO()
    pixels[..., 3] = alpha
    Image.fromarray(pixels).save(stream, "PNG")
    return "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode()


def regions(path, **options):
    crowd = Annotations.read(path, kind="region", platform="label-studio", **options)
    return [crowd.values[code] for code in crowd.labels]


def test_a_bitmask_is_a_mask(write):
    alpha = np.zeros((4, 8), np.uint8)
    alpha[1:3, 2:5] = 255
    mask = result("bitmasklabels", more=SIZE, imageDataURL=png(alpha), bitmasklabels=["cat"])
    (image,) = regions(write("a.json", [task({"image": "a.png"}, answer(2, mask))]))
    assert [region.label for region in image.regions] == ["cat"]
    np.testing.assert_array_equal(tools.decode(image.masks[0]) > 0, alpha > 0)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("https://example.com/mask.png", "is not the data URL of a PNG image"),
        ("data:image/png;base64,AAAA", "is not a valid image"),
        ("data:image/png;base64,%%", "is not a shape"),
        (7, "is not the data URL of a PNG image"),
        (None, "has 3 x 2 pixels, and the image 8 x 4"),
    ],
)
def test_bitmasks_that_cannot_be_read_are_named(write, url, words):
    url = png(np.ones((2, 3), np.uint8)) if url is None else url
    mask = result("bitmasklabels", more=SIZE, imageDataURL=url, bitmasklabels=["cat"])
    with pytest.raises(DataError, match=rf"row 1.*region \(cat\).*{words}"):
        regions(write("a.json", [task({"image": "a.png"}, answer(2, mask))]))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("vectorlabels", {"vertices": [{"id": "1", "x": 1, "y": 1}], "closed": False}),
        ("labels", {"start": 1, "end": 3, "channel": 0}),
    ],
)
def test_what_was_left_out_is_said_where_nothing_is_left(write, kind, value):
    path = write("a.json", [task({"image": "a.png"}, answer(2, result(kind, more=SIZE, **value, **{kind: ["cat"]})))])
    with pytest.raises(DataError, match=rf"regions of type '{kind}', which are not read: 1\.$"):
        regions(path)


def test_choices_for_a_region_of_an_image_are_no_choices_for_the_image(write, rows_of):
    place = {"x": 25, "y": 50, "width": 50, "height": 25, "rotation": 0}
    path = write(
        "a.json", [task({"image": "a.png"}, answer(2, result("choices", more=SIZE, choices=["big"], **place)))]
    )
    with pytest.raises(DataError, match=r"'q' \(regions, for kind='region'\)"):
        rows_of(path, "label-studio")
    assert [region.label for region in regions(path, field="q")[0].regions] == ["big"]


def test_a_turned_image_is_named(write):
    place = {"x": 0, "y": 0, "width": 50, "height": 50, "rotation": 0}
    box = result("rectanglelabels", more=SIZE | {"image_rotation": 90}, rectanglelabels=["cat"], **place)
    with pytest.raises(DataError, match="has image_rotation 90"):
        regions(write("a.json", [task({"image": "a.png"}, answer(2, box))]))


# === Which answers count ===


def test_of_two_answers_by_one_user_the_one_that_was_changed_last_is_the_last(write, rows_of):
    early, late = "2026-11-29T03:30:00.000000Z", "2026-11-30T03:30:00.000000Z"
    sad, glad, odd = (result("choices", choices=[label]) for label in ("sad", "glad", "odd"))
    answers = answer(2, sad, updated=late), answer(2, glad, updated=early), answer(3, odd)
    path = write("a.json", [task({"text": "a"}, *answers)])
    with pytest.warns(UserWarning, match="1 row was left out"):
        assert rows_of(path, "label-studio", on_duplicate="last") == [(1, 3, "odd"), (1, 2, "sad")]
    with pytest.warns(UserWarning, match="1 row was left out"):
        assert rows_of(path, "label-studio", on_duplicate="first") == [(1, 3, "odd"), (1, 2, "glad")]


def test_predictions_drafts_and_skipped_answers_do_not_count(write, rows_of):
    sad = result("choices", choices=["sad"])
    entry = task({"text": "a"}, answer(2, sad), answer(3, was_cancelled=True)) | {
        "predictions": [{"id": 1, "result": [result("choices", choices=["glad"])], "score": 0.9, "model_version": "m"}],
        "drafts": [{"id": 1, "user": "ann@example.com", "result": [result("choices", choices=["glad"])]}],
    }
    with pytest.warns(UserWarning, match="left out: cancelled annotations: 1"):
        assert rows_of(write("a.json", [entry]), "label-studio") == [(1, 2, "sad")]


def test_nested_choices_are_paths(write, rows_of):
    path = write("a.json", [task({"text": "a"}, answer(2, result("choices", choices=[["being", "dog"], ["thing"]])))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = rows_of(path, "label-studio", on_duplicate="all")
    assert found == [(1, 2, "being / dog"), (1, 2, "thing")]


# === Tasks that nobody answered ===


def unfinished():
    """Six tasks with the same three people, two tasks that nobody answered, and one that was skipped."""
    tasks = [
        task({"text": f"text {number}"}, *(
            answer(who, result("choices", choices=[("sad", "glad")[number % 2]])) for who in (2, 3, 4)
        ), number=number) for number in range(1, 7)
    ]  # fmt: skip
    skipped = task({"text": "text 9"}, answer(2, was_cancelled=True), number=9)
    return [*tasks, task({"text": "text 7"}, number=7), task({"text": "text 12"}, number=12), skipped]


@pytest.mark.filterwarnings("ignore:.*left out. cancelled annotations")
def test_tasks_that_nobody_answered_are_read_if_asked_for(write):
    path = write("a.json", unfinished())
    some, every = (Annotations.read(path, platform="label-studio", all_tasks=flag) for flag in (False, True))
    assert some.tasks.tolist() == [1, 2, 3, 4, 5, 6]
    assert every.tasks.tolist() == [1, 2, 3, 4, 5, 6, 7, 9, 12]
    assert every.redundancy.tolist() == [3] * 6 + [0] * 3
    assert every.to_frame().equals(some.to_frame())


@pytest.mark.filterwarnings("ignore:.*left out. cancelled annotations")
def test_next_and_report_know_the_tasks_of_an_export_that_nobody_answered(write, here, capsys):
    write("a.json", unfinished())
    words = ["a.json", "--platform", "label-studio"]
    assert cli.main(["next", *words, "--budget", "3", "--out", "batch.csv"]) == 0
    assert {row["task"] for row in read_csv(here / "batch.csv")} == {"7", "9", "12"}
    assert cli.main(["report", *words, "--method", "majority-vote", "--out", "page.html"]) == 0
    assert json.loads((here / "page.json").read_text())["summary"]["tasks_without_annotations"] == 3
    capsys.readouterr()
