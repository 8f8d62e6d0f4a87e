"""A folder of photographs and a CSV file of labels, through the commands and the pipeline to a served model."""

import io
import json

import numpy as np
import pytest
from csv_files import write_csv

pytest.importorskip("PIL")
pytest.importorskip("tfx")

from PIL import Image

from crowdzoo.commands.main import main
from crowdzoo.files.version_folders import newest_version

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default::UserWarning")]


@pytest.fixture(scope="module")
def road(tmp_path_factory):
    """Dark and bright pictures in four formats, and three annotators who are right for most."""
    folder = tmp_path_factory.mktemp("road")
    (folder / "photos").mkdir()
    rng, rows = np.random.default_rng(0), []
    for number in range(60):
        bright = number % 2
        pixels = (rng.normal(size=(20, 28, 3)) * 20 + 60 + 120 * bright).clip(0, 255).astype("uint8")
        Image.fromarray(pixels).save(folder / "photos" / f"p{number}.{['jpg', 'png', 'gif', 'bmp'][number % 4]}")
        for annotator in range(3):
            said = bright if rng.random() < 0.85 else 1 - bright
            rows.append((f"p{number}", f"a{annotator}", ("dark", "bright")[said]))
    write_csv(folder / "answers.csv", ("task", "annotator", "label"), *rows)
    return folder


@pytest.fixture
def run(road, monkeypatch, capsys):
    def call(line):
        monkeypatch.chdir(road)
        status = main([word.replace("~", " ") for word in line.split()])
        found = capsys.readouterr()
        assert not status, found.err
        return found

    return call


SMALL = "--height 16 --width 16 --epochs 15 --dropout 0 --no-augment"


def is_right(lines):
    rows = [line.split(",") for line in lines.splitlines()[1:]]
    return np.mean([(name == "bright") == bool(int(task[1:]) % 2) for task, name, *_ in rows])


@pytest.mark.parametrize("method", ["crowdsourced-layer", "majority-vote"])
def test_a_folder_of_photographs_is_learned_exported_and_predicted(road, run, method):
    run(f"train answers.csv photos --out {method}.keras --method {method} {SMALL}")
    run(f"export {method}.keras served-{method} --warmup photos")
    found = run(f"predict served-{method} photos")
    assert is_right(found.out) > 0.75
    assert "sent changed: 15 GIF, now PNG; 15 BMP, now PNG" in found.err


def test_a_backbone_of_a_file_is_frozen_below_the_new_layers(road, run):
    import keras

    import crowdzoo

    pixels = keras.Input((None, None, 3))
    keras.Model(pixels, keras.layers.Conv2D(4, 3, name="mine")(pixels)).save(road / "backbone.keras")
    run(f"train answers.csv photos --out own.keras {SMALL} --backbone backbone.keras --pixel-scale 0~to~1")
    kept = crowdzoo.load_model(road / "own.keras").base.backbone.get_layer("mine").get_weights()[0]
    given = crowdzoo.load_model(road / "backbone.keras").get_layer("mine").get_weights()[0]
    np.testing.assert_array_equal(kept, given)


def test_the_pipeline_takes_a_folder_and_its_cache_follows_the_images(road, run):
    (road / "run.yaml").write_text(
        "name: road\ndata: {annotations: answers.csv, instances: photos, eval_fraction: 0.3}\n"
        "aggregation: {method: majority-vote}\nmodel: {height: 16, width: 16, stages: [4, 8], augment: false}\n"
        "training: {epochs: 10, batch_size: 16}\nevaluation: {minimum_accuracy: 0.0}\n"
        "output: {root: runs, serving: pushed}\n"
    )
    run("run run.yaml --check")
    assert "0 of 9 components cached" in run("run run.yaml").out
    card = json.loads((newest_version(road / "pushed") / "assets.extra" / "model_card.json").read_text())
    assert card["images"]["height"] == 16
    assert run("predict pushed photos").out.startswith("task,class,probability\np0,")
    assert "9 of 9 components cached" in run("run run.yaml").out
    image = Image.new("RGB", (20, 28), "white")
    stream = io.BytesIO()
    image.save(stream, "PNG")
    (road / "photos" / "p1.png").write_bytes(stream.getvalue())
    assert "9 of 9 components cached" not in run("run run.yaml").out


def test_a_missing_image_is_said_by_the_check(road, monkeypatch, refusal_of):
    monkeypatch.chdir(road)
    (road / "table.csv").write_text("task,image\np1,photos/p1.png\np2,photos/q.png\n")
    (road / "table.yaml").write_text(
        "name: road\ndata: {annotations: answers.csv, instances: table.csv}\noutput: {root: runs, serving: pushed}\n"
    )
    assert "row 3, column 'image': 'photos/q.png' does not exist" in refusal_of("run", "table.yaml", "--check")
