"""PNG masks: read, their parts told apart, and what may be wrong with them said."""

import json

import numpy as np
import pytest
from PIL import Image

from crowdzoo.aggregation import create
from crowdzoo.aggregation.base import VotesWarning
from crowdzoo.commands.main import main
from crowdzoo.data.regions import MarkedImage, mask_tools
from crowdzoo.errors import DataError, DataWarning
from crowdzoo.kinds import kind_of
from crowdzoo.reading.platforms import png_masks
from crowdzoo.tables import Annotations

pytest.importorskip("pycocotools")
PNG = ("--kind", "region", "--platform", "png-masks")


def masks(folder, **people):
    """A folder of PNG masks; for each annotator the pixels of image `a`."""
    image = pytest.importorskip("PIL.Image")
    for who, pixels in people.items():
        (folder / who).mkdir(parents=True)
        image.fromarray(np.asarray(pixels, np.uint8)).save(folder / who / "a.png")
    return folder


def test_png_masks_are_read_and_aggregated(tmp_path, capsys):
    ann, bob = np.zeros((2, 20, 30), np.uint8)
    ann[2:12, 3:13], ann[14:18, 20:28] = 1, 7
    bob[2:12, 4:14] = 1
    place = masks(tmp_path / "masks", ann=ann, bob=bob, cem=np.zeros((20, 30)))
    assert main(["aggregate", str(place), *PNG, "--method", "majority-vote", "--out", f"{tmp_path}/out"]) == 0
    found = json.loads((tmp_path / "out" / "regions.json").read_text())
    assert [each["area"] for each in found["annotations"]] == [90]  # two of three
    assert [each["name"] for each in found["categories"]] == ["1", "7"]
    crowd = kind_of("region").reading.read(place, platform="png-masks")
    assert sorted(len(image.regions) for image in crowd.values) == [0, 1, 2]
    assert main(["convert", str(place), *PNG, "--out", f"{tmp_path}/csv"]) == 0
    capsys.readouterr()
    again = kind_of("region").reading.read(tmp_path / "csv" / "annotations.csv")
    assert again == crowd


def test_parts_of_a_mask_are_regions_unless_they_are_specks_or_hundreds(tmp_path):
    """Where who misses one of two objects has a smaller region, nobody can tell misses from narrow edges."""
    ann = np.zeros((80, 80), np.uint8)
    ann[2:5, 3:9], ann[5, 9], ann[20:60, 20:40], ann[70, 70] = 1, 1, 1, 1  # a corner touches
    bob = np.indices((80, 80)).sum(axis=0) % 3 == 0
    bob[:, ::2] = False
    place = masks(tmp_path / "masks", ann=ann, bob=bob)
    with pytest.warns(UserWarning, match="specks of 4 pixels or fewer: 1|in more than 500 parts"):
        found = kind_of("region").reading.read(place, platform="png-masks").values
    assert sorted(sorted(mask_tools().area(image.masks).tolist()) for image in found) == [[19, 800], [bob.sum()]]


def test_masks_that_cannot_be_read_are_named(tmp_path, write):
    with pytest.raises(DataError, match="is in no folder of its annotator"):
        kind_of("region").reading.read(write("alone.png", b"no image"), platform="png-masks")
    place = masks(tmp_path / "masks", ann=np.zeros((4, 4)), bob=np.zeros((4, 4, 3)))
    with pytest.raises(DataError, match="by bob has colours"):
        kind_of("region").reading.read(place, platform="png-masks")
    sizes = masks(tmp_path / "sizes", ann=np.zeros((4, 4)), bob=np.zeros((4, 5)))
    with pytest.raises(DataError, match="annotator 'bob': has 4 x 5 pixels, 4 x 4 by 'ann'"):
        kind_of("region").reading.read(sizes, platform="png-masks")
    (place / "bob" / "a.png").write_bytes(b"no image")
    with pytest.raises(DataError, match="by bob is not a valid image"):
        kind_of("region").reading.read(place, platform="png-masks")
    with pytest.raises(DataError, match=r"answered with classes.* with kind='region'"):
        Annotations.read(place, platform="png-masks")


