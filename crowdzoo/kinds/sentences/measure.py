"""Comparison of methods for sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike

from crowdzoo.aggregation.sentences.sequence_aggregation import SequenceAggregation
from crowdzoo.data.crowd_sequences import CrowdSequences
from crowdzoo.data.drawn_spans import DrawnSpan, side_by_side
from crowdzoo.data.tags import spans_of
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.kinds.measure import Measure, Scores
from crowdzoo.kinds.scoring import Codes, Flags, Objects, Sums
from crowdzoo.kinds.sentences.scoring import DRAWN_F1, SCORING, TAGS_F1, SpanScoring, Tags
from crowdzoo.kinds.training import Encoder
from crowdzoo.quality.span_scores import TypeScores, drawn_scores

if TYPE_CHECKING:
    from crowdzoo.networks.token_encoder import TokenEncoder
    from crowdzoo.training.crowd_model import CrowdModel
    from crowdzoo.training.pair_rows import Examples
    from crowdzoo.training.settings import Settings


class SpanMeasure(Measure[CrowdSequences, SequenceAggregation]):
    """Compare by F1 of spans over all sentences. A row of answers has a token's tag.

    If annotators' spans overlap or are in pieces, F1 is that of the original spans, and a row has a sentence's
    numbers of correct, true and predicted spans.

    Args:
        crowd: the sentences.
        gold: tags of each sentence or their codes, None where unknown; by default the sentences' own gold.
    """

    scoring = SCORING
    title = TAGS_F1
    baseline = "majority-vote"
    quick = ("majority-vote", "span-majority-vote", "dawid-skene", "hmm-crowd", "bsc-seq")
    labels_instances = True
    takes_base = False

    def __init__(self, crowd: CrowdSequences, gold: Any = None, scale: Mapping[str, Any] = MappingProxyType({})):
        if not isinstance(crowd, CrowdSequences):
            raise DataError("compare: give the CrowdSequences, whose tokens the methods see, not their annotations.")
        super().__init__(replace(crowd, gold=None), crowd.gold if gold is None else gold, scale)
        self.scoring = SpanScoring(crowd.scheme, crowd.classes)
        self.drawn_gold: list[Any] = []
        if crowd.drawn is not None and self.gold is not None:
            self.title, self.answers_hold_gold = DRAWN_F1, True
            own: Any = crowd.gold or [None] * len(crowd)
            kept = {key: spans for key, spans in crowd.drawn.items() if np.array_equal(own[key[0]], self.gold[key[0]])}
            self.drawn_gold = replace(crowd, gold=list(self.gold), drawn=kept).gold_drawn()

    def check(self, gold: object) -> Objects:
        """Codes of tags per sentence, None where unknown."""
        named, sentences = self.crowd.tag_set.codes, cast(Tags, gold)
        codes = [named(tags) if tags is not None and isinstance(tags[0], str) else tags for tags in sentences]
        tags_of_tasks = np.empty(self.num_tasks, object)
        tags_of_tasks[:] = replace(self.crowd, gold=codes).gold or [None] * self.num_tasks
        return tags_of_tasks

    def answers(self, result: SequenceAggregation, tasks: Codes, rows: Flags | None) -> Scores:
        """Tags, or counts of spans."""
        if self.drawn_gold:
            drawn = result.drawn(self.crowd)
            return self._counted(tasks, [drawn[task] for task in tasks])
        codes = result.codes()
        return _rows([codes[task] for task in tasks])

    def sums(self, answers: Scores, tasks: Codes) -> Sums:
        """See `Measure.sums`; for original spans, answers are counts."""
        return (2 * answers[:, 0], answers[:, 1] + answers[:, 2]) if self.drawn_gold else super().sums(answers, tasks)

    def further(self, answers: Scores, tasks: Codes) -> dict[str, float]:
        """Precision and recall of spans; for tags also the share of tokens with the correct tag."""
        if not self.drawn_gold:
            return super().further(answers, tasks)
        num_correct, num_gold, num_predicted = answers.sum(axis=0).astype(int).tolist()
        counts = TypeScores(num_gold, num_predicted, num_correct)
        return {"precision": counts.precision, "recall": counts.recall}

    def answers_with_gold(self, answers: Scores, tasks: Codes) -> list[Codes]:
        """Codes of tags of the sentences with gold."""
        tags = np.split(answers[:, 0].astype(int), np.cumsum(self.crowd.lengths[tasks])[:-1])
        return [codes for codes, known in zip(tags, self.known[tasks], strict=True) if known]

    def _counted(self, tasks: Codes, spans: Sequence[Sequence[DrawnSpan]]) -> Scores:
        pairs = zip(tasks, spans, strict=True)
        counts = [drawn_scores([self.drawn_gold[task]], [drawn]) for task, drawn in pairs]
        return np.array([[one.num_correct, one.num_gold, one.num_predicted] for one in counts], float)

    @classmethod
    def pair(
        cls, settings: Settings, x: Examples, crowd: CrowdSequences, tasks: ArrayLike | None
    ) -> tuple[Examples, CrowdSequences]:
        """Tokens of the sentences, and the sentences."""
        if x is not None or tasks is not None:
            raise ConfigError("compare: taggers learn from the sentences' own tokens: leave out instances and tasks.")
        tokens = np.empty(len(crowd), object)
        tokens[:] = crowd.tokens
        return tokens, crowd

    def of_tasks(self, tasks: Codes) -> CrowdSequences:
        """Select some sentences."""
        return self.crowd.select(tasks)

    def gold_targets(self, tasks: Codes) -> list[Scores]:
        """One-hot tags of tokens."""
        return [np.eye(self.annotations.num_classes)[codes] for codes in self.gold[tasks]]

    def predict(self, model: CrowdModel, encoder: Encoder, x: Examples, tasks: Codes) -> Scores:
        """Tags of a tagger; for methods without tags, the most probable classes."""
        tokens: Any = cast(Objects, x)[tasks]
        inputs = cast("TokenEncoder", encoder)(tokens)
        if model.crowd is None or not model.crowd.traits.needs_hidden_layer:
            tags = model.base.tag(inputs)
        else:
            codes = model.predict(inputs, verbose=0).argmax(axis=-1)[inputs["words"] != 0]
            tags = np.split(codes, np.cumsum(self.crowd.lengths[tasks])[:-1])
        if self.drawn_gold:
            tag_set = self.crowd.tag_set
            return self._counted(tasks, [side_by_side(spans_of(tag_set.tags(codes), tag_set.scheme)) for codes in tags])
        return _rows(tags)


def _rows(tags: list[Codes]) -> Scores:
    return np.concatenate(tags)[:, None].astype(float)
