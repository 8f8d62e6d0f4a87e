"""DriftValidator: compares the data with those of the served model by TensorFlow Data Validation's comparators."""

import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import tensorflow_data_validation as tfdv
from tensorflow_metadata.proto.v0 import schema_pb2, statistics_pb2

from crowdzoo.components import tfx_internals as tfx
from crowdzoo.components.annotation_example_gen import ANNOTATIONS_FILE
from crowdzoo.components.artifacts import AnnotationsArtifact, DriftAnomalies
from crowdzoo.components.code_version import code_version
from crowdzoo.components.remote_files import fetch, is_remote, remote_files
from crowdzoo.components.remote_serving import remote_versions
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import PipelineError
from crowdzoo.files.served_model import DRIFT_FOLDER
from crowdzoo.files.version_folders import complete_versions
from crowdzoo.training.digest import digest_of

Statistics: TypeAlias = statistics_pb2.DatasetFeatureStatisticsList
ANOMALIES_FILE, SOURCE_FILE = "anomalies.json", "source.txt"
STATISTICS_FILE, SCHEMA_FILE = "statistics.pb", "schema.pbtxt"
KEEP, FAIL = "keep", "fail"
LEAST_VALUES = 100
LABELS = "crowd.label"
QUOTE = "'"  # around names with a dot
# Names, codes and answers, which differ in every table; the statistics of the crowd summarise them
_NOT_COMPARED = ("task", "annotator_ids", "annotator_labels", "gold")


# No `from __future__ import annotations` in files of components: TFX reads annotations at run time.
@tfx.component
def DriftValidator(  # noqa: N802, the function's name is the component's
    statistics: tfx.InputArtifact[tfx.standard_artifacts.ExampleStatistics],
    schema: tfx.InputArtifact[tfx.standard_artifacts.Schema],
    annotations: tfx.InputArtifact[AnnotationsArtifact],
    drift: tfx.OutputArtifact[DriftAnomalies],
    settings: tfx.Parameter[str],
    code_version: tfx.Parameter[str],
    baseline: tfx.Parameter[str] = "",
) -> None:
    """Finds differences from the training data of the served model; a first run has none.

    The served version contains the schema and the statistics of its run. TensorFlow Data Validation checks the new
    statistics against that schema, so that a missing column or one of another type is an anomaly. It also compares
    distributions: of numbers by the Jensen-Shannon divergence, of categories by the L-infinity norm, the largest change
    of a share. It compares the features and, for the crowd, the shares of the classes (`crowd.label`; ratings as
    numbers), the number of annotations per task, and the share of pairs of labels per task that agree.

    Args:
        statistics: output of StatisticsGen; the split train is used.
        schema: output of SchemaGen.
        annotations: output of AnnotationExampleGen.
        drift: receives `anomalies.json`, a list of sentences, and data to store with the model if it is pushed.
        settings: JSON of `serving`, the folder of pushed models (a path or URI); `jensen_shannon` and `infinity_norm`,
            the limits; and `action` in case of anomalies: `fail` ends the run, `keep` prevents the blessing by the
            Evaluator, `warn` only reports them.
        code_version: hash of the component's code, for TFX's cache; computed by default.
        baseline: source of the statistics to compare with, see `statistics_source`, for TFX's cache.

    Raises:
        PipelineError: there are anomalies, and `action` is `fail`.
    """
    del code_version, baseline
    options, source = json.loads(settings), statistics_digest(statistics.uri)
    crowd = crowd_statistics(Annotations.from_parquet(os.path.join(annotations.uri, ANNOTATIONS_FILE)))
    current = tfdv.load_stats_binary(_statistics_file(statistics.uri))
    current.datasets[0].features.extend(crowd.datasets[0].features)
    kept = tfdv.load_schema_text(os.path.join(schema.uri, SCHEMA_FILE))
    crowd_schema = tfdv.infer_schema(crowd)
    kept.feature.extend(crowd_schema.feature)
    kept.string_domain.extend(crowd_schema.string_domain)
    Path(drift.uri, STATISTICS_FILE).write_bytes(current.SerializeToString())
    with tempfile.TemporaryDirectory() as folder:
        before = fetch_baseline(options["serving"], source, folder)
        anomalies = [] if before is None else find_drift(current, before, options)
    tfdv.write_schema_text(kept, os.path.join(drift.uri, SCHEMA_FILE))
    Path(drift.uri, SOURCE_FILE).write_text(source)
    Path(drift.uri, ANOMALIES_FILE).write_text(json.dumps({"action": options["action"], "anomalies": anomalies}))
    if anomalies and options["action"] == FAIL:
        raise PipelineError(f"{said(anomalies)}. If that is intended, run once with --set drift.action=warn")


def said(anomalies: Sequence[str]) -> str:
    """One sentence without its period about all differences from the data of the served model."""
    return f"the data differ from those of the served model: {'; '.join(anomalies)}"


def crowd_statistics(annotations: Annotations) -> Statistics:
    """Statistics of a crowd: `crowd.label` per annotation, `crowd.annotations` and `crowd.agreement` per task.

    Those per task are categories, because divergences are not informative for numbers that are nearly all equal.
    Agreement is the share of a task's pairs of labels that are equal, in tenths; it exists only for labels that are a
    class of the whole task. Texts and regions do not have `crowd.label` either.
    """
    kind, sizes = annotations.label_kind, annotations.redundancy
    columns = {"crowd.annotations": pd.Series(sizes[sizes > 0].astype(str))}
    if kind.has_numbers:
        columns[LABELS] = pd.Series(annotations.labels, dtype=float)
    elif annotations.classes is not None:
        columns[LABELS] = pd.Series(annotations.classes.astype(object)[annotations.labels].astype(str))
    if kind.one_class:
        votes = np.zeros((annotations.num_tasks, annotations.num_classes))
        np.add.at(votes, (annotations.task_ids, annotations.labels), 1)
        equal, pairs = (votes * (votes - 1)).sum(axis=1), sizes * (sizes - 1)
        columns["crowd.agreement"] = pd.Series(np.round(equal[pairs > 0] / pairs[pairs > 0], 1).astype(str))
    return tfdv.generate_statistics_from_dataframe(pd.DataFrame(columns))


