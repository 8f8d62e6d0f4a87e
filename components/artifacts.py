"""Artifact types of the pipeline.

Kubeflow wants a `TYPE_NAME` with one dot that can be imported from the top-level package.
"""

from crowdzoo.components.tfx_internals import Artifact


class AnnotationsArtifact(Artifact):
    """The pipeline's annotations: a folder with `annotations.parquet`, as `Annotations.to_parquet` writes it.

    The same folder has `tasks.parquet` (task, split, gold) and, if rows were rejected, `rejects.csv`.
    """

    TYPE_NAME = "crowdzoo.AnnotationsArtifact"


class AnnotatorReport(Artifact):
    """What aggregation of the train split found out, as `Aggregation.to_parquet` writes it.

    `annotators.parquet` and `annotators.csv` have a row per annotator: number of annotations and estimated
    accuracy; Parquet also the confusion matrix. `tasks.parquet` has the posteriors, `summary.json` the course of
    the estimation.
    """

    TYPE_NAME = "crowdzoo.AnnotatorReport"


class CrowdPage(Artifact):
    """A folder with `report.html`, a page on the crowd and its model, and `report.json`, the same as numbers.

    The custom property `model` is the fingerprint of the model (see `fingerprint`), where there is one.
    """

    TYPE_NAME = "crowdzoo.CrowdPage"


class DriftAnomalies(Artifact):
    """What DriftValidator found: `anomalies.json`; and `statistics.pb` and `schema.pbtxt`, which the next run needs."""

    TYPE_NAME = "crowdzoo.DriftAnomalies"
