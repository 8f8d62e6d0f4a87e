"""Masks learned from annotators' regions: from files to a model, its masks, a server, and the pipeline."""

# ruff: noqa: E402

import base64
import csv
import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("pycocotools")
pytest.importorskip("tensorflow")
image = pytest.importorskip("PIL.Image")

from crowdzoo.commands.main import main
from crowdzoo.comparison.compare import compare
from crowdzoo.data.annotations import Annotations
from crowdzoo.data.regions import MarkedImage, Region, mask_of_pixels
from crowdzoo.errors import ConfigError, DataError, DataWarning
from crowdzoo.kinds import kind_of
from crowdzoo.kinds.regions.masks import marked_images, mask_of
from crowdzoo.records.crowd_answers import BOTH

H, W, N = 12, 16, 24
NAMED = ("--kind", "region", "--platform", "png-masks")
QUICK = ("--height", "12", "--width", "16", "--learning-rate", "0.05", "--batch-size", "4")
BASE = """
import keras
def base(context):
    x = context.inputs()
    hidden = keras.layers.Conv2D(4, 1, activation="relu", name="features")(keras.layers.Rescaling(1 / 255)(x))
    return keras.Model(x, keras.layers.Dense(context.num_classes, activation="softmax")(hidden))
"""
FRESH = """
import sys, tensorflow as tf
served = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
found = served(instances=tf.constant([open(sys.argv[2], "rb").read()]))
assert "crowdzoo" not in sys.modules
print(found["classes"][0].numpy().tolist(), int(tf.reduce_sum(found["label"])))
"""