def find_drift(current: Statistics, before: Path, limits: Mapping[str, float]) -> list[str]:
    """Compares statistics with those of an earlier run by Data Validation; one sentence per feature that differs.

    Args:
        current: statistics of the new data; features that are not compared are removed.
        before: folder of the earlier run's `schema.pbtxt` and `statistics.pb`.
        limits: `jensen_shannon` and `infinity_norm`. They apply to features with at least 100 values in both runs, as
            with fewer, differences by chance are larger. For a table's column of words, the same limit applies to the
            share of new words; a new class is always an anomaly.
    """
    return sentences(compare(current, before, limits, lambda name: name in _NOT_COMPARED))


def compare(
    current: Statistics,
    before: Path,
    limits: Mapping[str, float],
    is_left_out: Callable[[str], bool],
    served: bool = False,
) -> Any:
    """As `find_drift`, with the distances as well.

    Args:
        current: see `find_drift`.
        before: see `find_drift`.
        limits: see `find_drift`.
        is_left_out: function of a feature's name that tells whether it is not compared.
        served: whether to use Data Validation's comparator of skew instead of that of drift.

    Returns:
        Data Validation's `Anomalies`.
    """
    schema = tfdv.load_schema_text(str(before / SCHEMA_FILE))
    earlier = Statistics.FromString((before / STATISTICS_FILE).read_bytes())
    for features in (current.datasets[0].features, earlier.datasets[0].features):
        _remove(features, lambda feature: is_left_out(feature.path.step[0]))
    _remove(schema.feature, lambda feature: is_left_out(feature.name))
    sizes = [_sizes(statistics) for statistics in (current, earlier)]
    for feature in schema.feature:
        if feature.name != LABELS:
            if "/" in feature.name and feature.type == schema_pb2.BYTES:  # a table's column of words
                feature.distribution_constraints.min_domain_mass = 1 - limits["infinity_norm"]
            else:  # texts and words, of which most are new
                feature.ClearField("domain_info")
        if min(size.get(feature.name, 0) for size in sizes) < LEAST_VALUES:
            continue
        comparator = feature.skew_comparator if served else feature.drift_comparator
        if feature.type == schema_pb2.BYTES:
            comparator.infinity_norm.threshold = limits["infinity_norm"]
        else:
            comparator.jensen_shannon_divergence.threshold = limits["jensen_shannon"]
    # both distances are symmetric, so the new data can be checked against the schema
    others = {"serving_statistics" if served else "previous_statistics": earlier}
    return tfdv.validate_statistics(current, schema, **others)


def sentences(anomalies: Any) -> list[str]:
    """One sentence, without its period, per feature of Data Validation's `Anomalies`."""
    return [
        f"{name.strip(QUOTE)}: {info.description.rstrip('.')}" for name, info in sorted(anomalies.anomaly_info.items())
    ]


def _remove(features: Any, is_unwanted: Callable[[Any], bool]) -> None:
    """Removes messages of a repeated field."""
    for place in reversed([place for place, feature in enumerate(features) if is_unwanted(feature)]):
        del features[place]


def _sizes(statistics: Statistics) -> dict[str, int]:
    """Number of examples with a value, by the name of the feature."""
    return {
        feature.path.step[0]: getattr(feature, feature.WhichOneof("stats")).common_stats.num_non_missing
        for feature in statistics.datasets[0].features
    }


def statistics_digest(folder: str) -> str:
    """Hash of the statistics of the split train in the folder of StatisticsGen's artifact."""
    return digest_of(Path(_statistics_file(folder)))


def statistics_source(folder: Path) -> str:
    """Hash of the statistics from which a folder of DriftValidator was made, see `statistics_digest`."""
    return (folder / SOURCE_FILE).read_text()


def _statistics_file(folder: str) -> str:
    return os.path.join(folder, "Split-train", "FeatureStats.pb")


def fetch_baseline(serving: str, source: str, place: str) -> Path | None:
    """Returns the folder of schema and statistics of the run whose model is served.

    A version made from the same statistics is skipped, so that a run repeated after its model was pushed has the same
    result.

    Args:
        serving: the serving folder, a path or a URI.
        source: hash of the new statistics, see `statistics_digest`.
        place: a folder that receives a copy of files from an object store.

    Returns:
        The folder; None if no version has one.
    """
    remote = is_remote(serving)
    for version in reversed(remote_versions(serving) if remote else [*map(str, complete_versions(serving))]):
        folder = Path(version, DRIFT_FOLDER)
        if remote:
            folder = Path(place, version.rsplit("/", 1)[1])
            if remote_files(f"{version}/{DRIFT_FOLDER}/{SOURCE_FILE}"):
                fetch(f"{version}/{DRIFT_FOLDER}", folder)
        if (folder / SOURCE_FILE).is_file() and statistics_source(folder) != source:
            return folder
    return None


DriftValidator = tfx.with_computed_defaults(DriftValidator, code_version=lambda _: code_version(__name__))
