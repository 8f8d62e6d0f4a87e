"""Log a comparison to MLflow or to TensorBoard's HParams plugin, with their own libraries."""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from crowdzoo.checks.constraints import Choice
from crowdzoo.errors import ConfigError
from crowdzoo.report.plots import plot_comparison

TRACKERS = ("mlflow", "tensorboard")
LOGS = "tensorboard"  # folder of its event files


def log_comparison(where: str, comparison: Any, folder: Path | None, settings: Mapping[str, object]) -> None:
    """Log one run per method with its parameters and figures, and the table and the plot once.

    MLflow stores them at `MLFLOW_TRACKING_URI`, as child runs of one for the comparison. TensorBoard files are in the
    folder `tensorboard` next to the runs; an earlier one is replaced.

    Args:
        where: "mlflow" or "tensorboard".
        comparison: result of `compare`.
        folder: folder of the runs.
        settings: settings shared by all methods, in addition to their own.
    """
    frame = comparison.frame.dropna(subset="score")
    numbers = frame.drop(columns=["method", "level", "notes"]).to_dict("records")
    methods = [comparison.methods[title] for title in frame["method"]]
    figures = [
        {name.replace("²", "2"): value for name, value in row.items() if math.isfinite(value)} for row in numbers
    ]
    values = [{**settings, "method": method.name, **method.arguments} for method in methods]
    if where == "tensorboard" and folder is not None:
        import tensorflow as tf
        from tensorboard.plugins.hparams import api

        shutil.rmtree(folder / LOGS, ignore_errors=True)
        for place, (method, parameters, row) in enumerate(zip(methods, values, figures, strict=True)):
            with tf.summary.create_file_writer(str(folder / LOGS / f"{place:03}-{method.name}")).as_default():
                plain = {k: v if isinstance(v, bool | int | float | str) else str(v) for k, v in parameters.items()}
                api.hparams(plain, trial_id=method.title)
                for name, value in row.items():
                    tf.summary.scalar(name, value, step=0)
        with tf.summary.create_file_writer(str(folder / LOGS)).as_default():
            picture = plot_comparison(comparison, folder / LOGS / "comparison.png").read_bytes()
            tf.summary.image("comparison", tf.io.decode_png(picture)[None], step=0)
        return
    import mlflow

    print(f"logged to {mlflow.get_tracking_uri()}")
    with TemporaryDirectory() as scratch, mlflow.start_run(run_name="crowdzoo compare"):
        mlflow.set_tags({"measure": comparison.measure, "baseline": comparison.baseline, "best": comparison.best.title})
        mlflow.log_artifact(str(plot_comparison(comparison, Path(scratch) / "comparison.png")))
        comparison.frame.to_csv(Path(scratch) / "comparison.csv", index=False)
        mlflow.log_artifact(str(Path(scratch) / "comparison.csv"))
        for method, parameters, row in zip(methods, values, figures, strict=True):
            with mlflow.start_run(run_name=method.title, nested=True):
                mlflow.log_params(parameters)
                mlflow.log_metrics({name.replace("'", ""): value for name, value in row.items()})


def check_tracking(where: str, folder: Path | None) -> None:
    """Check before the runs that `log_comparison` will work after them.

    Raises:
        ConfigError: an unknown tracker, a library that is not installed, or TensorBoard without a folder.
    """
    Choice(TRACKERS).checked("compare", "track", where)
    if where == "tensorboard" and folder is None:
        raise ConfigError("compare: track='tensorboard' writes next to the runs: name their folder.")
    own = ("mlflow", "mlflow") if where == "mlflow" else ("tensorboard.plugins.hparams.api", "tensorflow")
    for module, extra in (own, ("matplotlib", "plots")):
        try:
            __import__(module)
        except ImportError:
            name = module.partition(".")[0]
            raise ConfigError(f"compare: track={where!r} needs {name}: pip install 'crowdzoo[{extra}]'") from None
