"""Every sort of instances and every kind of label through every door: files in, the same predictions out.

A row of `ROWS` is made once: files are written, `crowdzoo train` learns from them, `crowdzoo export` writes a served
model. A cell is one door of one row. What it answers is compared with the Keras model that was trained, number by
number.
"""

import base64
import json
import re
import subprocess
import sys
from functools import cached_property
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from csv_files import read_csv, write_csv

pytest.importorskip("tfx")
pytest.importorskip("PIL")
pytest.importorskip("httpx")
pytest.importorskip("tensorflow_serving")

import grpc
import httpx
import keras
import pyarrow as pa
import pyarrow.parquet
import tensorflow as tf
from PIL import Image
from tensorflow_serving.apis.predict_pb2 import PredictRequest, PredictResponse

import crowdzoo
from crowdzoo.commands.main import main
from crowdzoo.export.predict import load_and_predict
from crowdzoo.files.version_folders import newest_version
from crowdzoo.kinds import KINDS
from crowdzoo.metrics import r2_score, spearman
from crowdzoo.networks.encoders import encoder_of
from crowdzoo.sequences import split_tokens
from crowdzoo.serving import Client, Server

TASKS = 60
EVAL = np.arange(TASKS) % 4 == 3
CLOSE = {"rtol": 1e-5, "atol": 1e-5}
CLASSES = ("cold", "warm")
SIDES = ("left", "right")
TITLES = {"classification": "classes", "regression": "ratings", "preference": "preferences", "sequence": "spans"}
KINDS_OF_INSTANCES = ("classification", "regression", "preference")


def run(*words):
    """A command, in this process, that has to end well."""
    assert not main([str(word) for word in words]), words


# === Instances ===


class Instances:
    """What tasks look like that are more or less warm; what the columns, the requests and the options of them are.

    Attributes:
        path: the file, or its folder.
        inputs: input of the served model -> values [N], as `load_and_predict` takes them.
        options: of `crowdzoo train`.
        model: section `model` of a configuration.
        further: options that `crowdzoo predict` needs to read the file.
    """

    options: tuple = ("--hidden", 8, "--dropout", 0)
    model: ClassVar = {"hidden": [8], "dropout": 0.0}
    further: tuple = ()
    epochs = 25

    def __init__(self, folder, warmth, gold):
        self.rng = np.random.default_rng(1)
        self.folder, self.warmth = folder, warmth
        columns, self.inputs = self.columns()
        sides = ["eval" if held else "train" for held in EVAL]
        self.path = self.write({"task": [f"t{task}" for task in range(TASKS)], **columns, "gold": gold, "split": sides})

    def write(self, columns):
        path = self.folder / "instances.csv"
        write_csv(path, [*columns], *zip(*columns.values(), strict=True))
        return path


class Vectors(Instances):
    def columns(self):
        values = np.stack([self.warmth, self.rng.random(TASKS), 3 * self.rng.random(TASKS)], axis=1).astype("float32")
        named = {name: [repr(float(x)) for x in values[:, code]] for code, name in enumerate("abc")}
        return named, {"instances": values}


class Images(Instances):
    options = ("--height", 8, "--width", 8, "--no-augment", "--dropout", 0)
    model: ClassVar = {"height": 8, "width": 8, "stages": [4], "augment": False, "dropout": 0.0}
    epochs = 40

    def columns(self):
        names = photographs(self.folder, self.warmth, self.rng)
        return {"image": names}, {"instances": files(self.folder, names)}


class Texts(Instances):
    options = ("--form", "bag-of-words", "--hidden", 8, "--dropout", 0)
    model: ClassVar = {"form": "bag-of-words", "hidden": [8], "dropout": 0.0}

    def columns(self):
        values = remarks(self.warmth, self.rng)
        return {"text": values}, {"instances": np.array(values, object)}


class Table(Instances):
    def columns(self):
        ages, cities = gaps(self.warmth, self.rng)
        named = {"age (years)": ["" if np.isnan(age) else repr(float(age)) for age in ages], "city": cities}
        return named, {"age__years_": ages, "city": np.array(cities, object)}


