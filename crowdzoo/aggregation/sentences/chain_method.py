"""Methods whose truth is a chain of tags, by variational Bayes: HMM-crowd, BSC-seq and their base."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from crowdzoo.aggregation.classes.iterative import Iterative, warn_unless_converged
from crowdzoo.aggregation.engine.block import sum_rows
from crowdzoo.aggregation.engine.confusions import shares_of
from crowdzoo.aggregation.engine.dirichlet import expected_logs
from crowdzoo.aggregation.engine.markov_chain import ChainCounts, LogChain, forward_backward, viterbi
from crowdzoo.aggregation.engine.run import Run, advance
from crowdzoo.aggregation.sentences.sequence_aggregation import SequenceAggregation
from crowdzoo.aggregation.sentences.sequence_table import SequenceTable
from crowdzoo.checks.constraints import MAX_ITER, PRIOR, SEED, TOL, Choice, Number, setting
from crowdzoo.data.tags import OUTSIDE, SCHEMES, TagSet

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations
    from crowdzoo.data.crowd_sequences import CrowdSequences

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ChainSums:
    """Expected counts.

    Attributes:
        says: `[annotator, context, said, true]`, [R, C, K, K].
        first: of first tags, [K].
        after: `[before, after]`, [K, K].
        words: [V, K]; V is 0 where words are not modelled.
    """

    says: Array
    first: Array
    after: Array
    words: Array


@dataclass(frozen=True, eq=False)
class ChainLogs:
    """Weights of the E-step, laid out as `ChainSums`."""

    says: Array
    chain: LogChain
    words: Array


class ChainModel:
    """The steps of the EM.

    Args:
        settings: the aggregator.
        table: sentences of T tokens with A annotations, K classes.

    Attributes:
        sums: counts under vote shares, which the EM begins with.
        votes: the part of the annotators' priors that grows with the data, laid out as `ChainSums.says`.
    """

    def __init__(self, settings: ChainMethod, table: SequenceTable):
        self.settings, self.table = settings, table
        self.prior = settings._says(table.tag_set)
        self.allowed = table.tag_set.follows()
        num_contexts, count = self.prior.shape[:2]
        contexts = table.annotators * num_contexts + (table.previous if num_contexts > 1 else 0)
        self.shape = table.annotations.num_annotators, num_contexts, count, count
        self.cells = contexts * count + table.labels  # annotator, context and what was said as one number, [A]
        lengths, labelled = np.diff(table.starts), np.zeros(len(table.starts) - 1, bool)
        labelled[table.annotations.task_ids] = True
        self.chosen = np.flatnonzero(np.repeat(labelled, lengths))  # tokens of sentences that somebody labelled
        self.starts = np.concatenate([[0], np.cumsum(lengths[labelled])]).astype(np.int64)  # of these, side by side
        self.words, self.num_words = np.full(table.num_tokens, -1), 0
        if settings.words > 0 and table.words is not None:  # words of labelled sentences; any other tells nothing
            known, place = np.unique(table.words[self.chosen]), np.full(table.num_words, -1)
            self.num_words, place[known] = len(known), np.arange(len(known))
            self.words = place[table.words]
        self.sums = self._first_sums()
        self.votes = settings.votes * self.sums.says
        # log B(prior) - log B(prior with votes), summed over all rows; B is the Dirichlet's normaliser
        self._constant = 0.0
        for context, prior in enumerate(self.prior):
            mine = self.votes[:, context]
            self._constant += len(mine) * _log_normaliser(prior.T[None]) - _log_normaliser(mine + prior.T)

    # === From paths to counts ===

    def _first_sums(self) -> ChainSums:
        """Counts under vote shares, token by token; transitions are those of annotators' own tags.

        Products of neighbouring shares would not do: where annotators begin a span at different tokens, they count a
        change of class at each.
        """
        table, count = self.table, self.shape[-1]
        cells = np.bincount(table.tokens * count + table.labels, minlength=table.num_tokens * count)
        votes = cells.reshape(-1, count)
        sizes = votes.sum(axis=1)
        inner = table.previous < count
        pairs = np.zeros((count, count))
        np.add.at(pairs, (table.previous[inner], table.labels[inner]), 1 / sizes[table.tokens[inner]])
        first, after, _ = self.allowed
        shares = votes[self.chosen] / sizes[self.chosen, None]
        return self.counted(ChainCounts(shares, shares[self.starts[:-1]].sum(axis=0) * first, pairs * after, 0.0))

    def counted(self, paths: ChainCounts) -> ChainSums:
        """What the paths of the labelled sentences add up to."""
        posteriors = np.zeros((self.table.num_tokens, self.shape[-1]))
        posteriors[self.chosen] = paths.posteriors
        says = sum_rows(posteriors[self.table.tokens], self.cells, int(np.prod(self.shape[:3]))).reshape(self.shape)
        words = np.zeros((0, self.shape[-1]))
        if self.num_words:
            words = sum_rows(paths.posteriors, self.words[self.chosen], self.num_words)
        return ChainSums(says, paths.first, paths.after, words)

    # === From counts to beliefs ===

    def expected(self, sums: ChainSums) -> tuple[ChainLogs, float]:
        """Expected logarithms under the best Dirichlet distributions, and their divergence from the priors (nats)."""
        says, divergence = np.empty_like(sums.says), 0.0
        for context, prior in enumerate(self.prior):
            says[:, context], part = expected_logs(sums.says[:, context] + self.votes[:, context], prior.T)
            divergence += part
        divergence -= self._constant + float((self.votes * says).sum())  # so far from the priors without votes
        first, after, last = self.allowed
        log_first, part = self._row(sums.first, first)
        divergence += part
        log_after = np.empty_like(sums.after)
        for before, row in enumerate(after):
            log_after[before], part = self._row(sums.after[before], row)
            divergence += part
        words = sums.words
        if self.num_words:
            logs, part = expected_logs(words[None], np.full(words.shape, self.settings.words))
            words = logs[0]
            divergence += part
        return ChainLogs(says, LogChain(log_first, log_after, _log(last)), words), divergence

    def _row(self, counts: Array, allowed: NDArray[np.bool_]) -> tuple[Array, float]:
        """One distribution over the allowed classes only, [K]; the others have -inf."""
        logs = np.full(len(counts), -np.inf)
        prior = np.full((int(allowed.sum()), 1), self.settings.transitions)
        expected, divergence = expected_logs(counts[allowed].reshape(1, -1, 1), prior)
        logs[allowed] = expected.ravel()
        return logs, divergence

    def means(self, sums: ChainSums) -> tuple[Array, Array, Array, ChainLogs]:
        """Expected firsts [K], transitions [K, K] and confusions [R, K, K], and the logarithms of all of them."""
        settings = self.settings
        first_allowed, after_allowed, last = self.allowed
        first = _shares((sums.first + settings.transitions) * first_allowed)
        after = _shares((sums.after + settings.transitions) * after_allowed)
        cells = sums.says + self.votes
        cells += self.prior.transpose(0, 2, 1)
        says = cells / cells.sum(axis=2, keepdims=True)
        words = sums.words
        if self.num_words:
            words = np.log(sums.words + settings.words)
            words -= np.log((sums.words + settings.words).sum(axis=0))
        logs = ChainLogs(np.log(says), LogChain(_log(first), _log(after), _log(last)), words)
        # over contexts: what the annotator says of a class, however often it was in which context
        weights = sums.says.sum(axis=2, keepdims=True) + cells.sum(axis=2, keepdims=True) * 1e-9
        confusions = (says * weights).sum(axis=1) / weights.sum(axis=1)
        return first, after, confusions.transpose(0, 2, 1), logs

    # === From beliefs to paths ===

    def paths(self, logs: ChainLogs) -> ChainCounts:
        """Of the labelled sentences."""
        return forward_backward(logs.chain, self._emissions(logs)[self.chosen], self.starts)

    def answers(self, logs: ChainLogs) -> tuple[Array, NDArray[np.int64]]:
        """Posteriors [T, K] of all tokens, and their labels on the best paths, int64 [T]."""
        emissions, starts = self._emissions(logs), self.table.starts
        return forward_backward(logs.chain, emissions, starts).posteriors, viterbi(logs.chain, emissions, starts)

    def _emissions(self, logs: ChainLogs) -> Array:
        """Log weight of each class at each token by what was said and by its word, [T, K]."""
        said = logs.says.reshape(-1, self.shape[-1])[self.cells]
        weights = sum_rows(said, self.table.tokens, self.table.num_tokens)
        if self.num_words:
            weights += np.where(self.words[:, None] >= 0, logs.words[self.words], 0.0)
        return weights


def _shares(counts: Array) -> Array:
    return counts / counts.sum(axis=-1, keepdims=True)


def _log_normaliser(rows: Array) -> float:
    """Log B of Dirichlet distributions [R, said, true], summed: of the gamma functions of cells, less that of sums."""
    return float(gammaln(rows).sum() - gammaln(rows.sum(axis=1)).sum())


def _log(values: NDArray[np.generic]) -> Array:
    """Logarithms; for zero, -inf."""
    with np.errstate(divide="ignore"):
        return np.log(values.astype(np.float64))


LEAST_PRIOR = 1e-6  # a Dirichlet distribution has positive parameters
RARE = 1e-3  # of a cell's pseudo-count, for what the scheme forbids an annotator to say


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

    def _says(self, tag_set: TagSet) -> NDArray[np.float64]:
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
        warn_unless_converged(self, run, len(table.labels))
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


@dataclass(frozen=True)
class HMMCrowd(ChainMethod):
    """A hidden Markov model of the true tags, of which annotators tell token by token.

    HMM-crowd of Nguyen, Wallace, Li, Nenkova and Lease ("Aggregating and predicting sequence labels from crowd
    annotations", ACL 2017), with Dirichlet priors on everything and variational Bayes throughout, where the paper has
    them on the annotators only, and confusion matrices, where it has a number for each true class.

    - First tag ~ rho, tag after tag j ~ tau[j], both Dirichlet(`transitions`) over what the scheme allows: after O
      there is no I-X, with probability 0, so the most probable path is always a valid one.
    - Annotator r says l of a token with tag k with probability pi[r, k, l], rows ~ Dirichlet(`prior`, and `diagonal`
      more at k), independently given the tags.
    - Part of the prior grows with the data: `votes` times what each annotator said where vote shares represent the
      truth. Annotators err at the same tokens, which the model does not know. With fixed pseudo-counts alone, the
      more data there are the more its classes turn towards that: O comes to mean "nobody marked it", and what a single
      annotator marked becomes a span.
    - The token's word ~ Dirichlet(`words`) for each tag (the paper's HMM has words as its emissions).

    Paths: forward-backward with expected logarithms, exact. Labels: Viterbi. Starts from vote shares.

    Args:
        max_iter: most iterations after the start, which is made of the votes.
        tol: it has converged when an iteration raises the bound by no more than this, in nats per annotation.
        prior: pseudo-count of every cell of a confusion matrix, 1e-6 or more.
        diagonal: further pseudo-count of the diagonal: the belief that annotators are right more often than not.
        votes: share of the data, 0 or more, that the vote's estimate of each annotator counts for, as part of the
            priors; 0 is the paper's.
        transitions: pseudo-count of every allowed transition, and of every first tag, 1e-6 or more.
        words: pseudo-count of every word in every tag; 0 leaves words out. Annotations without tokens have no words.
        scheme: scheme of annotations without tokens; `CrowdSequences` bring their own.
        seed: seed of tied votes; the start uses shares, so it changes nothing.

    Raises:
        ConfigError: a setting that is out of range.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import HMMCrowd
        >>> task, position, annotator = [1] * 9, [0, 1, 2] * 3, ["ann"] * 3 + ["bob"] * 3 + ["cem"] * 3
        >>> tags = ["B-PER", "I-PER", "O", "B-PER", "I-PER", "O", "O", "B-PER", "O"]
        >>> annotations = Annotations.from_arrays(task, annotator, tags, position=position, kind="sequence")
        >>> HMMCrowd().fit(annotations).tags()
        [['B-PER', 'I-PER', 'O']]

    Needs:
        Sentences; tags that hang together.

    Source:
        A. Nguyen, B. Wallace, J. Li, A. Nenkova, M. Lease: Aggregating and Predicting Sequence Labels from Crowd
        Annotations. ACL 2017.
    """

    title: ClassVar[str] = "HMM-crowd"
    name: ClassVar[str] = "hmm-crowd"

    def _says(self, tag_set: TagSet) -> NDArray[np.float64]:
        """Pseudo-counts of a confusion matrix, in one context: [1, K, K]."""
        return (self.prior + self.diagonal * np.eye(len(tag_set.classes)))[None]


@dataclass(frozen=True)
class BayesianSequenceCombination(ChainMethod):
    """BSC-seq of Simpson and Gurevych ("A Bayesian approach for sequence tagging with crowds", EMNLP 2019).

    The model of `HMMCrowd`, but for the annotators: r says l of a token with tag k with probability
    pi[r, before, k, l], where `before` is what r said of the token before (or that there was none). An annotator who
    began a span too early is likely to go on with it: such errors come in runs, and count for less than as many
    independent ones. Rows ~ Dirichlet: `prior` for what the scheme allows after `before` (a thousandth of it for what
    it forbids), and `diagonal` more for the right tag; where the scheme forbids that one after `before`, for the tag
    that begins such a span; and `votes`, which grows with the data (see `HMMCrowd`).

    Variational Bayes as in the paper, all factors Dirichlet; the word model is `HMMCrowd`'s. The result's `confusions`
    are the annotators' rows averaged over what they said before, as often as each occurred.

    Args:
        max_iter: most iterations after the start, which is made of the votes.
        tol: it has converged when an iteration raises the bound by no more than this, in nats per annotation.
        prior: pseudo-count of every cell that the scheme allows, 1e-3 or more.
        diagonal: further pseudo-count of the right tag.
        votes: share of the data, 0 or more, that the vote's estimate of each annotator counts for, as part of the
            priors; 0 is the paper's.
        transitions: pseudo-count of every allowed transition, and of every first tag, 1e-6 or more.
        words: pseudo-count of every word in every tag; 0 leaves words out. Annotations without tokens have no words.
        scheme: scheme of annotations without tokens; `CrowdSequences` bring their own.
        seed: seed of tied votes; the start uses shares, so it changes nothing.

    Raises:
        ConfigError: a setting that is out of range.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import BayesianSequenceCombination
        >>> task, position, annotator = [1] * 9, [0, 1, 2] * 3, ["ann"] * 3 + ["bob"] * 3 + ["cem"] * 3
        >>> tags = ["B-PER", "I-PER", "O", "B-PER", "I-PER", "O", "O", "B-PER", "O"]
        >>> annotations = Annotations.from_arrays(task, annotator, tags, position=position, kind="sequence")
        >>> BayesianSequenceCombination().fit(annotations).tags()
        [['B-PER', 'I-PER', 'O']]

    Needs:
        Sentences; tags that hang together.

    Source:
        E. Simpson, I. Gurevych: A Bayesian Approach for Sequence Tagging with Crowds. EMNLP 2019.
    """

    title: ClassVar[str] = "BSC-seq"
    name: ClassVar[str] = "bsc-seq"

    prior: float = setting(1.0, Number(LEAST_PRIOR / RARE, 1e9))

    def _says(self, tag_set: TagSet) -> NDArray[np.float64]:
        """Pseudo-counts `[before, true, said]`, [K + 1, K, K]; the last `before` is the beginning."""
        first, after, _ = tag_set.follows()
        allowed = np.concatenate([after, first[None]])
        count = len(tag_set.classes)
        says = np.repeat(np.where(allowed, self.prior, self.prior * RARE)[:, None], count, axis=1)
        instead = tag_set.codes(name if name == OUTSIDE else f"B-{name[2:]}" for name in tag_set.classes)
        for before in range(count + 1):
            right = np.where(allowed[before], np.arange(count), instead)
            says[before, np.arange(count), right] += self.diagonal
        return says
