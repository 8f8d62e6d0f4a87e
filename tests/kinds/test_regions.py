"""Regions through their doors: read from COCO, aggregated, compared with gold, reported, refused."""

import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from coco_files import coco_file
from PIL import Image

from crowdzoo import compare
from crowdzoo.aggregation import REGION_METHODS, create
from crowdzoo.commands.main import main
from crowdzoo.data.regions import MarkedImage, Region, dice, mask_of_pixels
from crowdzoo.errors import DataError, DataWarning
from crowdzoo.kinds import kind_of
from crowdzoo.kinds.regions.scoring import surface_distances
from crowdzoo.tables import Annotations

pytest.importorskip("pycocotools")
SIZE = (60, 80)
TRUE = {number: [(1, (5 + number, 10, 20, 30)), (2, (45, 20 + number, 25, 20))] for number in range(12)}


def coco(marked):
    """A file of COCO: {image: [(category, box), ...]}."""
    regions = [{"image_id": number, "category_id": category, "bbox": list(box)}
               for number, of_image in marked.items() for category, box in of_image]  # fmt: skip
    return coco_file({number: f"{number}.jpg" for number in marked}, {1: "cat", 2: "dog"}, regions, SIZE)


def by(who, number, regions):
    """What an annotator makes of regions: two are right, one is too wide, one shifted, one misses and invents."""
    if who == "wide":
        return [(category, (x, y, width * 1.3, height)) for category, (x, y, width, height) in regions]
    if who == "shifted":
        return [(category, (x + 4, y, width, height)) for category, (x, y, width, height) in regions]
    if who == "careless":
        return [*regions[: number % 2], (1, (1, 45, 9, 9))]
    return regions


@pytest.fixture
def folder(tmp_path):
    """One file of COCO an annotator, and gold."""
    place = tmp_path / "coco"
    place.mkdir()
    for who in ("ann", "bob", "wide", "shifted", "careless"):
        marked = {number: by(who, number, regions) for number, regions in TRUE.items()}
        (place / f"{who}.json").write_text(json.dumps(coco(marked)))
    (tmp_path / "gold.json").write_text(json.dumps(coco(TRUE)))
    return tmp_path


NAMED = ("--kind", "region", "--platform", "coco")


@pytest.mark.parametrize("method", REGION_METHODS)
def test_regions_are_aggregated_written_and_compared_with_gold(folder, capsys, method):
    main(["aggregate", f"{folder}/coco", *NAMED, "--method", method, "--gold", f"{folder}/gold.json",
          "--out", f"{folder}/out"])  # fmt: skip
    printed = dict(line.rsplit(maxsplit=1) for line in capsys.readouterr().out.splitlines() if "  " in line)
    rows = {name.strip(): value for name, value in printed.items()}
    assert (rows["regions"], rows["tasks with gold"]) == ("24", "12")
    assert float(rows["dice against gold"]) >= 0.96
    assert float(rows["iou against gold"]) >= 0.92
    found = json.loads((folder / "out" / "regions.json").read_text())
    assert Counter(each["category_id"] for each in found["annotations"]) == {1: 12, 2: 12}
    assert all("segmentation" in each for each in found["annotations"]) == (method != "objects")
    # what is written is read again, as one more annotator
    again = Annotations.read(folder / "out" / "regions.json", kind="region", platform="coco")
    gold = Annotations.read(folder / "gold.json", kind="region", platform="coco")
    ours, theirs = (
        {crowd.tasks[task]: crowd.values[code]
         for task, code in zip(crowd.task_ids, crowd.labels, strict=True)} for crowd in (again, gold)
    )  # fmt: skip
    assert np.mean([dice(ours[task], theirs[task]) for task in theirs]) >= 0.96
    assert main(["aggregate", f"{folder}/coco", *NAMED, "--out", f"{folder}/out", "--force"]) == 0


