"""How methods for sentences are compared."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.data.crowd_sequences import CrowdSequences
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.kinds.compared import Compared, Scores, Summed
from crowdzoo.quality.span_scores import SpanScores, span_scores


class ComparedSentences(Compared):
    """By F1 of spans, of all sentences together. A row of answers has a token's tag.

    Args:
        crowd: the sentences.
        gold: tags of each sentence or their codes, None where unknown; None takes the sentences' own.
    """

    title = "F1 of spans"
    baseline = "majority-vote"
    quick = ("majority-vote", "span-majority-vote", "dawid-skene", "hmm-crowd", "bsc-seq")
    labels_instances = True

    def __init__(self, crowd: Any, gold: Any = None):
        if not isinstance(crowd, CrowdSequences):
            raise DataError("compare: give the CrowdSequences, whose tokens the methods see, not their annotations.")
        super().__init__(replace(crowd, gold=None), crowd.gold if gold is None else gold)

    def checked(self, gold: Any) -> NDArray[Any]:
        """Codes of the tags of each sentence, None where unknown."""
        named = self.crowd.tag_set.codes
        codes = [named(tags) if tags is not None and isinstance(tags[0], str) else tags for tags in gold]
        found = np.empty(self.num_tasks, object)
        found[:] = replace(self.crowd, gold=codes).gold or [None] * self.num_tasks
        return found

    @property
    def known(self) -> NDArray[np.bool_]:
        """Those that have tags."""
        return np.array([codes is not None for codes in self.gold], bool)

    def answers(self, result: Any, tasks: NDArray[Any], rows: NDArray[np.bool_] | None) -> Scores:
        """Tags."""
        codes = result.codes()
        return _rows([codes[task] for task in tasks])

    def right(self, answers: Scores, tasks: NDArray[Any]) -> Summed:
        """Twice the spans that are right, and the spans that are there and those that were found."""
        said = self._said(answers, tasks)
        each = [self._scores([self.gold[task]], [tags]) for task, tags in zip(tasks, said, strict=True)]
        return (
            np.array([2.0 * one.num_correct for one in each]),
            np.array([float(one.num_gold + one.num_predicted) for one in each]),
        )

    def figures(self, answers: Scores, tasks: NDArray[Any]) -> dict[str, float]:
        """Precision and recall of spans, and the share of tokens with the right tag."""
        found = self._scores(self.gold[tasks], self._said(answers, tasks))
        return {"precision": found.precision, "recall": found.recall, "token accuracy": found.token_accuracy}

    def _said(self, answers: Scores, tasks: NDArray[Any]) -> list[NDArray[np.int64]]:
        return np.split(answers[:, 0].astype(int), np.cumsum(self.crowd.lengths[tasks])[:-1])

    def _scores(self, gold: Any, said: Any) -> SpanScores:
        return span_scores(list(gold), said, self.crowd.scheme, classes=self.crowd.classes)

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
        found: CrowdSequences = self.crowd.select(tasks)
        return found

    def told(self, tasks: NDArray[Any]) -> list[Scores]:
        """One-hot tags of each token."""
        return [np.eye(self.annotations.num_classes)[codes] for codes in self.gold[tasks]]

    def predicted(self, model: Any, encoder: Any, x: Any, tasks: NDArray[Any]) -> Scores:
        """Tags of a tagger; of a method that has none, the most probable classes."""
        inputs = encoder(x[tasks])
        if model.crowd is None or not model.crowd.stands_on_hidden_layer:
            return _rows(model.base.tag(inputs))
        return model.predict(inputs, verbose=0).argmax(axis=-1)[inputs["words"] != 0][:, None].astype(float)


def _rows(tags: list[NDArray[np.int64]]) -> Scores:
    return np.concatenate(tags)[:, None].astype(float)


COMPARED = ComparedSentences
