"""Files that released versions wrote are read by this one; files of later versions are refused with what to do.

Each folder beside this file holds what a release wrote (`write_formats.py`), and is not written again.
"""

import ast
import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import crowdzoo
from crowdzoo import Annotations, load_model
from crowdzoo.aggregation import Aggregation, PreferenceAggregation, RatingAggregation, SequenceAggregation
from crowdzoo.errors import DataError
from crowdzoo.files.model_files import read_model_card, read_model_names
from crowdzoo.reading.tables.parquet import KEY
from crowdzoo.report.page import report_page
from crowdzoo.report.page_changes import read_numbers
from crowdzoo.sequences import read_conll, read_gold, read_spans

ROOT = Path(__file__).resolve().parents[2]
RELEASES = sorted(path for path in Path(__file__).parent.iterdir() if path.is_dir() and path.name[0].isdigit())
ALL = pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.name)
# every file of a release: what it is read with in the tests below, or why it is not read again
COVERED = {
    "annotations-*.parquet": "read",
    "annotations.csv": "read",
    "aggregation-*/*": "read",
    "model.keras": "read",
    "model.names.json": "read",
    "model_card.json": "read",
    "dataset.json": "read",
    "spans.jsonl": "read",
    "sentences*.conll": "read",
    "instances.csv": "what the model was trained on",
    "report.json": "read",
    "quality/*": "for programs of users; summary.json carries its version",
    "tf_serving_warmup_requests": "TensorFlow Serving's format",
    "request*.json": "TensorFlow Serving's format",
}
# module that writes files -> which of them carry a version; or why none does
WRITERS = {
    "crowdzoo.aggregation.base": "aggregation: summary.json",
    "crowdzoo.aggregation.result_files": "aggregation: summary.json",
    "crowdzoo.files.writing": "the writer of tables in CSV itself",
    "crowdzoo.commands.convert": "files of the modules that it calls",
    "crowdzoo.commands.next": "a table, or Label Studio's format",
    "crowdzoo.commands.label_studio": "a table; else files of the commands that it runs",
    "crowdzoo.kinds.regions.kind": "PNG masks",
    "crowdzoo.label_studio.project": "Label Studio's format; its store carries a version (tests/label_studio)",
    "crowdzoo.commands.train": "model.names.json; the .keras file in its CrowdModel",
    "crowdzoo.datasets.fetch": "files of others, as they were",
    "crowdzoo.datasets.write_files": "tables",
    "crowdzoo.export.pretrained": "crowdzoo.json, as model.names.json; the rest is Keras' and for people",
    "crowdzoo.export.saved_model": "model_card.json; the rest is TensorFlow's",
    "crowdzoo.export.warmup": "TensorFlow Serving's format",
    "crowdzoo.reading.instances.export_instances": "a table",
    "crowdzoo.quality.report": "quality: summary.json",
    "crowdzoo.report.plots": "pictures",
    "crowdzoo.report.page": "report.json",
    "crowdzoo.reading.sentences.conll_files": "CoNLL columns",
    "crowdzoo.reading.sentences.span_writing": "JSON lines, documented by their keys",
    "crowdzoo.reading.sentences.text_lines": "the writer of lines itself",
    "crowdzoo.reading.tables.annotation_files": "a table",
    "crowdzoo.reading.tables.parquet": "annotations: under its key in the footer",
    "crowdzoo.training.checkpoint": "checkpoint.json and each phase-*.npz; only the code that wrote them reads them",
    "crowdzoo.components.crowd_aggregator": "a table, and the files of crowdzoo.aggregation.base",
    "crowdzoo.components.evaluator": "evaluation.json, an artifact that TFX makes again for other code",
    "crowdzoo.components.pusher": "blessing.json",
    "crowdzoo.components.lineage": "origin.json",
    "crowdzoo.components.rollback": "vetoes.json",
    "crowdzoo.components.request_skew": "the number of anomalies, which the server's metrics read",
    "crowdzoo.components.drift_validator": "an artifact that TFX makes again for other code; TFDV's formats",
    "crowdzoo.serving.version_labels": "TensorFlow Serving's format",
    "crowdzoo.records.example_files": "dataset.json; the rest is TensorFlow's",
    "crowdzoo.components.trainer": "artifacts that TFX makes again for other code",
    "crowdzoo.components.annotation_example_gen": "tasks.parquet, which the next component reads in the same run",
    "crowdzoo.commands.compare": "a table",
    "crowdzoo.comparison.runs": "runs.parquet, which the version that wrote it reads alone",
    "crowdzoo.pipelines.kubeflow": "Kubeflow's format",
    "crowdzoo.serving.deploy.write_deployment": "formats of Compose, Kubernetes and KServe",
}
CALLS = {"atomic_file", "atomic_folder", "atomic_path", "write_json", "write_lines", "write_rows", "write_table",
         "write_text", "ParquetWriter", "TFRecordWriter"}  # fmt: skip


