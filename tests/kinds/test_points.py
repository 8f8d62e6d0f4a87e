"""Points through the commands: quality, the report and its picture, next, compare and gold, on a simulated crowd."""

import base64
import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from point_crowds import image_of, simulated

from crowdzoo.commands.main import main
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.kinds import kind_of
from crowdzoo.kinds.regions.masks import class_names
from crowdzoo.tables import Annotations

pytest.importorskip("pycocotools")
REGION = ("--kind", "region")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table of points, and one of the true ones."""
    folder = tmp_path_factory.mktemp("points")
    crowd, truth = simulated(num_images=24)
    crowd.to_frame().to_csv(folder / "crowd.csv", index=False)
    with (folder / "gold.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerows([("task", "gold"), *((task, image_of(*places).text) for task, places in truth.items())])
    return folder


def run(folder, command, *words):
    return main([command, str(folder / "crowd.csv"), *REGION, *words])


@pytest.mark.filterwarnings("default::crowdzoo.aggregation.VotesWarning")  # at 3 pixels
def test_points_are_compared_with_gold_within_the_distance(folder, capsys, tmp_path):
    scores = {}
    for distance in ("3", "30"):
        words = "--gold", str(folder / "gold.csv"), "--distance", distance, "--exclude", "misses,invents,shifted"
        assert run(folder, "aggregate", *words, "--out", str(tmp_path / distance)) == 0
        printed = capsys.readouterr().out
        scores[distance] = {
            name: float(value) for name, value in re.findall(r"^(\S+) against gold +([\d.]+)", printed, re.M)
        }
    assert {"dice", "precision", "recall", "F1", "distance"} <= {*scores["30"]}
    assert scores["30"]["F1"] > 0.9 > 0.6 > scores["3"]["F1"]
    assert scores["3"]["distance"] < 3 < scores["30"]["distance"] < 8


def test_the_report_names_who_misses_invents_and_shifts_points_and_shows_them(folder):
    assert run(folder, "report", "--out", str(folder / "r.html")) == 0
    report = json.loads((folder / "r.json").read_text())
    values = report["tables"]["annotators"]["values"]
    notes = dict(zip(values["annotator"], values["notes"], strict=True))
    assert {who: note for who, note in notes.items() if note} == {
        "misses": ["far"],
        "invents": ["far"],
        "shifted": ["extent"],
    }
    differs = dict(zip(values["annotator"], values["differs"], strict=True))
    assert re.match("misses 4|misses 5", differs["misses"])
    assert re.match("invents [345]", differs["invents"])
    assert re.fullmatch("shifted by [56]. % of the distance of one object", differs["shifted"])  # 17 of 30 pixels
    page = (folder / "r.html").read_text()
    assert report["verdict"][0].startswith("Not usable yet: the points of two answers")
    assert "an F1 of 0.7" in report["verdict"][0]
    assert report["verdict"][0] in page.replace("&#x27;", "'")
    picture = Image.open(io.BytesIO(base64.b64decode(re.search(r"data:image/png;base64,([^\"]+)", page)[1])))
    assert {colour for _, colour in picture.getcolors()} > {(0, 0, 0, 0), (80, 170, 80, 90), (40, 90, 200, 255)}


def test_the_verdict_says_how_near_an_annotator_is_to_the_right_points(folder, tmp_path):
    words = "--exclude", "misses,invents,shifted", "--out", str(tmp_path / "r.html")
    assert run(folder, "report", *words) == 0
    verdict = json.loads((tmp_path / "r.json").read_text())["verdict"][0]
    figure = r"(0\.\d\d)"
    form = (
        rf"Probably usable: the points of two answers to an image have an F1 of {figure} \(1: equal\); those of one "
        rf"annotator and the right points usually {figure}, if annotators err"
    )
    pair, one = map(float, re.match(form, verdict).groups())
    # 95 % of 7 points are seen, and 0.2 are invented: precision 0.97
    assert one == pytest.approx(2 * 0.95 * 0.97 / (0.95 + 0.97), abs=0.03)
    assert pair == pytest.approx(one**2, abs=0.02)


def test_quality_has_the_points_of_who_is_to_be_paid(folder, capsys, tmp_path):
    assert run(folder, "quality", "--out", str(tmp_path / "sheets"), "--format", "csv") == 0
    assert "shifted by" in capsys.readouterr().out
    rows = list(csv.DictReader((tmp_path / "sheets" / "annotators.csv").read_text().splitlines()))
    assert {row["annotator"] for row in rows[:3]} == {"misses", "invents", "shifted"}


def test_next_asks_for_images_whose_points_differ(folder, tmp_path):
    crowd, _ = simulated(num_images=12)
    table = crowd.to_frame()
    mine = (table["task"] == 5) & (table["annotator"] != "ann")
    table.loc[mine, "label"] = [image_of(*place).text for place in np.random.default_rng(0).uniform(0, 600, (5, 3, 2))]
    table.to_csv(tmp_path / "crowd.csv", index=False)
    words = "--new", "dora", "--budget", "4", "--out", str(tmp_path / "next.csv")
    assert run(tmp_path, "next", *words) == 0
    assert next(csv.DictReader((tmp_path / "next.csv").read_text().splitlines()))["task"] == "5"


def test_methods_for_points_are_compared(folder, capsys, tmp_path):
    methods = "objects,objects exists=majority-vote,staple"
    words = "--methods", methods, "--gold", str(folder / "gold.csv"), "--out", str(tmp_path / "out")
    assert run(folder, "compare", *words) == 0
    printed = capsys.readouterr().out
    assert "precision" in printed
    assert "decides pixels" in printed  # staple
    rows = {
        row["method"]: row for row in csv.DictReader((tmp_path / "out" / "comparison.csv").read_text().splitlines())
    }
    crowd = Annotations.read(folder / "crowd.csv", kind="region")
    gold = kind_of("region").reading.gold_of(crowd, folder / "gold.csv")
    expected = kind_of("region").scoring.score(gold, kind_of("region").aggregation.create("objects").fit(crowd).marked)
    assert float(rows["objects"]["score"]) == pytest.approx(expected["dice"])
    for name in ("precision", "recall", "F1"):
        assert float(rows["objects"][name]) == pytest.approx(expected[name])
    assert run(folder, "compare", "--distance", "5", "--out", str(tmp_path / "hidden")) == 0
    assert "Dice coefficient with hidden answers" in capsys.readouterr().out


def test_the_figures_of_distances_are_the_saved_ones():
    root = Path(__file__).parents[2]
    saved = json.loads((root / "benchmarks" / "results" / "regions.json").read_text(encoding="utf-8"))["points"]
    guide = " ".join((root / "docs" / "regions.md").read_text(encoding="utf-8").split())
    runs = saved["dawid-skene"]["runs"]
    default = {number: f"{np.mean([run[str(number)] for run in runs]):.3f}".lstrip("0") for number in (12, 30, 60)}
    assert f"{default[12]} with a distance of 12, {default[30]} with 30 and {default[60]}" in guide


def test_networks_for_masks_do_not_learn_from_points(folder):
    with pytest.raises(DataError, match="points have no pixels, which networks for masks learn"):
        class_names(Annotations.read(folder / "crowd.csv", kind="region"))
    with pytest.raises(ConfigError, match="distance: is not for base"):
        kind_of("region").training.settings(next(iter(kind_of("region").training.bases)), distance=3.0)
