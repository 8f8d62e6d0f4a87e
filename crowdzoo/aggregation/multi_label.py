"""MultiLabel: several labels per task, each aggregated as a yes-or-no question by a method for classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from crowdzoo.aggregation.base import VotesWarning, ignored
from crowdzoo.aggregation.calibration import calibrate
from crowdzoo.aggregation.multi_label_aggregation import SEPARATOR, MultiLabelAggregation
from crowdzoo.aggregation.named import FOR_CLASSES, aggregator_named, result_of
from crowdzoo.checks.constraints import Checked, Choice, setting
from crowdzoo.data.label_kinds import CLASSIFICATION, require_kind
from crowdzoo.errors import ConfigError, DataError, Setting, bad_setting, short_repr

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

MOST_LABELS = 2000
LEAST = 1e-9  # fewest expected tasks with (without) a label for which sensitivity (specificity) is defined


@dataclass(frozen=True)
class MultiLabel(Checked):
    """Several labels per task, each aggregated as a yes-or-no question by a method for classes.

    An annotator's answer to a task is a set of labels. For each label, the answers become a table of two classes, "no"
    and "yes", to which the method is fitted. Labels are treated as independent (binary relevance): that a cat is also
    an animal must be in the answers.

    Args:
        method: a key of `METHODS`, such as "dawid-skene".
        none: label that represents an empty set, for answers without labels. It is not a label of the result.
        settings: arguments of the method.

    Raises:
        ConfigError: an unknown method or setting, or a value out of range.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import MultiLabel
        >>> task, annotator = [1, 1, 1, 1, 2, 2, 2], ["ann", "ann", "bob", "cem", "ann", "bob", "cem"]
        >>> labels = ["cat", "indoors", "cat", "cat", "dog", "dog", "dog"]
        >>> annotations = Annotations.from_arrays(task, annotator, labels, on_duplicate="all")
        >>> MultiLabel("majority-vote").fit(annotations).label_sets
        [['cat'], ['dog']]

    Source:
        Binary relevance: M.-L. Zhang and Z.-H. Zhou, A Review on Multi-Label Learning Algorithms, IEEE Transactions on
        Knowledge and Data Engineering 26 (2014), section 3.1. Several annotators per task: as in cleanlab's issue 930.
    """

    title: ClassVar[str] = "Multi-label"

    method: str = setting("robust", Choice(FOR_CLASSES))
    none: str = "(none)"
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.none, str) or not self.none:
            raise bad_setting("none", "must be the name of a label", self.none, "MultiLabel")
        if not isinstance(self.settings, dict) or not all(isinstance(name, str) for name in self.settings):
            raise bad_setting("settings", "must be a dictionary of the method's settings", self.settings, "MultiLabel")
        aggregator_named(FOR_CLASSES, self.method, self.settings)

    def tables(self, annotations: Annotations) -> dict[Any, Annotations]:
        """Converts the answers to one table of two classes per label, for other methods and agreement.

        Args:
            annotations: kind classification. All labels that an annotator gave to a task are one answer, so read them
                with `on_duplicate="all"`.

        Returns:
            Label -> annotations with the classes "no" and "yes", of the same tasks and annotators.

        Raises:
            DataError: wrong kind; no label, or more than 2,000; a label with "|" in its name; or an answer with `none`
                and another label.
        """
        from crowdzoo.data.annotations import Annotations

        if not isinstance(annotations, Annotations):
            raise DataError(
                f"MultiLabel: needs Annotations, got {short_repr(annotations)}. Read a file by "
                "Annotations.read(FILE, on_duplicate='all')."
            )
        require_kind(annotations.label_kind, "MultiLabel", CLASSIFICATION)
        named = np.asarray(annotations.classes)
        is_label = np.array([str(name) != self.none for name in named.tolist()], bool)
        if not is_label.any():
            raise DataError("MultiLabel: no annotation gives a task a label, so there is nothing to aggregate.")
        count = int(is_label.sum())
        if count > MOST_LABELS:
            raise DataError(
                f"MultiLabel: {count:,} labels need {count:,} fits, and at most {MOST_LABELS:,} are "
                "allowed. Is the label a free text, or a list with another separator? Name the column of labels, or "
                "leave out the rare ones."
            )
        if bad := [str(name) for name in named[is_label].tolist() if SEPARATOR in str(name)]:
            raise DataError(
                f"MultiLabel: the label {bad[0]!r} contains {SEPARATOR}, the separator of labels in the result. "
                f"If it is several labels, split them with {Setting('label_separator')}; otherwise rename it."
            )
        number = max(annotations.num_annotators, 1)
        answers, answer_of = np.unique(annotations.task_ids * number + annotations.annotator_ids, return_inverse=True)
        chosen = np.zeros((len(answers), len(named)), np.int64)
        chosen[answer_of, annotations.labels] = 1
        both = np.flatnonzero(chosen[:, ~is_label].any(axis=1) & chosen[:, is_label].any(axis=1))
        if len(both):
            task, who = divmod(int(answers[both[0]]), number)
            raise DataError(
                f"MultiLabel: annotator {str(annotations.annotators[who])!r} gives task "
                f"{str(annotations.tasks[task])!r} {self.none!r}, which represents no label, and another label. "
                "Remove one of them."
            )
        names = annotations.tasks, annotations.annotators, np.array(["no", "yes"], object)
        return {
            named[label]: Annotations("classification", answers // number, answers % number, chosen[:, label], *names)
            for label in np.flatnonzero(is_label)
        }

    def fit(
        self, annotations: Annotations, gold: Mapping[Any, ArrayLike] | None = None, calibrated: bool = False
    ) -> MultiLabelAggregation:
        """Aggregates each label.

        Args:
            annotations: as for `tables`; not changed.
            gold: for each label with known tasks, whether it applies: 1, 0, or -1 where unknown, int [N]. These tasks
                keep the known value.
            calibrated: whether to fit the labels without gold, and correct each label that has gold by `calibrate`,
                which adds `accuracy_intervals`. Such a label needs at least 20 known tasks.

        Raises:
            DataError: as `tables`, the method and `calibrate`; or gold for a label that nobody gave.
            ConfigError: `calibrated` without gold.

        Warns:
            ConvergenceWarning: from the method, once per label.
        """
        tables = self.tables(annotations)
        known = dict(gold or {})
        if calibrated and not known:
            raise ConfigError("MultiLabel: calibrated needs gold.")
        if strange := [label for label in known if label not in tables]:
            raise DataError(f"MultiLabel: gold has the label {strange[0]!r}, which no annotation has.")
        results = []
        with ignored(VotesWarning):  # `notes` has them, with the label
            for label, table in tables.items():
                method = aggregator_named(FOR_CLASSES, self.method, self.settings)
                try:
                    result = result_of(method, table, *([known[label]] if label in known and not calibrated else []))
                    results.append(calibrate(result, table, known[label]) if calibrated and label in known else result)
                except DataError as error:
                    raise DataError(f"MultiLabel, label {label!r}: {error}") from error
        probabilities = np.stack([result.posteriors[:, 1] for result in results], axis=1)
        rates = [_rates(table, of_label) for table, of_label in zip(tables.values(), probabilities.T, strict=True)]
        first = next(iter(tables.values()))
        intervals = np.array([result.accuracy_interval or (np.nan, np.nan, np.nan) for result in results])
        of_labels = zip(tables, results, strict=True)
        notes = [f"{name}: {_of_label(note)}" for name, result in of_labels for note in result.notes]
        return MultiLabelAggregation(
            method=self.method,
            tasks=annotations.tasks,
            annotators=annotations.annotators,
            label_names=np.array([*tables], dtype=np.asarray(annotations.classes).dtype),
            probabilities=probabilities,
            chosen=probabilities > 0.5,
            sensitivity=np.stack([rate[0] for rate in rates], axis=1),
            specificity=np.stack([rate[1] for rate in rates], axis=1),
            annotations_per_task=first.redundancy,
            annotations_per_annotator=np.bincount(first.annotator_ids, minlength=first.num_annotators),
            accuracy_intervals=intervals if calibrated else None,
            converged=all(result.converged for result in results),
            num_iterations=max(result.num_iterations for result in results),
            notes=tuple(notes),
        )


def _of_label(note: str) -> str:
    """Rewrites a note on the classes "no" and "yes" as one on the label."""
    for name, holds, says in (("yes", "no", "give"), ("no", "every", "do not give")):
        note = note.replace(f"Class '{name}' is the label of no task", f"The label holds for {holds} task")
        if f"holds for {holds} task" in note:
            note = note.replace("of the annotations name it", f"of the answers {says} it")
    return note


def _rates(table: Annotations, probability: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sensitivity and specificity of each annotator, [R] each: shares of "yes" ("no") among expected yes (no)."""
    yes, is_yes = probability[table.task_ids], table.labels == 1
    shares = []
    for weight, right in ((yes, is_yes), (1 - yes, ~is_yes)):
        hits, all_of_them = (
            np.bincount(table.annotator_ids, weights, minlength=table.num_annotators)
            for weights in (weight * right, weight)
        )
        shares.append(np.where(all_of_them > LEAST, hits / np.maximum(all_of_them, LEAST), np.nan))
    return shares[0], shares[1]