def test_the_report_says_who_misses_invents_marks_too_wide_or_shifted(folder):
    main(["report", f"{folder}/coco", *NAMED, "--out", f"{folder}/r.html"])
    found = json.loads((folder / "r.json").read_text())
    values = found["tables"]["annotators"]["values"]
    people = {
        who: {name: column[row] for name, column in values.items()} for row, who in enumerate(values["annotator"])
    }
    assert people["wide"]["wider"] == pytest.approx(0.3 / 1.075, abs=0.05)  # of others, of whom one is none too wide
    assert abs(people["bob"]["wider"]) < 0.12
    assert people["shifted"]["shifted"] == max(each["shifted"] for each in people.values()) > 0.1
    assert people["careless"]["misses"] == pytest.approx(18 / 24)
    assert people["careless"]["invents"] == pytest.approx(12 / 18, abs=1e-4)
    assert (people["ann"]["misses"], people["ann"]["invents"]) == (0, 0)
    assert people["ann"]["reliability_low"] <= people["ann"]["reliability"] <= people["ann"]["reliability_high"] <= 1
    assert people["careless"]["reliability"] == min(each["reliability"] for each in people.values())
    assert 0 < found["values"]["iou"] < found["values"]["dice"] < 1
    assert 0 < found["summary"]["krippendorff_alpha"]["value"] < 1
    tasks = found["tables"]["tasks"]
    assert tasks["values"]["regions"] == ["1 cat, 1 dog"] * 12
    assert tasks["values"]["dice"][tasks["shown"][0]] == min(tasks["values"]["dice"])
    assert "data:image/png;base64," in (folder / "r.html").read_text()
    assert main(["report", f"{folder}/coco", *NAMED, "--out", f"{folder}/r2.html", "--fail-if", "dice<0.99"]) != 0


def test_who_saw_an_image_and_marked_nothing_is_told_from_who_never_saw_it(tmp_path):
    one = coco({1: [(1, (1, 1, 5, 5))], 2: [(1, (1, 1, 5, 5))]})
    one["annotations"][0]["annotator"], one["annotations"][1]["annotator"] = "ann", "bob"
    one["images"][0]["annotators"] = ["ann", "cem"]
    (tmp_path / "all.json").write_text(json.dumps(one))
    with pytest.warns(UserWarning, match="all.json: give each image 'annotators': all who saw it"):
        found = Annotations.read(tmp_path / "all.json", kind="region", platform="coco")
    rows = [(found.tasks[task], found.annotators[who], len(found.values[code].regions))
            for task, who, code in zip(found.task_ids, found.annotator_ids, found.labels, strict=True)]  # fmt: skip
    assert sorted(rows) == [("1.jpg", "ann", 1), ("1.jpg", "cem", 0), ("2.jpg", "bob", 1)]


def test_shapes_of_coco_are_read(write):
    square = np.zeros(SIZE, bool)
    square[10:20, 5:25] = True
    shapes = [
        {"segmentation": [[5, 10, 25, 10, 25, 20, 5, 20]]},
        {"segmentation": {"size": list(SIZE), "counts": mask_of_pixels(square)}},
        {"segmentation": {"size": list(SIZE), "counts": [5 * 60 + 10, *[10, 50] * 19, 10, 60 * 80 - 24 * 60 - 20]}},
        {"segmentation": [], "bbox": [5, 10, 20, 10]},
    ]
    file = coco({number: [(1, (0, 0, 1, 1))] for number in range(4)})
    for annotation, shape in zip(file["annotations"], shapes, strict=True):
        annotation |= shape
    found = Annotations.read(write("ann.json", file), kind="region", platform="coco", image=True)
    assert found.tasks.tolist() == [0, 1, 2, 3]  # named after the files of the images
    images = [found.values[code] for code in found.labels]
    assert [dice(images[1], image) for image in images] == [1] * 4


BAD = {
    "bbox [70, 20, 25, 20] lies outside of the image, 80 x 60 pixels": {"bbox": [70, 20, 25, 20]},
    "has a polygon of fewer than three points": {"segmentation": [[1, 2, 3, 4]]},
    "has a number that is not finite": {"bbox": [float("nan"), 2, 3, 4]},
    "sum to 6 pixels, but the image has 60 x 80 = 4,800": {"segmentation": {"size": list(SIZE), "counts": [1, 5]}},
    "is of size [80, 60], and the image [60, 80]": {"segmentation": {"size": [80, 60], "counts": [1, 4799]}},
}


