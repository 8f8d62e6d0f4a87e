"""The result of a run of the pipeline."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Deciding metric -> line of the summary, and unit of the count
_SCORES = {
    "accuracy": ("Accuracy:    {accuracy:.4f}", "tasks"),
    "f1": ("F1:          {f1:.4f} (precision {precision:.4f}, recall {recall:.4f})", "tasks"),
    "r2": ("R²:          {r2:.4f} (MAE {mae:.4f}, RMSE {rmse:.4f})", "tasks"),
    "dice": ("Dice:        {dice:.4f}", "images"),
    "pair_accuracy": ("Right pairs: {pair_accuracy:.4f}", "pairs"),
}


@dataclass(frozen=True)
class RunResult:
    """The result of a run of the pipeline, and the places of its files.

    Attributes:
        pushed: folder of the served version with this run's model; None if it was not pushed.
        reason: why it was pushed, or why not; one sentence.
        blessed: whether the Evaluator blessed the model, and no condition of the page holds.
        evaluation: the Evaluator's summary, as in `evaluation.json`.
        seconds: wall time of each component, in the order of the run, including cached ones.
        cached: names of the components whose result came from the cache.
        total_seconds: wall time of the whole run.
        anomalies: anomalies from ExampleValidator and DriftValidator, one sentence each.
        model: folder of the trained model's artifact: `Format-Serving/` is the SavedModel.
        model_run: folder of the training's own files: `model.keras`, `history.json`.
        report: folder of the annotator report.
        page: the page about the crowd and the model, with report.json next to it; None if none was written.
        annotations: folder of the annotations artifact.
        serving: folder of all pushed versions.
        metadata: SQLite file of ML Metadata.
        log: log file of this run.
    """

    pushed: Path | None
    reason: str
    blessed: bool
    evaluation: Mapping[str, Any]
    seconds: Mapping[str, float]
    cached: tuple[str, ...]
    total_seconds: float
    anomalies: tuple[str, ...]
    model: Path
    model_run: Path
    report: Path
    page: Path | None
    annotations: Path
    serving: Path
    metadata: Path
    log: Path

    @property
    def undecided(self) -> bool:
        """Whether the Evaluator held the model back because there were too few tasks to decide."""
        return self.evaluation.get("outcome") == "undecided" and not self.evaluation["blessed"]

    def summary(self) -> str:
        """A few lines for the terminal: the verdict, the accuracy and the places of files."""
        candidate = self.evaluation["candidate"]
        truth = {"gold": "gold labels", "aggregated": "aggregated labels"}[self.evaluation["truth"]]
        line, counted = _SCORES[self.evaluation["metric"]]
        score = line.format(**candidate)
        held = "undecided, so not pushed" if self.undecided else "not pushed"
        lines = [
            f"Model:       {self.pushed or held}: {self.reason}",
            f"{score} on {candidate['tasks']:,} {counted}, against {truth}",
            *_held_out(candidate, self.evaluation["baseline"]),
            f"Annotators:  {self.report}",
            *([] if self.page is None else [f"Page:        {self.page}"]),
            f"Metadata:    {self.metadata}",
            f"Log:         {self.log}",
            f"Time:        {self.total_seconds:.1f} s, {len(self.cached)} of {len(self.seconds)} components cached",
        ]
        lines += [f"Anomaly:     {anomaly}" for anomaly in self.anomalies]
        return "\n".join(lines)


def _held_out(candidate: Mapping[str, Any], baseline: Mapping[str, Any] | None) -> list[str]:
    """A line about the annotations of the held-out tasks; empty if models were not compared by them."""
    if "annotation_log_likelihood" not in candidate:
        return []
    value, number = candidate["annotation_log_likelihood"], candidate["annotations"]
    line = f"Held out:    log-likelihood {value:.4f} nats for each of {number:,} annotations"
    if baseline is not None:
        error = candidate["gain_error"]
        line += (
            f", {candidate['gain']:+.4f}{'' if error is None else f' ± {1.96 * error:.4f}'} against the served model"
        )
    return [line]
