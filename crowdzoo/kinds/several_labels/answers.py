"""LabelAnswers: sets of labels as yes or no to each label, and agreement of annotators on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crowdzoo.data.annotations import Annotations
from crowdzoo.kinds.scoring import Codes, Flags, Floats
from crowdzoo.quality.figures import NORMAL_975, wilson
from crowdzoo.quality.krippendorff import Alpha, draw_tasks, with_interval

EXCHANGED = 0.75  # share of reversed answers among cases that distinguish two labels


@dataclass(frozen=True, eq=False)
class LabelAnswers:
    """A answers of R annotators to N tasks, each a subset of J labels.

    Attributes:
        tasks: task of each answer, ascending, int64 [A].
        annotators: annotator of each answer, int64 [A].
        labels: whether each answer has each label, bool [A, J].
        sizes: number of answers per task, int64 [N].
        yes: number of answers per task with each label, int64 [N, J].
        num_annotators: number of annotators, R.
    """

    tasks: Codes
    annotators: Codes
    labels: Flags
    sizes: Codes
    yes: Codes
    num_annotators: int

    @classmethod
    def of(cls, annotations: Annotations, codes: Codes) -> LabelAnswers:
        """Create the answers of a table with one row per label of an answer.

        Args:
            annotations: kind classification.
            codes: classes that are labels, [J]; other classes mean no label.
        """
        number = max(annotations.num_annotators, 1)
        answers, answer_of = np.unique(annotations.task_ids * number + annotations.annotator_ids, return_inverse=True)
        every = np.zeros((len(answers), annotations.num_classes), bool)
        every[answer_of, annotations.labels] = True
        tasks, labels = answers // number, every[:, codes]
        yes = np.zeros((annotations.num_tasks, len(codes)), np.int64)
        np.add.at(yes, tasks, labels)
        sizes = np.bincount(tasks, minlength=annotations.num_tasks)
        return cls(tasks, answers % number, labels, sizes, yes, annotations.num_annotators)

    def alphas(
        self, bootstrap: int, seed: int, on_sample: Callable[[], None] | None = None
    ) -> tuple[Alpha | None, list[Alpha | None]]:
        """Krippendorff's alpha of all labels together and of each label, with 95 % bootstrap intervals over tasks.

        Alpha of a label is that of its yes and no. Alpha of all labels is one minus the sum of observed disagreements
        divided by the sum of expected ones, so that frequent labels count more.

        Args:
            bootstrap: number of samples; 0 for no intervals.
            seed: seed of the samples.
            on_sample: called after each sample.

        Returns:
            Both; None if all answers are equal, or no task has two answers.
        """
        rows = self.sizes > 1
        sizes, yes = self.sizes[rows].astype(np.float64), self.yes[rows].astype(np.float64)
        observed = 2 * yes * (sizes[:, None] - yes) / np.maximum(sizes[:, None] - 1, 1)

        def disagreements(weights: Floats) -> tuple[Floats, Floats]:
            number, of_label = float(weights @ sizes), weights @ yes
            expected = 2 * of_label * (number - of_label) / max(number * (number - 1), 1.0)
            return weights @ observed / max(number, 1.0), expected

        seen, chance = disagreements(np.ones(len(sizes)))
        bootstrap = bootstrap if len(sizes) > 1 else 0  # a single task has no interval
        samples = [disagreements(weights) for weights in draw_tasks(len(sizes), bootstrap, seed, on_sample)]

        def alpha(places: slice) -> Alpha | None:
            above, below = float(seen[places].sum()), float(chance[places].sum())
            if not below > 0:
                return None
            result = Alpha(1 - above / below, "nominal", above, below, len(sizes), int(sizes.sum()))
            sums = ((first[places].sum(), second[places].sum()) for first, second in samples)
            return with_interval(result, [1 - first / second for first, second in sums if second > 0])

        number = self.labels.shape[1]
        return alpha(slice(0, number)), [alpha(slice(label, label + 1)) for label in range(number)]

    @cached_property
    def _others(self) -> Floats:
        """For each answer and label, the share of the others who give the label, [A, J]; 0 without other answers."""
        several = (self.sizes[self.tasks] > 1)[:, None]
        peers = np.maximum(self.sizes[self.tasks] - 1, 1)[:, None]
        return np.where(several, (self.yes[self.tasks] - self.labels) / peers, 0.0)

    def exchanges(self, wanted: Flags) -> dict[int, list[tuple[int, int]]]:
        """Pairs of labels that annotators swap, by annotator; most annotators swap none.

        Where the others give one of the two labels, the annotator nearly always gives the other: significantly more
        often than in three quarters of the cases, by Wilson's interval. Where the others give both or none, so does the
        annotator; otherwise, annotators who invert all answers would count.

        Args:
            wanted: annotators to check, bool [R].
        """
        pairs: dict[int, list[tuple[int, int]]] = {}
        for annotator in np.flatnonzero(wanted).tolist():
            mine = self.annotators == annotator
            labels, rest = self.labels[mine].astype(np.float64), self._others[mine]
            both, seen = labels.T @ rest, rest.T @ rest
            diagonal, weight = both.diagonal(), seen.diagonal()
            apart = weight[:, None] + weight - 2 * seen
            turned = (both + both.T - diagonal[:, None] - diagonal) / np.maximum(apart, 1e-12)
            sums = labels.sum(axis=0) + rest.sum(axis=0)
            together = both + both.T + diagonal[:, None] + diagonal - sums[:, None] - sums + len(labels)
            low = wilson(np.clip((1 + turned) / 2, 0, 1), apart)[0]
            for first, second in np.argwhere(np.triu((np.nan_to_num(low) > EXCHANGED) & (together > 0), 1)).tolist():
                pairs.setdefault(annotator, []).append((first, second))
        return pairs

    @cached_property
    def _disagreements(self) -> tuple[Floats, Floats]:
        """For each answer and label, the share of the others who disagree, and that expected by chance, [A, J] each.

        Chance is based on the others' answers to all tasks that the annotator answered. Both are 0 for tasks without
        other answers.
        """
        several, rest = (self.sizes[self.tasks] > 1)[:, None], self._others
        shared = np.bincount(self.annotators[several[:, 0]], minlength=self.num_annotators)
        share = np.zeros((self.num_annotators, self.labels.shape[1]))
        np.add.at(share, self.annotators, rest)
        share = (share / np.maximum(shared, 1)[:, None])[self.annotators]
        shares = np.where(self.labels, 1 - rest, rest), np.where(self.labels, 1 - share, share)
        return shares[0] * several, shares[1] * several

    def agreement(self, label: int | None = None) -> Floats:
        """Agreement of each annotator with the others beyond chance, [4, R]: value, ends of its interval, and weight.

        One minus the annotator's disagreements with others on the same tasks, divided by those expected if the others'
        answers to these tasks were permuted at random: 1 is perfect agreement, 0 is chance. The 95 % interval is that
        of a ratio of sums over answers. The weight is the number of disagreements expected by chance.

        Args:
            label: a label; None: all labels together.
        """
        seen, chance = self._disagreements
        labels = slice(None) if label is None else slice(label, label + 1)
        rows = self.sizes[self.tasks] > 1
        annotators, number = self.annotators[rows], self.num_annotators
        seen, chance = seen[rows, labels].sum(axis=1), chance[rows, labels].sum(axis=1)
        counts, total = np.bincount(annotators, minlength=number), np.bincount(annotators, chance, number)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = 1 - np.bincount(annotators, seen, number) / total
            residues = np.bincount(annotators, (chance - seen - value[annotators] * chance) ** 2, number)
            width = NORMAL_975 * np.sqrt(residues * counts / (counts - 1.0)) / total
        known = (total > 0) & (counts > 1)
        value = np.where(total > 0, value, np.nan)
        return np.stack([value, np.where(known, value - width, np.nan), np.where(known, value + width, np.nan), total])