def test_this_release_has_its_files():
    assert ".".join(crowdzoo.__version__.split(".")[:2]) in [path.name for path in RELEASES]


@ALL
def test_every_file_is_covered(release):
    files = [path for path in release.rglob("*") if path.is_file()]
    assert [path.name for path in files if not any(path.match(f"{release.name}/{name}") for name in COVERED)] == []
    assert [name for name in COVERED if not any(path.match(f"{release.name}/{name}") for path in files)] == []
    assert sum(path.stat().st_size for path in files) < 200_000


def test_every_module_that_writes_files_is_listed():
    folders = {"crowdzoo": "crowdzoo", "components": "crowdzoo.components", "pipelines": "crowdzoo.pipelines",
               "serving": "crowdzoo.serving"}  # fmt: skip
    found = set()
    for folder, package in folders.items():
        for path in (ROOT / folder).rglob("*.py"):
            source = path.read_text(encoding="utf-8")
            if not any(name in source for name in CALLS):
                continue
            tree = ast.parse(source)
            calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
            if CALLS & {getattr(each, "attr", getattr(each, "id", None)) for each in calls}:
                found.add(".".join([package, *path.relative_to(ROOT / folder).with_suffix("").parts]))
    assert found == set(WRITERS)


@ALL
@pytest.mark.parametrize("kind", ["classification", "regression", "preference"])
def test_annotations_are_read(release, kind):
    annotations = Annotations.from_parquet(release / f"annotations-{kind}.parquet")
    assert annotations.kind == kind
    assert annotations.annotators.tolist() == ["ann", "bob", "eve"]
    assert len(annotations.labels) == 9
    if kind == "classification":
        assert annotations.classes.tolist() == ["cat", "dog", "🐈"]
        assert annotations.tasks.tolist() == ["a", "b", "ç"]
        other = Annotations.from_csv(release / "annotations.csv")
        np.testing.assert_array_equal(annotations.labels, other.labels)


@ALL
def test_aggregations_are_read(release):
    classes = Aggregation.from_parquet(release / "aggregation-classification")
    assert [str(classes.classes[label]) for label in classes.labels] == ["cat", "dog", "cat"]
    np.testing.assert_allclose(classes.posteriors.sum(axis=1), 1)
    assert classes.confusions.shape == (3, 3, 3)
    ratings = RatingAggregation.from_parquet(release / "aggregation-regression")
    assert np.argsort(ratings.estimates).tolist() == [2, 0, 1]
    preferences = PreferenceAggregation.from_parquet(release / "aggregation-preference")
    assert len(preferences.scores) == 3
    sentences = SequenceAggregation.from_parquet(release / "aggregation-sequence")
    assert sentences.labels.shape == (3,)


@ALL
def test_sentences_are_read(release):
    spans, gold = read_spans(release / "spans.jsonl"), read_gold(release / "sentences.gold.conll")
    columns = read_conll(release / "sentences.conll", header=True)
    assert spans.tokens == columns.tokens == gold.tokens == (("Anna", "in", "Paris"),)
    assert spans.answers(0) == columns.answers(0) == {"ann": ["B-PER", "O", "B-LOC"], "bob": ["O", "O", "B-LOC"]}