@pytest.mark.parametrize("words", BAD)
def test_bad_geometry_is_named_and_can_be_left_out(folder, capsys, refusal_of, words):
    place = folder / "coco" / "wide.json"
    file = json.loads(place.read_text())
    next(each for each in file["annotations"] if (each["image_id"], each["category_id"]) == (2, 2)).update(BAD[words])
    place.write_text(json.dumps(file))
    command = ["aggregate", f"{folder}/coco", *NAMED, "--out", f"{folder}/out"]
    told = refusal_of(*command, code=3)
    for part in (words, "wide.json", "row 3", "of annotator 'wide'", "region 2 (dog)", "--on-bad-rows reject"):
        assert part in told
    assert main([*command, "--on-bad-rows", "reject", "--rejects", f"{folder}/bad.csv"]) == 0
    assert "rows left out" in capsys.readouterr().out
    assert "wide" in (folder / "bad.csv").read_text().splitlines()[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [(["train", "instances.csv", "--kind", "region", "--out", "m.keras"], "instances.csv"),
     (["aggregate", "--kind", "region", "--low", "0", "--out", "out"], "--low 0"),
     (["quality", "--kind", "region", "--models", "ann"], "--models does not go with --kind region")],
)  # fmt: skip
def test_what_is_not_for_regions_is_refused(tmp_path, capsys, words, message):
    text = MarkedImage(4, 4).text.replace('"', '""')
    (tmp_path / "a.csv").write_text(f'task,annotator,label\n1,ann,"{text}"\n1,bob,"{text}"\n')
    command, *rest = words
    rest = [f"{tmp_path}/{word}" if word in ("instances.csv", "m.keras", "out") else word for word in rest]
    assert main([command, f"{tmp_path}/a.csv", *rest]) != 0
    assert message in capsys.readouterr().err


def test_images_on_which_nobody_marks_anything_are_reported(tmp_path):
    text = MarkedImage(4, 4).text.replace('"', '""')
    (tmp_path / "a.csv").write_text(f'task,annotator,label\n1,ann,"{text}"\n1,bob,"{text}"\n2,ann,"{text}"\n')
    assert main(["report", f"{tmp_path}/a.csv", "--kind", "region", "--out", f"{tmp_path}/r.html"]) == 0
    found = json.loads((tmp_path / "r.json").read_text())
    assert found["tables"]["tasks"]["values"]["regions"] == ["nothing", "nothing"]
    assert found["values"]["dice"] == 1


# === Gold ===


def aggregated(folder, *words, crowd="coco", named=NAMED):
    out = folder / "out"
    command = ["aggregate", str(folder / crowd), *named, "--method", "majority-vote", "--out", str(out), "--force"]
    return main([*command, "--gold", *map(str, words)])


@pytest.mark.filterwarnings("default::UserWarning")
def test_bad_gold_is_left_out_by_the_option_that_its_message_names(folder, capsys):
    gold = coco(TRUE)
    gold["annotations"][0]["bbox"] = [70, 20, 25, 20]
    (folder / "gold.json").write_text(json.dumps(gold))
    assert aggregated(folder, folder / "gold.json") == DataError.exit_code
    assert "--on-bad-rows reject" in capsys.readouterr().err
    assert aggregated(folder, folder / "gold.json", "--on-bad-rows", "reject") == 0
    told = capsys.readouterr()
    assert re.search("tasks with gold +11", told.out)
    assert "gold.json, row 1" in told.err


def png_folder(place, suffix=".png", names=("a", "b", "c")):
    """Masks of two annotators, who agree on each image but the last."""
    image = pytest.importorskip("PIL.Image")
    for who in ("ann", "bob"):
        (place / who).mkdir(parents=True)
        for number, name in enumerate(names):
            pixels = np.zeros(SIZE, np.uint8)
            pixels[10:20, 5 : 25 + 20 * (who == "bob" and number == len(names) - 1)] = 1
            image.fromarray(pixels).save(place / who / f"{name}{suffix}")
    return place


