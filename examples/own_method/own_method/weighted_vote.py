"""WeightedVote: votes count by how often their annotator agrees with the others."""

from dataclasses import dataclass

import numpy as np

from crowdzoo.aggregation import Aggregation, Aggregator


@dataclass(frozen=True)
class WeightedVote(Aggregator):
    """Votes that count by how often their annotator agrees with the others, to a power.

    Args:
        power: 0 is a majority vote.

    Source:
        An example; crowdzoo's `Wawa` is a method of this sort.

    Needs:
        Tasks with several annotations.
    """

    whole_table = True  # `fit` takes all annotations at once

    power: float = 2.0

    def fit(self, annotations):
        """Counts votes twice: alike, and then by their annotators' weights."""
        task, annotator, label = annotations.task_ids, annotations.annotator_ids, annotations.labels
        votes = np.zeros((annotations.num_tasks, annotations.num_classes))
        np.add.at(votes, (task, label), 1)
        others = (votes[task, label] - 1) / np.maximum(votes.sum(axis=1)[task] - 1, 1)
        size = annotations.num_annotators
        agreement = np.bincount(annotator, others, size) / np.maximum(np.bincount(annotator, minlength=size), 1)
        weights = (0.01 + agreement) ** self.power
        shares = np.zeros_like(votes)
        np.add.at(shares, (task, label), weights[annotator])
        shares[shares.sum(axis=1) == 0] = 1  # nothing is known of tasks without annotations
        posteriors = shares / shares.sum(axis=1, keepdims=True)
        return Aggregation.of("weighted-vote", annotations, posteriors, skills=agreement)