@ALL
def test_a_model_is_read_and_answers_and_its_files_too(release):
    model = load_model(release / "model.keras")
    names = read_model_names(release / "model.names.json")
    training = names.pop("training")
    assert names == {"classes": ["cat", "dog", "🐈"], "annotators": ["ann", "bob", "eve"], "features": ["f0", "f1"]}
    assert (training["method"], training["settings"]["hidden"]) == ("ccem", [2])
    probabilities = np.asarray(model.predict(np.zeros((2, 2), "float32"), verbose=0))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-6)
    assert model.annotator_confusions().shape == (3, 3, 3)
    assert read_model_card(release / "model_card.json")["classes"] == names["classes"]


@ALL
def test_the_information_on_a_data_set_is_read(release):
    assert _dataset_info(release / "dataset.json")["annotators"] == ["ann", "bob", "eve"]


@ALL
def test_reports_are_read_and_carry_their_version(release):
    before = read_numbers(release / "report.json")
    classes = Annotations.from_parquet(release / "annotations-classification.parquet")
    page = report_page(classes, Aggregation.from_parquet(release / "aggregation-classification"), before=before)
    assert page.changes["annotators"]["both"] == 3
    assert json.loads((release / "quality" / "summary.json").read_text(encoding="utf-8"))["format_version"] == 1


def _raise_version(path: Path) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    assert content["format_version"] >= 1
    path.write_text(json.dumps({**content, "format_version": 99}), encoding="utf-8")


@pytest.mark.parametrize("kind", ["classification", "regression", "preference", "sequence"])
def test_an_aggregation_of_a_later_release_is_refused(kind, tmp_path):
    shutil.copytree(RELEASES[-1] / f"aggregation-{kind}", tmp_path / "result")
    _raise_version(tmp_path / "result" / "summary.json")
    reader = {"classification": Aggregation, "regression": RatingAggregation, "preference": PreferenceAggregation,
              "sequence": SequenceAggregation}[kind]  # fmt: skip
    with pytest.raises(DataError, match=r"summary.json: written by a later crowdzoo \(format 99\)"):
        reader.from_parquet(tmp_path / "result")


def test_annotations_of_a_later_release_are_refused(tmp_path):
    table = pq.read_table(RELEASES[-1] / "annotations-classification.parquet")
    about = {**json.loads(table.schema.metadata[KEY]), "version": 99}
    pq.write_table(table.replace_schema_metadata({KEY: json.dumps(about)}), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"a.parquet: written by a later crowdzoo \(format 99\)"):
        Annotations.from_parquet(tmp_path / "a.parquet")


def _dataset_info(path: Path) -> dict:
    pytest.importorskip("tfx")
    from crowdzoo.records.example_files import read_dataset_info

    return read_dataset_info(str(path.parent))


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("model.names.json", read_model_names),
        ("model_card.json", read_model_card),
        ("dataset.json", _dataset_info),
    ],
)
def test_files_of_a_model_and_a_data_set_of_a_later_release_are_refused(name, read, tmp_path):
    shutil.copy(RELEASES[-1] / name, tmp_path)
    _raise_version(tmp_path / name)
    with pytest.raises(DataError, match=rf"{name}: written by a later crowdzoo \(format 99\)"):
        read(tmp_path / name)


def test_a_model_of_a_later_release_is_refused():
    model = load_model(RELEASES[-1] / "model.keras")
    with pytest.raises(DataError, match=r"CrowdModel: written by a later crowdzoo \(format 99\)"):
        crowdzoo.CrowdModel.from_config({**model.get_config(), "format_version": 99})


@pytest.mark.parametrize("version", [0, True, "1", 1.0])
def test_a_version_that_is_none_is_refused(version, tmp_path):
    shutil.copy(RELEASES[-1] / "model_card.json", tmp_path)
    content = json.loads((tmp_path / "model_card.json").read_text(encoding="utf-8"))
    (tmp_path / "model_card.json").write_text(json.dumps({**content, "format_version": version}), encoding="utf-8")
    with pytest.raises(DataError, match=r"model_card.json: the version of its format is"):
        read_model_card(tmp_path / "model_card.json")