def gold_of_masks(names):
    square = np.zeros(SIZE, bool)
    square[10:20, 5:25] = True
    file = coco({number: [(1, (0, 0, 1, 1))] for number, _ in enumerate(names)})
    for image, name in zip(file["images"], names, strict=True):
        image["file_name"] = name
    for annotation in file["annotations"]:
        annotation["segmentation"] = {"size": list(SIZE), "counts": mask_of_pixels(square)}
    return file | {"categories": [{"id": 1, "name": "1"}, {"id": 2, "name": "2"}]}


PNG = ("--kind", "region", "--platform", "png-masks")


@pytest.mark.filterwarnings("default::UserWarning")
def test_gold_is_found_by_the_names_of_images_without_their_endings(tmp_path, capsys):
    png_folder(tmp_path / "masks")
    (tmp_path / "gold.json").write_text(json.dumps(gold_of_masks(["x/a.jpg", "b.tif", "c"])))
    assert aggregated(tmp_path, tmp_path / "gold.json", crowd="masks", named=PNG) == 0
    told = capsys.readouterr()
    assert re.search("tasks with gold +3", told.out)
    assert "names without folder or ending: 'x/a.jpg' is 'a'" in told.err
    (tmp_path / "gold.json").write_text(json.dumps(gold_of_masks(["a.jpg", "a.tif"])))
    assert aggregated(tmp_path, tmp_path / "gold.json", crowd="masks", named=PNG) == DataError.exit_code
    assert "['a.jpg', 'a.tif', 'a'] may be one image" in capsys.readouterr().err


def test_values_of_masks_get_the_names_of_gold(tmp_path, capsys):
    png_folder(tmp_path / "masks")
    gold = gold_of_masks("abc") | {"categories": [{"id": 1, "name": "cat"}]}
    (tmp_path / "gold.json").write_text(json.dumps(gold))
    assert aggregated(tmp_path, tmp_path / "gold.json", crowd="masks", named=PNG) == DataError.exit_code
    assert "name them alike, such as --rename cat=1" in capsys.readouterr().err
    for number, names in enumerate(("cat=1", "1=cat")):  # of gold, and of the answers
        place = tmp_path / str(number)
        words = ["aggregate", str(tmp_path / "masks"), *PNG, "--gold", str(tmp_path / "gold.json"), "--rename", names]
        assert main([*words, "--out", str(place)]) == 0
        assert re.search("tasks with gold +3", capsys.readouterr().out)


@pytest.mark.filterwarnings("default::UserWarning")
def test_gold_may_be_masks_and_tables_as_well(tmp_path, capsys):
    png_folder(tmp_path / "masks")
    assert aggregated(tmp_path, tmp_path / "masks" / "ann", crowd="masks", named=PNG) == 0
    assert re.search(r"tasks with gold +3\n.*dice against gold +0.8889", capsys.readouterr().out)  # 1, 1, 2/3: ties
    assert main(["convert", str(tmp_path / "masks" / "ann"), *PNG, "--out", str(tmp_path / "csv")]) != 0
    (tmp_path / "masks" / "ann" / "a.png").write_bytes(b"no image")
    (tmp_path / "masks" / "bob" / "a.png").unlink()
    table = tmp_path / "gold.csv"
    text = MarkedImage(*SIZE, (Region("1", (5, 10, 20, 10)),)).text.replace('"', '""')
    table.write_text(f'task,gold\nb,"{text}"\n')
    words = "--on-bad-rows", "reject"
    assert aggregated(tmp_path, table, *words, crowd="masks", named=PNG) == 0
    assert re.search(r"tasks with gold +1\n.*dice against gold +1.0000", capsys.readouterr().out)
    assert aggregated(tmp_path, tmp_path / "masks" / "ann", *words, crowd="masks", named=PNG) == 0
    assert re.search("tasks with gold +2", capsys.readouterr().out)
    table.write_text("task,gold\nb,cat\n")
    assert aggregated(tmp_path, table, *words, crowd="masks", named=PNG) == DataError.exit_code
    assert "gold.csv: image 'b': 'cat' holds no regions" in capsys.readouterr().err