class Several(Instances):
    """A vector, a text, an image, and a number and a category with gaps."""

    options = ("--hidden", 8, "--dropout", 0, "--inputs", "photo=image,remark=text")
    model: ClassVar = {
        "hidden": [8], "dropout": 0.0, "inputs": {"photo": "image", "remark": "text"},
        "texts": {"form": "bag-of-words"}, "images": {"height": 8, "width": 8, "stages": [4], "augment": False},
    }  # fmt: skip
    further = ("--inputs", "photo=image")
    epochs = 40

    def columns(self):
        half = np.where(self.rng.random(TASKS) < 0.5, self.warmth, self.warmth + 0.05)
        ages, cities = gaps(self.warmth, self.rng)
        shapes = self.rng.normal(size=(TASKS, 3)).astype("float32") + half[:, None].astype("float32")
        texts, names = remarks(self.warmth, self.rng), photographs(self.folder, self.warmth, self.rng)
        columns = {
            "age (years)": pa.array(ages, from_pandas=True), "city": pa.array([city or None for city in cities]),
            "shape": pa.array(shapes.tolist(), pa.list_(pa.float32())), "remark": texts, "photo": names,
        }  # fmt: skip
        return columns, {
            "age__years_": ages, "city": np.array(cities, object), "shape": shapes, "remark": np.array(texts, object),
            "photo": files(self.folder, names),
        }  # fmt: skip

    def write(self, columns):
        pyarrow.parquet.write_table(pa.table(columns), self.folder / "instances.parquet")
        return self.folder / "instances.parquet"


def photographs(folder, warmth, rng):
    """Files that are brighter where it is warmer, JPEG and PNG in turn; their names."""
    names = [f"photos/{task}.{('jpg', 'png')[task % 2]}" for task in range(TASKS)]
    (folder / "photos").mkdir()
    for name, bright in zip(names, warmth, strict=True):
        pixels = rng.normal(size=(10, 14, 3)) * 10 + 40 + 170 * bright
        Image.fromarray(pixels.clip(0, 255).astype("uint8")).save(folder / name)
    return names


def files(folder, names):
    return np.array([(folder / name).read_bytes() for name in names] + [None], object)[:-1]


def remarks(warmth, rng):
    """Texts of seven words in any order, the more of the second sort the warmer."""
    sunny = np.round(7 * warmth).astype(int)
    return [" ".join(rng.permutation(["sunny"] * count + ["Snów,"] * (7 - count))) for count in sunny]


def gaps(warmth, rng):
    """Ages and cities that tell the warmth, a tenth of each missing."""
    ages = np.where(rng.random(TASKS) < 0.1, np.nan, 20 + 40 * warmth).astype("float32")
    return ages, [("" if rng.random() < 0.1 else "Porto" if warm > 0.5 else "Oslo") for warm in warmth]


# === Rows ===


