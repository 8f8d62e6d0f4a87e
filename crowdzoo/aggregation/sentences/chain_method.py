"""ChainMethod: base of the methods whose truth is a chain of tags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.classes.iterative import Iterative
from crowdzoo.aggregation.engine.run import Run, advance
from crowdzoo.aggregation.sentences.chain_model import ChainBeliefs, ChainLogs, ChainModel
from crowdzoo.aggregation.sentences.sentence_block import SentenceBlock
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

    def begin(self, sequences: CrowdSequences | Annotations) -> tuple[SequenceTable, ChainModel, SentenceBlock]:
        """The data as a table, the model, and all sentences as one block.

        Raises:
            DataError: annotations are not of kind sequence, or do not cover whole sentences.
        """
        table = SequenceTable.of(sequences, self.title, self.scheme)
        words, number = np.full(table.num_tokens, -1), 0
        if self.words > 0 and table.words is not None:
            # words of labelled sentences; any other tells nothing
            lengths, labelled = np.diff(table.starts), np.zeros(len(table.starts) - 1, bool)
            labelled[table.annotations.task_ids] = True
            known = np.unique(table.words[np.repeat(labelled, lengths)])
            number, place = len(known), np.full(table.num_words, -1)
            place[known] = np.arange(number)
            words = place[table.words]
        return table, ChainModel(self, table.tag_set, number), SentenceBlock.of(table, words)

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
        table, model, block = self.begin(sequences)
        first = model.zero(table.annotations.num_annotators)
        model.add_votes(block, first)
        run = Run(model.believed(first))
        votes = run.params.votes
        constant = model.votes_constant(votes)
        while not run.done:
            sums = run.params.sums
            says, divergence = model.expected_says(sums.says, votes, constant)
            chain, words, rest = model.expected_rest(sums)
            logs = ChainLogs(says, chain, words)
            paths = model.paths(block, logs)

            def updated() -> ChainBeliefs:
                sums = model.zero(len(votes))
                model.add(block, paths, sums)  # noqa: B023  called before the next round
                return ChainBeliefs(sums, votes)

            bound = paths.log_normaliser - divergence - rest
            run = advance(run, bound, 0.0, len(block), self.max_iter, self.tol, updated)
        posteriors, labels = model.answers(block, logs)
        likelihood = model.paths(block, model.means(run.params)[3]).log_normaliser
        return self.result(table, model, run, posteriors, labels, likelihood)

    def result(
        self,
        table: SequenceTable,
        model: ChainModel,
        run: Run[ChainBeliefs],
        posteriors: NDArray[np.float64],
        labels: NDArray[np.int64],
        log_likelihood: float,
    ) -> SequenceAggregation:
        """What `fit` gives, once the run has ended.

        Args:
            table: T tokens, K classes.
            model: of them.
            run: the run.
            posteriors: under the last beliefs, [T, K].
            labels: the most probable path of each sentence under them, int64 [T].
            log_likelihood: of annotations and words under the posterior means, nats.

        Warns:
            ConvergenceWarning: `max_iter` was not enough.
        """
        self.warn_unless_converged(run, len(table.labels), stacklevel=4)
        first, after, confusions, _ = model.means(run.params)
        labelled = np.zeros(len(table.starts) - 1, bool)
        labelled[table.annotations.task_ids] = True
        inside = posteriors[np.repeat(labelled, np.diff(table.starts))].sum(axis=0)
        inside[table.tag_set.outside] = 0.0
        total = inside.sum()
        weights = inside / total if total > 0 else np.full(len(inside), 1 / len(inside))
        return SequenceAggregation.of(
            self.name,
            table,
            posteriors,
            labels,
            confusions=confusions,
            transitions=after,
            first=first,
            skills=np.einsum("rkk,k->r", confusions, weights),
            **run.facts | {"log_likelihood": log_likelihood},
        )