def two_discs(seed):
    y, x = np.mgrid[: SIZE[0], : SIZE[1]]
    circles = np.random.default_rng(seed).integers((20, 30, 5), (40, 50, 18), (2, 3))
    masks = [(y - top) ** 2 + (x - left) ** 2 < radius**2 for top, left, radius in circles]
    return masks, surface_distances(*(MarkedImage(*SIZE, (Region("cat", mask_of_pixels(mask)),)) for mask in masks))


def of_distances(sides):
    return np.concatenate(sides).mean(), max(np.percentile(each, 95) for each in sides)


@pytest.mark.parametrize("seed", range(3))
def test_distances_of_edges_are_those_of_all_pairs_of_pixels(seed):
    masks, found = two_discs(seed)
    edges = []
    for mask in masks:
        wide = np.pad(mask, 1)
        inner = wide[:-2, 1:-1] & wide[2:, 1:-1] & wide[1:-1, :-2] & wide[1:-1, 2:]
        edges.append(np.argwhere(mask & ~inner))
    apart = np.linalg.norm(edges[0][:, None] - edges[1][None], axis=2)
    assert found["cat"] == pytest.approx(of_distances([apart.min(axis=1), apart.min(axis=0)]), abs=1e-12)


def test_distances_are_of_the_classes_that_both_have(folder):
    shifted = [MarkedImage(*SIZE, (Region("cat", (10.0 + by, 10.0, 20.0, 30.0)),)) for by in (0, 3)]
    alone = MarkedImage(*SIZE, (Region("dog", (10.0, 10.0, 20.0, 30.0)),))
    truth = np.array([shifted[0], alone], object)
    found = kind_of("region").scoring.score(truth, np.array([shifted[1], shifted[0]], object))
    assert 0 < found["surface distance"] < found["Hausdorff 95"] == 3
    assert {*kind_of("region").scoring.score(truth[1:], truth[:1])} == {"dice", "iou"}


# === Wrong answers ===


def test_a_region_that_is_there_twice_counts_once(folder, capsys):
    place = folder / "coco" / "bob.json"
    before = Annotations.read(folder / "coco", kind="region", platform="coco")
    file = json.loads(place.read_text())
    file["annotations"] += [each for each in file["annotations"] if each["image_id"] in (2, 5)]
    place.write_text(json.dumps(file))
    crowd = Annotations.read(folder / "coco", kind="region", platform="coco")
    for method in REGION_METHODS:
        expected = create(method, kind="region").fit(before)
        with pytest.warns(DataWarning, match=r"4 regions occur twice.*image '2.jpg' by .*'bob', image"):
            found = create(method, kind="region").fit(crowd)
        assert found.marked.tolist() == expected.marked.tolist()


def test_a_class_may_be_called_nothing(folder):
    for path in (folder / "coco").iterdir():
        path.write_text(path.read_text().replace('"cat"', '"(nothing)"'))
    found = create("objects", kind="region").fit(Annotations.read(folder / "coco", kind="region", platform="coco"))
    assert [sorted(region.label for region in image.regions) for image in found.marked] == [["(nothing)", "dog"]] * 12


# === next, compare ===


