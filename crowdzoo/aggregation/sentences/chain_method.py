"""ChainMethod: base of the methods whose truth is a chain of tags."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.classes.iterative import Iterative
from crowdzoo.aggregation.engine.class_frequencies import shares_of
from crowdzoo.aggregation.engine.run import Run, advance
from crowdzoo.aggregation.sentences.chain_model import ChainModel
from crowdzoo.aggregation.sentences.sequence_aggregation import SequenceAggregation
from crowdzoo.aggregation.sentences.sequence_table import SequenceTable
from crowdzoo.checks.constraints import MAX_ITER, PRIOR, SEED, TOL, Choice, Number, setting
from crowdzoo.data.tags import SCHEMES, TagSet

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations
    from crowdzoo.data.crowd_sequences import CrowdSequences

LEAST_PRIOR = 1e-6  # a Dirichlet distribution has positive parameters


@dataclass(frozen=True)
class ChainMethod(Iterative):
    """Settings of the methods whose truth is a chain; see `HMMCrowd`."""

    kind: ClassVar[str] = "sequence"
    name: ClassVar[str]

    max_iter: int = setting(200, MAX_ITER)
    tol: float = setting(1e-6, TOL)
    prior: float = setting(1.0, Number(LEAST_PRIOR, 1e9))
    diagonal: float = setting(3.0, PRIOR)
    votes: float = setting(0.2, PRIOR)
    transitions: float = setting(1.0, Number(LEAST_PRIOR, 1e9))
    words: float = setting(0.1, PRIOR)
    scheme: str = setting("BIO", Choice(tuple(SCHEMES)))
    seed: int = setting(0, SEED)

    def says(self, tag_set: TagSet) -> NDArray[np.float64]:
        """Pseudo-counts of what an annotator says, in each of C contexts, `[context, true, said]`, [C, K, K].

        Of more than one context, that of an annotation is what the annotator said of the token before; the last is that
        there was none.
        """
        raise NotImplementedError

    def fit(self, sequences: CrowdSequences | Annotations) -> SequenceAggregation:
        """Finds tags, annotators and transitions together.

        Mean-field variational Bayes: paths of tags in one factor, parameters in the others. Each iteration sets the
        parameters' Dirichlet distributions to the best ones given the paths, then the paths to the best given those
        (forward-backward with expected logarithms), so that the bound never falls. Transitions that the scheme forbids
        have no probability at all. Sentences that nobody labelled teach nothing, and get their tags at the end.

        Args:
            sequences: N sentences, R annotators, K classes; not changed.

        Returns:
            Posteriors of each token given everything, and labels that are the most probable path of each sentence.
            `confusions`, `transitions` and `first` are posterior means; `skills` is how often the annotator is
            expected to be right about tokens inside spans. `history` is the variational lower bound. A sentence that
            nobody labelled gets what words and transitions say.

        Raises:
            DataError: annotations are not of kind sequence, or do not cover whole sentences.

        Warns:
            ConvergenceWarning: `max_iter` was not enough.
        """
        table = SequenceTable.of(sequences, self.title, self.scheme)
        model = ChainModel(self, table)
        run = Run(model.sums)
        while not run.done:
            logs, divergence = model.expected(run.params)
            paths = model.paths(logs)
            bound, update = paths.log_normaliser - divergence, partial(model.counted, paths)
            run = advance(run, bound, 0.0, len(table.labels), self.max_iter, self.tol, update)
        self.warn_unless_converged(run, len(table.labels))
        posteriors, labels = model.answers(logs)
        first, after, confusions, log_means = model.means(run.params)
        inside = posteriors[model.chosen].sum(axis=0)
        inside[table.tag_set.outside] = 0.0
        return SequenceAggregation.of(
            self.name,
            table,
            posteriors,
            labels,
            confusions=confusions,
            transitions=after,
            first=first,
            skills=np.einsum("rkk,k->r", confusions, shares_of(inside)),
            **run.facts | {"log_likelihood": model.paths(log_means).log_normaliser},
        )
