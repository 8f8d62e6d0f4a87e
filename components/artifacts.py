"""Artifact types of the pipeline.

Kubeflow requires a `TYPE_NAME` with one dot that can be imported from the top-level package.
"""

from crowdzoo.components.tfx_internals import Artifact


class AnnotationsArtifact(Artifact):
    """The pipeline's annotations: a folder with `annotations.parquet`, as `Annotations.to_parquet` writes it.

    The same folder has `tasks.parquet` (task, split, gold) and, if rows were rejected, `rejects.csv`.
    """

    TYPE_NAME = "crowdzoo.AnnotationsArtifact"


class AnnotatorReport(Artifact):
    """The aggregation of the train split, as written by `Aggregation.to_parquet`.

    `annotators.parquet` and `annotators.csv` have a row per annotator: number of annotations and estimated accuracy;
    Parquet also the confusion matrix. `tasks.parquet` has the posteriors, `summary.json` the history of the estimation.
    """

    TYPE_NAME = "crowdzoo.AnnotatorReport"


class CrowdPage(Artifact):
    """A folder with `report.html`, a page about the crowd and its model, and `report.json`, its numbers.

    The custom property `model` is the fingerprint of the model (see `fingerprint`), if there is one.
    """

    TYPE_NAME = "crowdzoo.CrowdPage"


class DriftAnomalies(Artifact):
    """DriftValidator's `anomalies.json`, and `statistics.pb` and `schema.pbtxt` for the next run."""

    TYPE_NAME = "crowdzoo.DriftAnomalies"
