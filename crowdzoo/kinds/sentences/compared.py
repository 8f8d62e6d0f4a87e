"""How methods for sentences are compared."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.data.crowd_sequences import CrowdSequences
from crowdzoo.data.drawn_spans import DrawnSpan, side_by_side
from crowdzoo.data.tags import spans_of
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.kinds.compared import Compared, Scores
from crowdzoo.kinds.scoring import Sums
from crowdzoo.kinds.sentences.scoring import DRAWN_F1, SCORING, TAGS_F1, SpanScoring
from crowdzoo.quality.span_scores import TypeScores, drawn_scores


class ComparedSentences(Compared):
    """By F1 of spans, of all sentences together. A row of answers has a token's tag.

    Where annotators' spans do not lie side by side, it is that of spans as they were drawn, and a row of answers has a
    sentence's spans that are right, that are there and that were found.

    Args:
        crowd: the sentences.
        gold: tags of each sentence or their codes, None where unknown; None takes the sentences' own.
    """

    scoring = SCORING
    title = TAGS_F1
    baseline = "majority-vote"
    quick = ("majority-vote", "span-majority-vote", "dawid-skene", "hmm-crowd", "bsc-seq")
    labels_instances = True
    takes_base = False

    def __init__(self, crowd: Any, gold: Any = None):
        if not isinstance(crowd, CrowdSequences):
            raise DataError("compare: give the CrowdSequences, whose tokens the methods see, not their annotations.")
        super().__init__(replace(crowd, gold=None), crowd.gold if gold is None else gold)
        self.scoring = SpanScoring(crowd.scheme, crowd.classes)
        self.drawn_gold: list[Any] = []
        if crowd.drawn is not None and self.gold is not None:
            self.title, self.answers_hold_gold = DRAWN_F1, True
            own: Any = crowd.gold or [None] * len(crowd)
            kept = {key: spans for key, spans in crowd.drawn.items() if np.array_equal(own[key[0]], self.gold[key[0]])}
            self.drawn_gold = replace(crowd, gold=list(self.gold), drawn=kept).gold_drawn()

    def checked(self, gold: Any) -> NDArray[Any]:
        """Codes of the tags of each sentence, None where unknown."""
        named = self.crowd.tag_set.codes
        codes = [named(tags) if tags is not None and isinstance(tags[0], str) else tags for tags in gold]
        tags_of_tasks = np.empty(self.num_tasks, object)
        tags_of_tasks[:] = replace(self.crowd, gold=codes).gold or [None] * self.num_tasks
        return tags_of_tasks

    def answers(self, result: Any, tasks: NDArray[Any], rows: NDArray[np.bool_] | None) -> Scores:
        """Tags, or counts of spans."""
        if self.drawn_gold:
            return self._counted(tasks, [result.drawn(self.crowd)[task] for task in tasks])
        codes = result.codes()
        return _rows([codes[task] for task in tasks])

    def sums(self, answers: Scores, tasks: NDArray[Any]) -> Sums:
        """See `Compared.sums`; of spans as they were drawn answers are the counts."""
        return (2 * answers[:, 0], answers[:, 1] + answers[:, 2]) if self.drawn_gold else super().sums(answers, tasks)

    def further(self, answers: Scores, tasks: NDArray[Any]) -> dict[str, float]:
        """Precision and recall of spans, and of tags the share of tokens with the correct one."""
        if not self.drawn_gold:
            return super().further(answers, tasks)
        num_correct, num_gold, num_predicted = answers.sum(axis=0).astype(int).tolist()
        counts = TypeScores(num_gold, num_predicted, num_correct)
        return {"precision": counts.precision, "recall": counts.recall}

    def answers_with_gold(self, answers: Scores, tasks: NDArray[Any]) -> list[NDArray[np.int64]]:
        """Codes of the tags of the sentences with gold."""
        tags = np.split(answers[:, 0].astype(int), np.cumsum(self.crowd.lengths[tasks])[:-1])
        return [codes for codes, known in zip(tags, self.known[tasks], strict=True) if known]

    def _counted(self, tasks: NDArray[Any], spans: Sequence[Sequence[DrawnSpan]]) -> Scores:
        pairs = zip(tasks, spans, strict=True)
        counts = [drawn_scores([self.drawn_gold[task]], [drawn]) for task, drawn in pairs]
        return np.array([[one.num_correct, one.num_gold, one.num_predicted] for one in counts], float)

    @classmethod
    def paired(cls, settings: Any, x: Any, crowd: Any, tasks: Any) -> tuple[Any, Any]:
        """Tokens of the sentences, and these."""
        if x is not None or tasks is not None:
            raise ConfigError("compare: taggers learn from the sentences' own tokens: leave out instances and tasks.")
        tokens = np.empty(len(crowd), object)
        tokens[:] = crowd.tokens
        return tokens, crowd

    def of_tasks(self, tasks: NDArray[Any]) -> CrowdSequences:
        """Some sentences."""
        sentences: CrowdSequences = self.crowd.select(tasks)
        return sentences

    def gold_targets(self, tasks: NDArray[Any]) -> list[Scores]:
        """One-hot tags of each token."""
        return [np.eye(self.annotations.num_classes)[codes] for codes in self.gold[tasks]]

    def predicted(self, model: Any, encoder: Any, x: Any, tasks: NDArray[Any]) -> Scores:
        """Tags of a tagger; of a method that has none, the most probable classes."""
        inputs = encoder(x[tasks])
        if model.crowd is None or not model.crowd.stands_on_hidden_layer:
            tags = model.base.tag(inputs)
        else:
            codes = model.predict(inputs, verbose=0).argmax(axis=-1)[inputs["words"] != 0]
            tags = np.split(codes, np.cumsum(self.crowd.lengths[tasks])[:-1])
        if self.drawn_gold:
            tag_set = self.crowd.tag_set
            return self._counted(tasks, [side_by_side(spans_of(tag_set.tags(codes), tag_set.scheme)) for codes in tags])
        return _rows(tags)


def _rows(tags: list[NDArray[np.int64]]) -> Scores:
    return np.concatenate(tags)[:, None].astype(float)


COMPARED = ComparedSentences
