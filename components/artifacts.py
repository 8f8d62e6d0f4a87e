"""Artifact types of the pipeline.

Kubeflow wants a `TYPE_NAME` with one dot that can be imported from the top-level package.
"""

from tfx.types import artifact

__all__ = ["AnnotationsArtifact", "AnnotatorReport"]


class AnnotationsArtifact(artifact.Artifact):
    """The pipeline's annotations: a folder with `annotations.parquet`, as `Annotations.to_parquet` writes it.

    `rejects.csv` stands beside it where `on_bad_rows` is `reject` and rows were rejected.
    """

    TYPE_NAME = "crowdzoo.AnnotationsArtifact"


class AnnotatorReport(artifact.Artifact):
    """What aggregation found out about the annotators.

    `annotators.parquet` and `annotators.csv` have a row per annotator: number of annotations and estimated
    accuracy; Parquet also the confusion matrix. `aggregation.json` tells how the estimation went.
    """

    TYPE_NAME = "crowdzoo.AnnotatorReport"