class Row:
    """Instances and a kind of label: the files, and what comes of them when it is first asked for."""

    def __init__(self, folder, made, kind):
        rng = np.random.default_rng(0)
        self.folder, self.kind = folder, kind
        self.warmth = np.where(rng.random(TASKS) < 0.5, 0.3, 0.7) + rng.uniform(-0.25, 0.25, TASKS)
        warm = self.warmth > 0.5
        if kind == "classification":
            self.output, self.gold = "probabilities", np.array(CLASSES)[warm.astype(int)]
            said = [[CLASSES[int(one ^ (rng.random() < 0.15))] for _ in range(3)] for one in warm]
        elif kind == "regression":
            self.output, self.gold = "value", 10 * self.warmth
            # rounded: ordinal takes at most 100 different ratings
            said = [[round(10 * one + bias + rng.normal() * 0.3, 1) for bias in (-1, 0, 1)] for one in self.warmth]
        else:
            self.output, self.gold = "score", self.warmth
            pairs = [(left, (left + step) % TASKS) for left in range(TASKS) for step in (1, 4, 10, 21)]
            better = [int(self.warmth[left] < self.warmth[right]) for left, right in pairs]
            said = [[SIDES[one ^ (rng.random() < 0.1)] for _ in range(3)] for one in better]
        self.answers = folder / "answers.csv"
        header, about = ("task",), [(f"t{task}",) for task in range(TASKS)]
        if kind == "preference":
            header, about = SIDES, [(f"t{left}", f"t{right}") for left, right in pairs]
        rows = [(*of, f"a{code}", one[code]) for of, one in zip(about, said, strict=True) for code in range(3)]
        write_csv(self.answers, (*header, "annotator", "label"), *rows)
        self.instances = made(folder, self.warmth, self.gold)
        self.inputs = self.instances.inputs

    @cached_property
    def trained(self):
        """The file of `crowdzoo train`."""
        path = self.folder / "model.keras"
        how = ("--kind", self.kind, "--epochs", self.instances.epochs, "--batch-size", 16, "--learning-rate", 0.02)
        run("train", self.answers, self.instances.path, "--out", path, *how, *self.instances.options)
        return path

    @cached_property
    def expected(self):
        """What the Keras model answers that `crowdzoo train` has saved, [N, K] or [N]."""
        model, x = crowdzoo.load_model(self.trained), self.encoded
        asked = model.base.scorer if self.kind == "preference" else model
        answers = asked.predict(x, batch_size=TASKS, verbose=0)
        return answers if self.kind == "classification" else answers[:, 0]

    @property
    def encoded(self):
        """The instances as the Keras model takes them."""
        names = self.trained.with_suffix(".names.json")
        encoder = encoder_of(json.loads(names.read_text()), names)
        values = self.inputs if len(self.inputs) > 1 else self.inputs["instances"]
        return values if encoder is None else encoder.to_numpy(values)

    @property
    def beside_the_next(self):
        """Inputs of the signature "pairs": each instance and the one after it."""
        named = {side: {name: side if name == "instances" else f"{side}_{name}" for name in self.inputs}
                 for side in SIDES}  # fmt: skip
        return {
            named[side][name]: np.roll(values, -place, axis=0)
            for place, side in enumerate(SIDES) for name, values in self.inputs.items()
        }  # fmt: skip

    def same_of_pairs(self, outputs):
        """Whether probabilities are those of the Keras model for the inputs of `beside_the_next`."""
        sides = {side: keras.tree.map_structure(lambda part, by=-place: np.roll(part, by, axis=0), self.encoded)
                 for place, side in enumerate(SIDES)}  # fmt: skip
        wanted = crowdzoo.load_model(self.trained).predict(sides, verbose=0)
        np.testing.assert_allclose(np.asarray(outputs["probabilities"], float), wanted, **CLOSE)

    @cached_property
    def served(self):
        """The folder of `crowdzoo export`."""
        path = self.folder / "served"
        run("export", self.trained, path, "--warmup", self.instances.path)
        return path

    @cached_property
    def pushed(self):
        """The folder that `crowdzoo run` has pushed a model into, and what its Evaluator has found."""
        metric = {"classification": "accuracy", "regression": "r2", "preference": "pair_accuracy"}[self.kind]
        config = {
            "kind": self.kind,
            "data": {"annotations": str(self.answers), "instances": str(self.instances.path)},
            "model": self.instances.model,
            "training": {"epochs": self.instances.epochs, "batch_size": 16, "learning_rate": 0.02},
            "evaluation": {f"minimum_{metric}": 0.6},
        }  # fmt: skip
        return pushed_by(self.folder, config)

    def good(self, answers, rows):
        """Whether answers of some tasks are mostly right."""
        assert np.isfinite(answers).all()
        if self.kind == "classification":
            return np.mean(np.array(CLASSES)[answers.argmax(axis=1)] == self.gold[rows]) > 0.8
        if self.kind == "preference":
            return spearman(self.gold[rows], answers) > 0.7
        return r2_score(self.gold[rows], answers) > 0.5

    def rest_rows(self):
        """The instances as rows of a REST request."""
        columns = {name: [json_value(value) for value in values] for name, values in self.inputs.items()}
        if [*columns] == ["instances"]:
            return columns["instances"]
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def same(self, outputs):
        np.testing.assert_allclose(np.asarray(outputs[self.output], float), self.expected, **CLOSE)