def save(path, pixels):
    path.parent.mkdir(parents=True, exist_ok=True)
    image.fromarray(np.asarray(pixels, np.uint8)).save(path)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Images with a bright square; two annotators draw it as it is, and one too wide; nobody the last two."""
    folder, rng = tmp_path_factory.mktemp("files"), np.random.default_rng(0)
    for number in range(N):
        top, left = rng.integers(1, 6), rng.integers(1, 8)
        true, wide = np.zeros((2, H, W))
        true[top : top + 5, left : left + 6] = wide[top : top + 7, left : left + 8] = 255
        save(folder / "photos" / f"{number:02}.png", np.stack([40 + 0.7 * true] * 3, axis=-1))
        save(folder / "gold" / f"{number:02}.png", true)
        for who, drawn in {"ann": true, "bob": true, "wide": wide}.items() if number < N - 2 else ():
            save(folder / "jobs" / who / f"{number:02}.png", drawn)
    (folder / "own.py").write_text(BASE)
    return folder


def train(files, out, *words):
    return main(["train", f"{files}/jobs", f"{files}/photos", *NAMED, *QUICK, "--out", str(out), *words])


def dice_of(folder, files):
    """Mean Dice coefficient of PNG masks with the true ones."""
    pairs = [
        [np.asarray(image.open(place / f"{n:02}.png")) > 0 for place in (folder, files / "gold")] for n in range(N)
    ]
    return np.mean([2 * (one & other).sum() / (one.sum() + other.sum()) for one, other in pairs])


def test_masks_are_learned_exported_and_predicted_with_a_base_of_ones_own(files, tmp_path, capsys):
    own = ("--base", f"{files}/own.py:base", "--epochs", "10", "--gold", f"{files}/gold")
    assert train(files, tmp_path / "m.keras", *own) == 0
    shown = capsys.readouterr().out
    assert "tasks trained on" in shown
    assert float(shown.split("held-out Dice against gold")[1].split()[0]) > 0.9  # two that nobody drew
    names = json.loads((tmp_path / "m.names.json").read_text())
    assert (names["classes"], names["annotators"]) == (["background", "255"], ["ann", "bob", "wide"])
    main(["export", f"{tmp_path}/m.keras", f"{tmp_path}/served"])
    ask = ["predict", f"{tmp_path}/served", f"{files}/photos"]
    assert main([*ask, "--out", f"{tmp_path}/masks"]) == 0
    assert dice_of(tmp_path / "masks", files) > 0.9
    assert "masks: 0 is background, 255 is 255\n" in capsys.readouterr().out
    found = np.unique(np.asarray(image.open(tmp_path / "masks" / "00.png"))).tolist()
    assert found == [0, 255]  # the values of the annotators' masks
    assert main([*ask, "--out", f"{tmp_path}/masks"]) != 0
    assert main([*ask, "--out", f"{tmp_path}/masks", "--force"]) == 0
    capsys.readouterr()
    main(ask)
    lines = capsys.readouterr().out.splitlines()
    assert (lines[0], len(lines)) == ("task,class,share", 1 + 2 * N)
    shares = [float(line.rpartition(",")[2]) for line in lines[1:3]]
    assert sum(shares) == pytest.approx(1, abs=1e-6)
    assert shares[1] == pytest.approx(30 / (H * W), abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["staple", "spatial-confusions", "trace-regularization", "ccem"])
def test_a_unet_learns_by_every_method_and_is_served(files, tmp_path, capsys, method):
    httpx = pytest.importorskip("httpx")
    from crowdzoo.serving import Server

    gold = ("--gold", f"{files}/gold", "--epochs", "25")
    assert train(files, tmp_path / "m.keras", "--method", method, *gold) == 0
    assert float(capsys.readouterr().out.split("held-out Dice against gold")[1].split()[0]) > 0.7
    main(["export", f"{tmp_path}/m.keras", f"{tmp_path}/served"])
    photo = files / "photos" / "00.png"
    fresh = subprocess.run(
        [sys.executable, "-c", FRESH, tmp_path / "served" / "1", photo], capture_output=True, text=True
    )
    with Server(tmp_path / "served", rest_port=0, grpc_port=0) as server:
        url, content = f"http://127.0.0.1:{server.rest_port}", base64.b64encode(photo.read_bytes()).decode()
        answer = httpx.post(f"{url}/v1/models/model:predict", json={"instances": [{"b64": content}]}, timeout=60).json()
        assert main(["predict", url, f"{files}/photos", "--out", f"{tmp_path}/masks"]) == 0
    (found,) = answer["predictions"]
    assert fresh.stdout == f"{[b'background', b'255']} {np.sum(found['label'])}\n", fresh.stderr[-2000:]
    assert dice_of(tmp_path / "masks", files) > 0.7


def test_masks_are_scaled_and_come_back_and_the_surest_region_lies_on_top():
    square = np.zeros((4, 6), bool)
    square[1:3, 2:5] = True
    regions = (Region("a", mask_of_pixels(square), 0.9), Region("b", mask_of_pixels(square | ~square), 0.6))
    marked = MarkedImage(4, 6, regions)
    mask = mask_of(marked, ["background", "a", "b"], 8, 12)
    np.testing.assert_array_equal(mask, np.where(square, 1, 2).repeat(2, axis=0).repeat(2, axis=1))
    (again,) = marked_images([mask], ["background", "a", "b"], [marked])
    found = again.of_classes
    assert {name: mask["counts"].decode() for name, mask in found.items()} == {
        "a": mask_of_pixels(square), "b": mask_of_pixels(~square)
    }  # fmt: skip


@pytest.mark.parametrize(
    ("spoil", "words", "message"),
    [
        ({"jobs/wide/03.png": np.ones((6, 8))}, (), "of annotator 'wide': has 6 x 8 pixels, 12 x 16 by 'ann'"),
        ({"jobs/wide/99.png": np.ones((H, W))}, (), "copy those that are missing, or leave their annotations out"),
        ({f"gold/{n:02}.png": np.full((H, W), 7) for n in range(N)}, ("--gold", "gold"), r"has the categories \['7'\]"),
        ({f"jobs/{who}/{n:02}.png": np.zeros((H, W)) for who in ("ann", "bob", "wide") for n in range(N - 2)}, (),
         "nobody marked a region"),
        ({}, ("--base", "image-classifier"), "choose one of image-segmenter"),
        ({}, ("--fit", "crop"), "is not for base image-segmenter, which has dropout, height, stages, width"),
        ({}, ("--patience", "2"), "patience holds out annotations of classes"),
    ],
)  # fmt: skip
def test_what_cannot_be_learned_from_is_named(files, tmp_path, capsys, spoil, words, message):
    shutil.copytree(files, tmp_path / "files")
    for name, pixels in spoil.items():
        save(tmp_path / "files" / name, pixels)
    words = [f"{tmp_path}/files/gold" if word == "gold" else word for word in words]
    assert train(tmp_path / "files", tmp_path / "m.keras", "--epochs", "1", *words) != 0
    assert re.search(message, capsys.readouterr().err)


def test_gold_is_renamed_as_the_answers_and_a_class_that_nobody_marked_is_said(files, tmp_path):
    shutil.copytree(files / "gold", tmp_path / "gold")
    given = {"platform": "png-masks", "rename": "255=cell", "gold": tmp_path / "gold"}
    found = kind_of("region").training.read(files / "jobs", files / "photos", **given)
    assert {region.label for image in found.gold for region in image.regions} == {"cell"}
    save(tmp_path / "gold" / "03.png", np.full((H, W), 25))
    with pytest.warns(DataWarning, match=r"\['25'\], and annotators have \['cell'\] .*{'25': 'cell'}"):
        kind_of("region").training.read(files / "jobs", files / "photos", **given)


@pytest.mark.slow
def test_networks_for_masks_are_compared_with_gold(files, tmp_path, capsys):
    words = ["compare", f"{files}/jobs", f"{files}/photos", *NAMED, *QUICK, "--gold", f"{files}/gold"]
    named = ["majority-vote", "staple", "ccem", "gold"]
    assert main([*words, "--epochs", "12", "--methods", ",".join(named), "--out", f"{tmp_path}/out"]) == 0
    assert "Dice coefficient" in capsys.readouterr().out
    rows = {row["method"]: row for row in csv.DictReader((tmp_path / "out/comparison.csv").read_text().splitlines())}
    assert {*rows} == {*named}
    assert min(float(row["score"]) for row in rows.values()) > 0.6


def test_networks_for_masks_are_compared_by_the_answers_to_hidden_images(files, tmp_path):
    for path in [*files.glob("jobs/*/*.png"), *files.glob("photos/*.png")]:  # each twice: one is hidden
        for half in "ab":
            save(tmp_path / path.relative_to(files).parent / f"{half}{path.name}", image.open(path))
    kind = kind_of("region")
    data = kind.training.read(tmp_path / "jobs", tmp_path / "photos", platform="png-masks")
    tasks = data.crowd.tasks
    small = kind.training.settings("image-segmenter", height=H, width=W, stages=[4], epochs=20, learning_rate=0.05)
    held_out = np.char.startswith(tasks.astype(str), "b")
    found = compare(data.crowd, data.x, methods=["ccem"], tasks=tasks, held_out=held_out, settings=small)
    strange = MarkedImage(H, W, (Region("strange", mask_of_pixels(np.ones((H, W), bool))),))
    compared = kind_of("region").measure(data.crowd, np.full(len(tasks), strange))
    assert compared.gold_targets(np.array([0]))[0].regions == ()  # nobody marked that class
    assert found.measure == "Dice coefficient with hidden answers"
    assert (found.num_tasks, found.frame["score"].min() > 0.7) == (N - 2, True), found.frame


def test_networks_for_masks_take_settings_and_no_base():
    said = Annotations.from_arrays([0], [0], [MarkedImage(4, 6)], kind="region")
    with pytest.raises(ConfigError, match="no network for feature vectors learns regions"):
        compare(said, ["a.png"])
    settings = kind_of("region").training.settings("image-segmenter")
    with pytest.raises(ConfigError, match="base: the settings name the network for regions"):
        compare(said, ["a.png"], base=lambda context: None, settings=settings)


# === Pipeline ===


@pytest.fixture
def config(files, tmp_path):
    """A configuration whose annotations and gold are folders."""
    path = tmp_path / "masks.yaml"
    data = {"annotations": "jobs", "instances": "photos", "gold": "gold"}
    path.write_text(json.dumps({
        "name": "masks", "kind": "region",
        "data": {"platform": "png-masks", "eval_fraction": 0.4, **{k: f"{files}/{name}" for k, name in data.items()}},
        "model": {"height": 16, "width": 16, "stages": [8]},
        "training": {"epochs": 25, "batch_size": 4, "learning_rate": 0.02},
        "evaluation": {"minimum_dice": 0.5},
        "report": {}, "output": {"root": f"{tmp_path}/out", "serving": f"{tmp_path}/pushed"},
    }))  # fmt: skip
    return path


def test_the_check_reads_folders_of_masks_and_the_defaults_are_those_of_the_command_line(config, capsys):
    pytest.importorskip("tfx")
    from crowdzoo.pipelines.config.load import load_config

    assert main(["run", str(config), "--check"]) == 0
    assert "fine, read 66 answers, 24 instances" in capsys.readouterr().out
    loaded = load_config(config)
    assert (loaded.base, loaded.method.name, loaded.aggregation.method) == ("image-segmenter", "aggregated", "staple")
    for key, value, message in (
        ("training.warm_start", True, "is for classes and ratings"),
        ("data.low", 1, "data.low is not for"),
        ("evaluation.minimum_accuracy", 0.5, "where evaluation has tolerance, undecided, minimum_dice"),
    ):
        with pytest.raises(ConfigError, match=message):
            load_config(config, {key: value})


@pytest.fixture
def tasks(files, tmp_path):
    """A function that reads the files as AnnotationExampleGen does."""

    def read(**changed):
        options = {"kind": "region", "platform": "png-masks", "eval_fraction": 0.4, "gold": f"{files}/gold"}
        options |= {"annotations": f"{files}/jobs", "instances": f"{files}/photos", **changed}
        return kind_of("region").records.read(options, "", str(tmp_path))

    return read


def test_examples_hold_regions_and_each_split_is_aggregated(files, tasks, tmp_path):
    read = tasks()
    feature = read.example(0).features.feature
    said = [MarkedImage.parse(text.decode()) for text in feature["annotator_labels"].bytes_list.value]
    assert [*feature["annotator_ids"].int64_list.value] == [0, 1, 2]
    assert said[0].of_classes == said[1].of_classes != said[2].of_classes
    assert MarkedImage.parse(feature["gold"].bytes_list.value[0].decode()).of_classes == said[0].of_classes
    last = read.example(N - 1).features.feature
    assert (len(last["annotator_ids"].int64_list.value), len(last["gold"].bytes_list.value)) == (0, 1)
    assert read.info["classes"] == ["background", "255"]
    parts = {name: read.annotations.select_tasks(read.split == name) for name in ("train", "eval")}
    method = kind_of("region").aggregation.create("staple")
    found = kind_of("region").records.aggregate(method, {**parts, BOTH: read.annotations}, method.fit, "")
    tables = {name: table["task"].to_pylist() for name, table in found.tables.items()}
    assert sorted(tables["train"] + tables["eval"]) == [f"{n:02}" for n in range(N - 2)]
    first = MarkedImage.parse(
        found.tables[read.split[0]]["labels"][tables[read.split[0]].index("00")].as_py()[0].decode()
    )
    assert first.of_classes == said[0].of_classes
    small = tmp_path / "small"
    for n in range(N):
        save(small / f"{n:02}.png", np.zeros((6, 8, 3)))
    with pytest.raises(DataError, match=r"small: image '00' is of size \[6, 8\] there, and \[12, 16\]"):
        tasks(instances=str(small)).example(0)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["aggregated", "spatial-confusions"])
def test_the_pipeline_learns_blesses_and_pushes_a_model_of_masks(files, config, tmp_path, capsys, method):
    pytest.importorskip("tfx")
    assert main(["run", str(config), "--set", f"method.name={method}"]) == 0
    shown = capsys.readouterr().out
    assert "Dice:" in shown
    (evaluation,) = (tmp_path / "out").glob("**/evaluation.json")
    found = json.loads(evaluation.read_text())
    assert (found["truth"], found["metric"], found["blessed"]) == ("gold", "dice", True)
    assert main(["predict", f"{tmp_path}/pushed", f"{files}/photos", "--out", f"{tmp_path}/masks"]) == 0
    assert dice_of(tmp_path / "masks", files) == pytest.approx(found["candidate"]["dice"], abs=0.15)


# === crowdzoo quality ===


def test_quality_of_regions_says_who_draws_too_wide_and_what_to_redo(files, tmp_path, capsys):
    out = tmp_path / "quality"
    words = [f"{files}/jobs", *NAMED, "--pay", "0.5", "--sure", "0.5", "--bootstrap", "0", "--top", "2"]
    assert main(["quality", *words, "--out", str(out), "--format", "csv"]) == 0
    shown = capsys.readouterr().out
    assert "Dice of two answers" in shown
    assert "due for all annotations  33.00" in shown
    people = [*csv.DictReader((out / "annotators.csv").read_text().splitlines())]
    assert [row["annotator"] for row in people if float(row["wider"]) > 0.3] == ["wide"]
    assert [row["due"] for row in people] == ["11"] * 3
    assert {path.name for path in out.iterdir()} == {"annotators.csv", "tasks.csv", "summary.json"}
    assert json.loads((out / "summary.json").read_text())["total_due"] == 33
    assert main(["quality", *words, "--out", str(out), "--format", "xlsx", "--force"]) == 0
    assert main(["quality", *words, "--gold", f"{files}/gold"]) != 0
    assert "--gold does not go with --kind region" in capsys.readouterr().err


HEADERS = {"preference": "left,right,annotator,label"}
SAID = {
    "regression": "{task},{who},{number}",
    "preference": "{task},x{task},{who},left",
    "free-text": "{task},{who},a text of {number} words",
    "sequence": '{{"task": {task}, "text": "Ann saw Bob", "annotator": "{who}", "spans": [{span}]}}',
}


@pytest.mark.parametrize("name", SAID)
def test_quality_has_sheets_for_labels_of_every_kind(name, tmp_path):
    path, out = tmp_path / ("a.jsonl" if name == "sequence" else "a.csv"), tmp_path / "out"
    lines = [] if name == "sequence" else [HEADERS.get(name, "task,annotator,label")]
    for task, who in [(task, who) for task in range(12) for who in ("ann", "rob", "claire")][:-2]:
        number = (task * 7 + len(who)) % 5
        span = '{"start": 0, "end": 3, "label": "PER"}' if number % 2 else ""
        lines.append(SAID[name].format(task=task, who=who, number=number, span=span))
    path.write_text("\n".join(lines) + "\n")
    words = ["--kind", name, "--bootstrap", "0", "--out", str(out), "--format", "csv"]
    assert main(["quality", str(path), *words]) == 0
    sheets = ((out / f"{table}.csv").read_text().splitlines() for table in ("annotators", "tasks"))
    people, tasks = ([*csv.DictReader(lines)] for lines in sheets)
    assert sorted(row["annotator"] for row in people) == ["ann", "claire", "rob"]
    assert {"flag", "reason", "advice"} <= people[0].keys()
    assert tasks[0]["redo"]  # one answer, or not sure
