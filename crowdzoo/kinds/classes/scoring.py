"""Comparison of classes with gold."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from crowdzoo.kinds.scoring import Codes, Flags, Floats, Rows, Scores, Scoring, Sums
from crowdzoo.metrics import expected_calibration_error

ENOUGH_GOLD = 50  # tasks needed to note a gap between probability and accuracy
LEAST_GAP = 0.05


class ClassScoring(Scoring[Codes, Floats]):
    """Gold is class codes, [N], -1 where unknown; answers are class probabilities, [n, K].

    The answer is the most probable class. In a tie, each class is the answer with equal probability.
    """

    metric = metric_title = "accuracy"
    titles: ClassVar = {
        "balanced_accuracy": "balanced accuracy",
        "cross_entropy": "log loss",
        "calibration_error": "calibration error",
    }
    by_annotations = True

    def known(self, gold: Codes) -> Flags:
        """Tasks with a non-negative code."""
        return np.asarray(gold >= 0)

    def sums(self, gold: Codes, answers: Floats) -> Sums:
        """Probability that each answer is correct."""
        from crowdzoo.aggregation.engine.labels import chance_correct

        return chance_correct(np.asarray(answers, np.float64), gold), np.ones(len(gold))

    def score(self, gold: Codes, answers: Floats) -> Scores:
        """Accuracy, its mean over the classes, cross-entropy (nats), and expected calibration error."""
        probabilities = np.asarray(answers, np.float64)
        correct, _ = self.sums(gold, probabilities)
        likelihood = np.clip(probabilities[np.arange(len(gold)), gold], 1e-7, 1)
        return {
            "accuracy": float(correct.mean()),
            "cross_entropy": float(-np.log(likelihood).mean()),
            "balanced_accuracy": float(np.mean([correct[gold == code].mean() for code in np.unique(gold)])),
            "calibration_error": expected_calibration_error(gold, probabilities),
        }

    def rows(self, gold: Codes, answers: Floats, split: str = "") -> Rows:
        """Accuracy; for an aggregation also the calibration of its probabilities."""
        number = len(gold)
        if not number:
            return [("accuracy", "unknown (on 0 tasks with gold, ties at random)")]
        scores = self.score(gold, answers)
        accuracy = scores["accuracy"]
        if split:
            return [(f"{split} accuracy against gold", f"{accuracy:.3f} ({number:,} tasks)")]
        probability = float(answers.max(axis=1).mean())
        rows = [
            ("accuracy", f"{accuracy:.4f} (on {number:,} task{'s'[: number > 1]} with gold, ties at random)"),
            ("mean probability there", f"{probability:.4f}"),
            ("expected calibration error", f"{scores['calibration_error']:.4f}"),
        ]
        gap, error = abs(probability - accuracy), math.sqrt(accuracy * (1 - accuracy) / number)
        if number >= ENOUGH_GOLD and gap > max(LEAST_GAP, 2 * error):
            side = "above" if probability > accuracy else "below"
            text = f"On the tasks with gold the probabilities are {gap:.2f} {side} the accuracy: correct them with "
            rows.append(("note", f"{text}--calibrate; the tasks with gold should be a random sample."))
        return rows


SCORING = ClassScoring()