class Sentences(Row):
    """Sentences in which annotators mark who is named."""

    def __init__(self, folder):
        self.folder, self.kind, self.output = folder, "sequence", "tags"
        rng = np.random.default_rng(0)
        names, others = ("Ann", "Bob", "Eve", "Zoë"), ("saw", "a", "dog", "and", "slept", "met", "the")
        self.texts = [" ".join(rng.choice((*names, *others), 6)) for _ in range(TASKS)]
        lines = []
        for task, text in enumerate(self.texts):
            spans = [
                {"start": word.start(), "end": word.end(), "label": "PER"}
                for word in re.finditer(r"\w+", text)
                if word[0] in names
            ]
            lines += [{"task": f"t{task}", "text": text, "spans": spans, "annotator": who} for who in "xy"]
            lines.append({"task": f"t{task}", "text": text, "spans": spans, "gold": True})
        self.answers = folder / "spans.jsonl"
        self.answers.write_text("".join(json.dumps(line) + "\n" for line in lines))
        (folder / "texts.txt").write_text("".join(text + "\n" for text in self.texts), encoding="utf-8")
        self.instances = SimpleNamespace(path=folder / "texts.txt", further=())
        self.inputs = {"instances": np.array(self.texts, object)}

    @cached_property
    def trained(self):
        path = self.folder / "model.keras"
        how = ("--epochs", 12, "--batch-size", 8, "--learning-rate", 0.02)
        run("train", self.answers, "--kind", "sequence", "--out", path, *how)
        return path

    @cached_property
    def expected(self):
        """Tags of each token, by the Keras model."""
        names = self.trained.with_suffix(".names.json")
        known = json.loads(names.read_text())
        codes = crowdzoo.load_model(self.trained).base.tag(
            encoder_of(known, names)([split_tokens(text)[0] for text in self.texts])
        )
        return [[known["classes"][code] for code in sentence] for sentence in codes]

    @cached_property
    def pushed(self):
        config = {
            "kind": "sequence", "data": {"annotations": str(self.answers), "eval_fraction": 0.3},
            "training": {"epochs": 12, "batch_size": 8, "learning_rate": 0.02}, "evaluation": {"minimum_f1": 0.6},
        }  # fmt: skip
        return pushed_by(self.folder, config)

    def same(self, outputs):
        found = [
            [tag.decode() if isinstance(tag, bytes) else tag for tag in tags[:length]]
            for tags, length in zip(outputs["tags"], outputs["lengths"], strict=True)
        ]
        assert found == self.expected


def pushed_by(folder, config):
    """The folder that `crowdzoo run` pushes a model into, and what its Evaluator has found."""
    output = {"root": str(folder / "out"), "serving": str(folder / "pushed")}
    (folder / "row.yaml").write_text(json.dumps({"name": "row", **config, "output": output}))
    run("run", folder / "row.yaml")
    (evaluation,) = folder.glob("out/**/evaluation.json")
    return folder / "pushed", json.loads(evaluation.read_text())["candidate"]


def json_value(value):
    if isinstance(value, bytes):
        return {"b64": base64.b64encode(value).decode()}
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


ROWS = {
    (title, kind): made
    for title, made in {
        "feature vectors": Vectors, "images": Images, "texts": Texts, "a table with gaps and categories": Table,
        "several inputs together": Several,
    }.items()
    for kind in KINDS_OF_INSTANCES
} | {("sentences", "sequence"): Sentences}  # fmt: skip


# === Doors ===


def by_train(row, tmp_path):
    if row.kind == "sequence":
        named = [[tag != "O" for tag in tags] for tags in row.expected]
        truth = [[word in {"Ann", "Bob", "Eve", "Zoë"} for word in text.split()] for text in row.texts]
        assert np.mean(np.concatenate(named) == np.concatenate(truth)) > 0.95
        return
    assert row.good(row.expected[EVAL], EVAL)