def test_next_asks_for_images_on_which_annotators_differ_or_are_few(folder, capsys):
    """Image 4 has one answer, on image 7 they lie apart; careless, who is far from others, is asked last."""
    for path in (folder / "coco").iterdir():
        file = json.loads(path.read_text())
        if path.stem != "ann":
            file["images"] = [each for each in file["images"] if each["id"] != 4]
            file["annotations"] = [each for each in file["annotations"] if each["image_id"] != 4]
        for each in file["annotations"]:
            if each["image_id"] == 7:
                each["bbox"][0] = 2.0 + 8 * len(path.stem)
                each["bbox"][2] = 6.0
        path.write_text(json.dumps(file))
    words = ["next", str(folder / "coco"), *NAMED, "--new", "dora", "--out", str(folder / "n.csv")]
    assert main(words) == 0
    assert "as a Dice coefficient" in capsys.readouterr().out
    rows = [line.split(",") for line in (folder / "n.csv").read_text().splitlines()[1:]]
    assert {task for task, *_ in rows[:2]} == {"4.jpg", "7.jpg"}
    assert rows[[task for task, *_ in rows].index("4.jpg")][1] != "careless"
    gains = [float(gain) for *_, gain, _ in rows]
    assert gains == sorted(gains, reverse=True)
    assert gains[-1] > 0
    assert (
        main([*words, "--sure", ".5", "--force"]) == 0
    )  # where two answers have this Dice coefficient, it is not asked
    near = [line.split(",")[0] for line in (folder / "n.csv").read_text().splitlines()[1:]]
    assert {"4.jpg", "7.jpg"} <= {*near} < {task for task, *_ in rows}
    for number in range(13):
        Image.new("RGB", SIZE[::-1]).save(folder / f"{number}.png")
    assert main([*words[:2], str(folder), *words[2:], "--force"]) == 0  # tasks are named as their images
    assert "\n12," in (folder / "n.csv").read_text()  # which nobody annotated


@pytest.mark.parametrize("gold", [True, False])
@pytest.mark.filterwarnings("default::UserWarning")
def test_methods_for_regions_are_compared(folder, capsys, gold):
    true = {number: TRUE[number % 12] for number in range(24)}
    for path in (folder / "coco").iterdir():
        path.write_text(json.dumps(coco({number: by(path.stem, number, regions) for number, regions in true.items()})))
    file = coco(true)
    file["annotations"][-1]["bbox"][0] = 99  # which --on-bad-rows reject leaves out
    (folder / "gold.json").write_text(json.dumps(file))
    words = ["compare", str(folder / "coco"), *NAMED, "--methods", "staple,objects exists=majority-vote"]
    words += ["--out", str(folder / "compared"), "--on-bad-rows", "reject"]
    words += ["--gold", str(folder / "gold.json")] if gold else []
    assert main(words) == 0
    printed = capsys.readouterr().out
    rows = dict(re.findall(r"^(majority-vote|staple|objects exists=majority-vote) +([01]\.\d+)", printed, re.MULTILINE))
    assert len(rows) == 3
    if not gold:
        assert "Dice coefficient with hidden answers" in printed
        return
    crowd = Annotations.read(folder / "coco", kind="region", platform="coco")
    true = kind_of("region").reading.gold_of(crowd, folder / "gold.json", on_bad_rows="reject")
    known = true.astype(bool)
    assert known.sum() == 23
    for name, score in rows.items():
        method, *settings = name.split()
        made = create(method, kind="region", **dict(each.split("=") for each in settings))
        expected = kind_of("region").scoring.score(true[known], made.fit(crowd).marked[known])
        assert float(score) == pytest.approx(expected["dice"], abs=1e-3)
        assert f"{expected['iou']:.3f}" in printed
    for other in (MarkedImage(4, 4), MarkedImage(4, 4).text):
        with pytest.raises(DataError, match="cannot be compared"):
            compare(crowd, gold=np.array([other] * 24, object))


def changed_gold(change):
    gold = coco(TRUE)
    change(gold)
    return gold


@pytest.mark.filterwarnings("ignore:.*who saw it")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda gold: gold["images"][3].update(height=70), "image '3.jpg' is of size .70, 80. there, and .60, 80."),
        (
            lambda gold: [each.update(name=each["name"].upper()) for each in gold["categories"]],
            "name them alike, such as --rename CAT=cat",
        ),
        (
            lambda gold: [each.update(annotator="ab"[place % 2]) for place, each in enumerate(gold["annotations"])],
            "has the regions of 2 annotators",
        ),
    ],
)
def test_gold_that_cannot_be_compared_is_refused(folder, refusal_of, change, message):
    (folder / "gold.json").write_text(json.dumps(changed_gold(change)))
    words = [*NAMED, "--gold", str(folder / "gold.json"), "--out", str(folder / "out")]
    assert re.search(message, refusal_of("aggregate", str(folder / "coco"), *words, code=3))