def test_what_may_be_missing_from_masks_or_doubled_in_them_is_warned_of(tmp_path):
    ann = np.zeros((20, 30), np.uint8)
    ann[2:12, 3:13] = 1
    place = masks(tmp_path / "masks", ann=ann, bob=ann, cem=ann)
    for who, ending in (("ann", "tif"), ("bob", "png"), ("cem", "png")):
        Image.fromarray(ann).save(place / who / f"b.{ending}")
    (place / "ann" / "sub").mkdir()
    (place / "ann" / "a.png").rename(place / "ann" / "sub" / "a.png")
    with pytest.warns(UserWarning, match="left out: images that are no .png: 1"):
        crowd = kind_of("region").reading.read(place, platform="png-masks")
    with pytest.warns(DataWarning, match="1 of 3 images have one answer, such as 'sub/a'."):
        create("majority-vote", kind="region").fit(crowd)
    apart = [[f"{who}{number}" for who in "xy" for number in range(2)], list("xxyy"), [crowd.values[0]] * 4]
    with pytest.warns(DataWarning, match="4 of 4 images have one answer"):
        create("majority-vote", kind="region").fit(Annotations.from_arrays(*apart, kind="region"))
    (place / "ann" / "b.tif").unlink()
    Image.fromarray(np.arange(600, dtype=np.uint8).reshape(20, 30)).save(place / "cem" / "a.png")
    with pytest.warns(DataWarning, match="a mask has more than 50 values"):
        kind_of("region").reading.read(place, platform="png-masks")


def test_who_misses_real_objects_makes_no_note_of_nothing(tmp_path):
    marks = {who: np.zeros((20, 30), np.uint8) for who in ("ann", "bob", "cem")}
    for who, pixels in marks.items():
        pixels[2:8, 3:9], pixels[12:18, 20:28] = 1, who != "cem"
    crowd = kind_of("region").reading.read(masks(tmp_path / "masks", **marks), platform="png-masks")
    found = create("objects", kind="region").fit(crowd)
    assert found.notes == ()
    assert len(found.marked[0].regions) == 2
    texts = np.repeat([MarkedImage.of((9, 9), [{"category": c, "bbox": [1, 1, 4, 4]}]).text for c in "xyy"], 20)
    columns = [*range(20)] * 3, [who for who in "abc" for _ in range(20)], texts.tolist()
    outvoted = create("objects", kind="region", exists="majority-vote")
    with pytest.warns(VotesWarning, match="'x' is that of no object, although 33.3% of the regions"):
        outvoted.fit(Annotations.from_arrays(*columns, kind="region"))


def test_a_report_does_not_doubt_regions_of_which_all_mark_the_same_objects(tmp_path):
    ann = np.zeros((20, 30))
    ann[2:12, 3:13] = 1
    place = masks(tmp_path / "masks", ann=ann, bob=np.roll(ann, 1), cem=ann)
    assert main(["report", str(place), *PNG, "--out", f"{tmp_path}/page.html"]) == 0
    report = json.loads((tmp_path / "page.json").read_text())
    assert report["verdict"][0].startswith("Not known whether usable: the regions of two answers")
    for part in ("have a Dice coefficient of 0.93", "but too few images have two answers"):
        assert part in report["verdict"][0]
    assert report["verdict"][-1] == "100 % of those who saw an object's image marked it."
    assert report["warnings"] == []
    place = masks(tmp_path / "empty", ann=ann * 0, bob=ann * 0)
    assert main(["report", str(place), *PNG, "--out", f"{tmp_path}/empty.html"]) == 0
    assert "nobody marked one" in json.loads((tmp_path / "empty.json").read_text())["warnings"][0]["finding"]


def test_masks_of_too_many_values_or_pixels_are_refused_at_once(tmp_path, monkeypatch):
    place = masks(tmp_path / "masks", ann=np.zeros((9, 9)), bob=np.zeros((9, 9))) / "ann" / "a.png"

    def refused(image, message):
        image.save(place)
        with pytest.raises(DataError, match=message):
            kind_of("region").reading.read(tmp_path / "masks", platform="png-masks")

    every = np.arange(1 << 16, dtype=np.uint16).reshape(256, 256)
    refused(Image.fromarray(every), "by ann has 65,535 values, each a class, in 65,536 pixels")
    refused(Image.new("L", (8000, 6500), 1), "more than 50 megapixels")
    monkeypatch.setattr(png_masks, "MOST_WORK", 1000)
    refused(Image.fromarray(every[:1, :100].astype(np.uint8)), "has 99 values, each a class, in 100 pixels")