def by_run(row, tmp_path):
    folder, found = row.pushed
    if row.kind == "sequence":
        assert found["f1"] > 0.6
        spans = load_and_predict(folder, row.inputs["instances"], signature="spans")
        assert np.mean(spans["lengths"] == [len(re.findall("Ann|Bob|Eve|Zoë", text)) for text in row.texts]) > 0.6
        return
    held = {name: values[EVAL] for name, values in row.inputs.items()}
    answers = load_and_predict(folder, held)[row.output]
    assert row.good(answers, EVAL)
    if row.kind == "classification":
        right = answers[np.arange(EVAL.sum()), [CLASSES.index(name) for name in row.gold[EVAL]]]
        assert found["cross_entropy"] == pytest.approx(-np.log(right).mean(), **APPROX)
    elif row.kind == "preference":
        assert found["pair_accuracy"] > 0.8
    else:
        assert found["mae"] == pytest.approx(np.abs(answers - row.gold[EVAL]).mean(), **APPROX)


APPROX = {"rel": 1e-5, "abs": 1e-5}


def by_export(row, tmp_path):
    row.same(load_and_predict(row.served, row.inputs))
    if row.kind == "preference":
        row.same_of_pairs(load_and_predict(row.served, row.beside_the_next, signature="pairs"))


def by_rest(row, tmp_path):
    body = json.dumps({"instances": row.rest_rows()}).encode()
    with Server(row.served, rest_port=0, grpc_port=0) as server:
        answer = httpx.post(f"http://127.0.0.1:{server.rest_port}/v1/models/model:predict", content=body, timeout=60)
    found = answer.json()["predictions"]
    if not isinstance(found[0], dict):  # TensorFlow Serving leaves the name of a single output out
        found = [{row.output: one} for one in found]
    row.same({name: [one[name] for one in found] for name in found[0]})


def by_grpc(row, tmp_path):
    request = PredictRequest(model_spec={"name": "model"})
    for name, values in row.inputs.items():
        texts = [value.encode() if isinstance(value, str) else value for value in values]
        given = np.array([*texts, None], object)[:-1] if values.dtype == object else values
        request.inputs[name].CopyFrom(tf.make_tensor_proto(given))
    with (
        Server(row.served, rest_port=0, grpc_port=0) as server,
        grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel,
    ):
        ask = channel.unary_unary(
            "/tensorflow.serving.PredictionService/Predict",
            request_serializer=PredictRequest.SerializeToString,
            response_deserializer=PredictResponse.FromString,
        )
        outputs = ask(request, timeout=60).outputs
    row.same({name: tf.make_ndarray(proto) for name, proto in outputs.items()})


def by_predict(row, tmp_path):
    paths = [tmp_path / "folder.csv", tmp_path / "url.csv"]
    run("predict", row.served, row.instances.path, "--out", paths[0], *row.instances.further)
    with Server(row.served, rest_port=0, grpc_port=0) as server:
        url = f"http://127.0.0.1:{server.rest_port}"
        run("predict", url, row.instances.path, "--out", paths[1], *row.instances.further)
    assert paths[0].read_text() == paths[1].read_text()
    found = read_csv(paths[0])
    if row.kind == "sequence":
        named = [(str(n + 1), w[0]) for n, text in enumerate(row.texts) for w in re.finditer(r"\w+", text)]
        tags = [tag for tags in row.expected for tag in tags]
        wanted = [one for one, tag in zip(named, tags, strict=True) if tag != "O"]
        assert [(one["task"], word) for one in found for word in one["text"].split()] == wanted
        return
    assert [one["task"] for one in found] == [f"t{task}" for task in range(TASKS)]
    if row.kind == "classification":
        assert [one["class"] for one in found] == np.array(CLASSES)[row.expected.argmax(axis=1)].tolist()
        np.testing.assert_allclose([float(one["probability"]) for one in found], row.expected.max(axis=1), **CLOSE)
    else:
        np.testing.assert_allclose([float(one[row.output]) for one in found], row.expected, **CLOSE)


def by_client(row, tmp_path):
    given = row.inputs["instances"] if [*row.inputs] == ["instances"] else row.inputs
    with Server(row.served, rest_port=0, grpc_port=0) as server:
        for url in (f"http://127.0.0.1:{server.rest_port}", f"grpc://127.0.0.1:{server.grpc_port}"):
            with Client(url) as client:
                row.same(client.predict(given, batch_size=50))
                if row.kind == "preference":
                    row.same_of_pairs(client.predict(row.beside_the_next, signature="pairs", batch_size=50))