def test_an_annotator_who_marks_one_class_only_does_not_make_gold_of_another_class_wrong(folder):
    gold = {3: [region for region in TRUE[3] if region[0] == 2]}
    others = {**TRUE, 3: [region for region in TRUE[3] if region[0] == 1]}
    (folder / "coco" / "zoe.json").write_text(json.dumps(coco(others)))
    crowd = Annotations.read(folder / "coco", kind="region", platform="coco")
    (folder / "gold.json").write_text(json.dumps(coco(gold)))
    assert kind_of("region").reading.gold_of(crowd, folder / "gold.json").astype(bool).sum() == 1
    (folder / "gold.json").write_text(json.dumps(changed_gold(lambda gold: gold["images"][3].update(height=70))))
    with pytest.warns(DataWarning, match=r"left out of gold: 1, such as image '3\.jpg'"):
        known = kind_of("region").reading.gold_of(crowd, folder / "gold.json", on_bad_rows="reject")
    assert dict(zip(crowd.tasks.tolist(), known, strict=True))["3.jpg"] is None
    higher = changed_gold(lambda gold: [image.update(height=70) for image in gold["images"]])
    (folder / "gold.json").write_text(json.dumps(higher))
    with pytest.raises(DataError, match=r"that annotators saw: image '0\.jpg' is of size"):
        kind_of("region").reading.gold_of(crowd, folder / "gold.json", on_bad_rows="reject")


def test_an_earlier_report_of_regions_is_compared_with_and_who_is_far_from_others_is_named(folder, capsys):
    stray = {number: [(1, (1 + number, 1, 5, 5))] for number in TRUE}
    (folder / "coco" / "stray.json").write_text(json.dumps(coco(stray)))
    first, second = folder / "first.html", folder / "second.html"
    assert main(["report", str(folder / "coco"), *NAMED, "--out", str(first)]) == 0
    words = ["--exclude", "careless", "--before", str(folder / "first.json"), "--out", str(second)]
    assert main(["report", str(folder / "coco"), *NAMED, *words]) == 0
    report = json.loads((folder / "second.json").read_text())
    notes = report["tables"]["annotators"]["values"]
    noted = {who for who, each in zip(notes["annotator"], notes["notes"], strict=True) if {"apart", "random"} & {*each}}
    assert noted == {"stray"}


def test_regions_without_category_or_annotator_do_not_become_empty_images_or_somebody_else(tmp_path):
    file = coco(TRUE)
    file["annotations"][0]["category_id"] = 99
    (tmp_path / "ann.json").write_text(json.dumps(file))
    how = {"kind": "region", "platform": "coco", "on_bad_rows": "reject"}
    with pytest.warns(UserWarning, match="left out|rejected"):
        read = Annotations.read(tmp_path / "ann.json", **how)
    assert "0.jpg" not in set(read.tasks[read.task_ids])
    assert len(read) == len(TRUE) - 1
    for each in file["annotations"]:
        each["annotator"] = "bob"
    for each in file["images"]:
        each["annotators"] = ["bob"]
    file["annotations"][0]["category_id"] = 1
    del file["annotations"][0]["annotator"]
    (tmp_path / "ann.json").write_text(json.dumps(file))
    with pytest.raises(DataError, match=r"annotations\.annotator"):
        Annotations.read(tmp_path / "ann.json", **{**how, "on_bad_rows": "error"})


def test_the_guide_runs_and_its_figures_are_the_saved_ones():
    root = Path(__file__).parents[2]
    guide, names = (root / "docs" / "regions.md").read_text(encoding="utf-8"), {}
    for block in re.findall(r"```python\n(.*?)```", guide, flags=re.S):
        exec(compile(block, "regions.md", "exec"), names)
    assert names["found"].marked[0].regions == (Region("cat", (11, 10, 30, 20), 0.75),)
    saved = json.loads((root / "benchmarks" / "results" / "regions.json").read_text(encoding="utf-8"))
    text = " ".join(guide.split())
    for method, row in saved["objects"].items():
        assert f"{np.mean([run['F1'] for run in row['runs']]):.3f}".lstrip("0") + f" with `{method}`" in text
