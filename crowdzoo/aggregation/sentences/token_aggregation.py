"""TokenAggregation: any method for classes, with each token as a task."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.base import Aggregator, VotesWarning, ignored
from crowdzoo.aggregation.engine.confusions import TINY
from crowdzoo.aggregation.engine.markov_chain import LogChain, viterbi
from crowdzoo.aggregation.named import FOR_CLASSES, aggregator_named, result_of
from crowdzoo.aggregation.sentences.sequence_aggregation import SequenceAggregation
from crowdzoo.aggregation.sentences.sequence_table import SequenceTable
from crowdzoo.checks.constraints import Choice, setting
from crowdzoo.data.tags import SCHEMES, TagSet
from crowdzoo.errors import bad_setting

if TYPE_CHECKING:
    from crowdzoo.aggregation.result import Aggregation
    from crowdzoo.data.annotations import Annotations
    from crowdzoo.data.crowd_sequences import CrowdSequences

DECODING = ("valid", "each")
TIE = 1e-9  # favours the class that the method chose among ties


@dataclass(frozen=True)
class TokenAggregation(Aggregator):
    """A method for classes, applied to tokens as independent tasks.

    Args:
        method: a key of `METHODS`, such as "dawid-skene".
        decoding: "valid": the labels of a sentence are the path of tags with the greatest product of posteriors among
            those that keep the scheme (no I- without its B-). "each": the method's label of each token, as in the
            literature.
        scheme: scheme of annotations without tokens; `CrowdSequences` have their own.
        settings: arguments of the method.

    Raises:
        ConfigError: an unknown method or setting, or a value out of range.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import TokenAggregation
        >>> task, position, annotator = [1] * 9, [0, 1, 2] * 3, ["ann"] * 3 + ["bob"] * 3 + ["cem"] * 3
        >>> tags = ["B-PER", "I-PER", "O", "B-PER", "I-PER", "O", "O", "B-PER", "O"]
        >>> annotations = Annotations.from_arrays(task, annotator, tags, position=position, kind="sequence")
        >>> TokenAggregation("majority-vote").fit(annotations).tags()
        [['B-PER', 'I-PER', 'O']]

    Needs:
        What the method for classes needs, with tokens as tasks.

    Source:
        That of the method for classes.
    """

    kind: ClassVar[str] = "sequence"

    method: str = "dawid-skene"
    decoding: str = setting("valid", Choice(DECODING))
    scheme: str = setting("BIO", Choice(tuple(SCHEMES)))
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.settings, dict) or not all(isinstance(name, str) for name in self.settings):
            reason = "must be a dictionary of the method's settings"
            raise bad_setting("settings", reason, self.settings, "TokenAggregation")
        self.of_tokens  # noqa: B018  (checks method and settings)

    def fit(self, sequences: CrowdSequences | Annotations) -> SequenceAggregation:
        """Aggregates the tokens.

        Args:
            sequences: N sentences, R annotators, K classes; not changed.

        Returns:
            Posteriors, confusions, skills, likelihood and history of the method. Tokens without annotations are treated
            as tasks without annotations. `transitions` is None.

        Raises:
            DataError: annotations are not of kind sequence, do not cover whole sentences, or do not suit the method.

        Warns:
            ConvergenceWarning: from the method.
        """
        table = self.table(sequences)
        with ignored(VotesWarning):  # the result has its own notes
            token_result = result_of(self.of_tokens, table.as_classification())
        return self.result(table, token_result)

    @property
    def of_tokens(self) -> Any:
        """The method for classes."""
        return aggregator_named(FOR_CLASSES, self.method, self.settings)

    def table(self, sequences: CrowdSequences | Annotations) -> SequenceTable:
        """Converts the sentences to a table.

        Raises:
            DataError: annotations are not of kind sequence, or do not cover whole sentences.
        """
        return SequenceTable.of(sequences, "TokenAggregation", self.scheme)

    def result(self, table: SequenceTable, token_result: Aggregation) -> SequenceAggregation:
        """Creates the result of `fit`.

        Args:
            table: T tokens.
            token_result: result of the method for these tokens.
        """
        labels = token_result.labels
        if self.decoding == "valid":
            labels = valid_labels(token_result.posteriors, labels, table.starts, table.tag_set)
        same = ("confusions", "skills", "log_likelihood", "history", "converged", "num_iterations")
        learnt = {name: getattr(token_result, name) for name in same}
        return SequenceAggregation.of(self.method, table, token_result.posteriors, labels, **learnt)


def valid_labels(
    posteriors: NDArray[np.float64], labels: NDArray[np.int64], starts: NDArray[np.int64], tag_set: TagSet
) -> NDArray[np.int64]:
    """Finds the path with the greatest product of posteriors among those that keep the scheme, int64 [T].

    Args:
        posteriors: class probabilities, [T, K].
        labels: label of each token by itself, int64 [T]; paths of equal weight with more of these win.
        starts: where each sentence begins, int64 [N + 1].
        tag_set: the K classes as tags.
    """
    first, after, last = tag_set.follows()
    weights = np.log(np.maximum(posteriors, TINY))
    if len(labels):
        weights[np.arange(len(labels)), labels] += TIE
    chain = LogChain(*(np.where(allowed, 0.0, -np.inf) for allowed in (first, after, last)))
    return viterbi(chain, weights, starts)