ALONE = """
import base64, importlib.util, json, pathlib, sys

for name in ("crowdzoo", "keras", "tf_keras"):
    sys.modules[name] = None  # so that it cannot be imported
import tensorflow as tf

version, columns = sys.argv[1], json.loads(pathlib.Path(sys.argv[2]).read_text())
if sys.argv[3] == "sequence":  # the operations alone, as TensorFlow Serving has them
    (package,) = importlib.util.find_spec("tensorflow_text").submodule_search_locations
    tf.load_op_library(str(pathlib.Path(package, "python", "ops", "_regex_split_ops.so")))
loaded = tf.saved_model.load(version)
function = loaded.signatures["serving_default"]
given = {
    name: tf.constant([base64.b64decode(x["b64"]) if isinstance(x, dict) else x for x in columns[name]], spec.dtype)
    for name, spec in function.structured_input_signature[1].items()
}
found = {name: output.numpy().tolist() for name, output in function(**given).items()}
print(json.dumps(found, default=bytes.decode))
"""


def by_saved_model(row, tmp_path):
    columns = {name: [json_value(value) for value in values] for name, values in row.inputs.items()}
    (tmp_path / "columns.json").write_text(json.dumps(columns))
    words = [sys.executable, "-W", "ignore", "-c", ALONE, newest_version(row.served), tmp_path / "columns.json"]
    done = subprocess.run([*words, row.kind], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    row.same(json.loads(done.stdout.splitlines()[-1]))


DOORS = {
    "`crowdzoo train`": by_train,
    "`crowdzoo run`": by_run,
    "`crowdzoo export`": by_export,
    "REST": by_rest,
    "gRPC": by_grpc,
    "`crowdzoo predict`": by_predict,
    "client": by_client,
    "SavedModel alone": by_saved_model,
}


@pytest.fixture(scope="module")
def row_of(tmp_path_factory):
    """A function that makes a row once."""
    rows = {}

    def get(key):
        if key not in rows:
            made, folder = ROWS[key], tmp_path_factory.mktemp("row")
            rows[key] = made(folder) if made is Sentences else Row(folder, made, key[1])
        return rows[key]

    return get


def cells():
    """Every door of every row, row by row."""
    for row in ROWS:
        for door in DOORS:
            yield pytest.param(row, door, id=f"{row[0]}, {TITLES[row[1]]}: {door.strip('`')}")


@pytest.mark.slow
@pytest.mark.parametrize(("row", "door"), [*cells()])
def test_every_door_gives_the_predictions_of_the_model_that_was_trained(row, door, row_of, tmp_path):
    DOORS[door](row_of(row), tmp_path)


def trainings():
    """All names that `crowdzoo train --method` takes. Aggregation never sees the instances, so one sort is enough."""
    on = ("images", "texts", "several inputs together", "a table with gaps and categories")
    for kind in KINDS_OF_INSTANCES:
        deep = KINDS[kind].training.methods()
        for method in dict.fromkeys([*deep, *KINDS[kind].aggregation.methods()]):
            for title in on if method in deep else on[3:]:
                yield pytest.param((title, kind), method, id=f"{title}, {TITLES[kind]}: {method}")


@pytest.mark.slow
@pytest.mark.parametrize(("row", "method"), [*trainings()])
@pytest.mark.filterwarnings("ignore::crowdzoo.training.faults.NotLearnedWarning")
@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.ConvergenceWarning")
def test_every_method_takes_all_sorts_of_instances(row, method, tmp_path):
    kind = row[1]
    row = Row(tmp_path, ROWS[row], kind)
    row.trained = tmp_path / "model.keras"
    how = ("--kind", kind, "--method", method, "--epochs", 1, "--batch-size", 32)
    run("train", row.answers, row.instances.path, "--out", row.trained, *how, *row.instances.options)
    assert row.expected.shape == ((TASKS, len(CLASSES)) if kind == "classification" else (TASKS,))
    assert np.isfinite(row.expected).all()
