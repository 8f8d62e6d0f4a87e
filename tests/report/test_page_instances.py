"""What the page of a report shows of instances."""

import base64
import io
import json
import re

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.aggregation import MatchedObjects
from crowdzoo.data import MarkedImage
from crowdzoo.instances import IMAGES, TABLES, TEXTS, VECTORS, Instances
from crowdzoo.report import report_page
from crowdzoo.report.page_instances import instance_views

TASKS = np.arange(3)


def test_an_image_becomes_a_small_jpeg(tmp_path):
    image = pytest.importorskip("PIL.Image")
    picture = image.new("RGBA", (600, 300), (255, 0, 0, 255))
    picture.paste((0, 0, 0, 0), (300, 0, 600, 300))  # the right half is transparent
    picture.save(tmp_path / "a.png")
    paths = np.empty(3, object)
    paths[:] = tmp_path / "a.png"
    (view,) = instance_views(Instances(TASKS, IMAGES, paths), [1], 100_000)
    start, content = view["image"].split(",")
    assert start == "data:image/jpeg;base64"
    with image.open(io.BytesIO(base64.b64decode(content))) as small:
        assert small.size == (144, 72)
        assert small.getpixel((20, 36))[0] > 240
        assert min(small.getpixel((120, 36))) > 240  # white


def test_a_text_is_cut_and_a_row_shows_its_columns():
    texts = np.array(["a" * 1000, "b", "c"], object)
    views = instance_views(Instances(TASKS, TEXTS, texts), [0, 2], 100_000)
    assert views == [{"text": "a" * 599 + "…"}, {"text": "c"}]
    vectors = np.arange(60, dtype=np.float32).reshape(3, 20)
    (view,) = instance_views(Instances(TASKS, VECTORS, vectors), [1], 100_000)
    assert view["row"][:2] == [["0", "20"], ["1", "21"]]
    assert view["row"][-1] == ["…", "4 more"]
    columns = {"city": np.array(["Ulm", "", "x"], object), "size": np.array([1.5, np.nan, 2]), "v": vectors}
    (view,) = instance_views(Instances(TASKS, TABLES, columns), [0], 100_000)
    assert view["row"] == [["city", "Ulm"], ["size", "1.5"], ["v", "0, 1, 2, 3, 4, 5, 6, 7, …"]]


def test_outlines_of_regions_lie_on_the_photograph(tmp_path):
    image = pytest.importorskip("PIL.Image")
    pytest.importorskip("pycocotools")
    image.new("RGB", (40, 30), (255, 0, 0)).save(tmp_path / "a.png")
    paths = np.array([tmp_path / "a.png"], object)
    box = MarkedImage.of((30, 40), [{"category": "cat", "bbox": [5, 5, 20, 10]}])
    annotations = Annotations.from_arrays(["a", "a"], ["ann", "bob"], [box, box], kind="region")
    instances = Instances(np.array(["a"]), IMAGES, paths)
    page = report_page(annotations, MatchedObjects().fit(annotations), bootstrap=0, instances=instances)
    (detail,) = json.loads(re.search('id="data">(.*?)</script>', page.to_html())[1])["tables"]["tasks"]["details"]
    assert {key: address.split(";")[0] for key, address in detail["instance"].items()} == {
        "marks": "data:image/png",
        "image": "data:image/jpeg",
    }
