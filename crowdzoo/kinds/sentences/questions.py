"""Questions of `crowdzoo next` about sentences."""

from __future__ import annotations

import numpy as np

from crowdzoo.aggregation.sentences.sequence_aggregation import SequenceAggregation
from crowdzoo.data.annotations import Annotations
from crowdzoo.data.crowd_sequences import annotations_of
from crowdzoo.kinds.questions import Questions
from crowdzoo.kinds.scoring import Codes, Flags, Floats
from crowdzoo.quality.next_annotation import FEWEST, Gains, information_gain

CERTAIN = 1e-3  # one minus the probability of a token's tag, below which answers are not expected to change it


class SpanQuestions(Questions[SequenceAggregation]):
    """Choose questions by the posteriors of tokens and the confusion matrices of annotators."""

    gain_meaning = "how much the answer tells, tag by tag: 0.69 decides between two equally probable tags"
    names = "classes"
    methods = "bsc-seq, hmm-crowd or dawid-skene"

    def skills(self, result: SequenceAggregation, places: list[int] | slice) -> Floats | None:
        """Confusion matrices with the tags in this order, [R, K, K]; None if the method has none."""
        return None if result.confusions is None else result.confusions[:, places][:, :, places]

    def weights(self, result: SequenceAggregation) -> Floats:
        """Number of sentences per annotator, [R]."""
        return result.tasks_per_annotator.astype(np.float64)

    def gains(self, result: SequenceAggregation, skills: Floats, crowd: Annotations) -> Gains:
        """Expected information of an answer about the tags of a sentence, summed over tags, nats."""
        open_tokens = result.posteriors.max(axis=1, initial=0) < 1 - CERTAIN

        def gain(tasks: Codes, annotators: Codes) -> Floats:
            total = np.zeros(annotators.shape)
            for place, task in enumerate(tasks.tolist()):
                rows = slice(result.starts[task], result.starts[task + 1])
                for posterior in result.posteriors[rows][open_tokens[rows]]:
                    total[place] += information_gain(posterior, skills[annotators[place]])
            return total

        return gain

    def find_sure(self, result: SequenceAggregation, least: float, crowd: Annotations) -> Flags:
        """Sentences with at least two answers in which each token's tag has at least this probability."""
        tokens = np.append(result.posteriors.max(axis=1, initial=0), 1.0)
        sizes = np.diff(result.starts)
        lowest = np.where(sizes > 0, np.minimum.reduceat(tokens, result.starts[:-1]) if len(sizes) else 0.0, 0.0)
        return np.asarray((lowest >= least) & (result.annotators_per_task >= FEWEST))

    def answers(self, crowd: Annotations) -> tuple[Codes, Codes, Codes]:
        """See `Questions.answers`; an answer is all tags of a sentence."""
        table = annotations_of(crowd)
        positions = np.asarray(table.positions)
        order = np.lexsort((positions, table.annotator_ids, table.task_ids))
        begins = np.flatnonzero(positions[order] == 0)
        codes: dict[bytes, int] = {}
        tags = np.split(table.labels[order], begins[1:])
        answers = np.array([codes.setdefault(each.tobytes(), len(codes)) for each in tags], np.int64)
        first = order[begins]
        return table.task_ids[first], table.annotator_ids[first], answers[: len(first)]
