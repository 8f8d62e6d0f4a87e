"""HMM-crowd, BSC-seq and their base class: the truth is a chain of tags, fitted by variational Bayes."""

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
        says: counts of annotations, `[annotator, context, said, true]`, [R, C, K, K].
        first: counts of first tags, [K].
        after: counts of transitions, `[before, after]`, [K, K].
        words: counts of words, [V, K]; V is 0 if words are not modelled.
    """

    says: Array
    first: Array
    after: Array
    words: Array


@dataclass(frozen=True, eq=False)
class ChainLogs:
    """Log-weights of the E-step, with the layout of `ChainSums`."""

    says: Array
    chain: LogChain
    words: Array


class ChainModel:
    """The steps of the EM.

    Args:
        settings: the aggregator.
        table: sentences of T tokens with A annotations, K classes.

    Attributes:
        sums: counts under vote shares, with which EM starts.
        votes: the part of the annotators' priors that grows with the data, with the layout of `ChainSums.says`.
    """

    def __init__(self, settings: ChainMethod, table: SequenceTable):
        self.settings, self.table = settings, table
        self.prior = settings._says(table.tag_set)
        self.allowed = table.tag_set.follows()
        num_contexts, count = self.prior.shape[:2]
        contexts = table.annotators * num_contexts + (table.previous if num_contexts > 1 else 0)
        self.shape = table.annotations.num_annotators, num_contexts, count, count
        self.cells = contexts * count + table.labels  # annotator, context and label as one number, [A]
        lengths, labelled = np.diff(table.starts), np.zeros(len(table.starts) - 1, bool)
        labelled[table.annotations.task_ids] = True
        self.chosen = np.flatnonzero(np.repeat(labelled, lengths))  # tokens of labelled sentences
        self.starts = np.concatenate([[0], np.cumsum(lengths[labelled])]).astype(np.int64)  # starts of these sentences
        self.words, self.num_words = np.full(table.num_tokens, -1), 0
        if settings.words > 0 and table.words is not None:  # words of labelled sentences; others are uninformative
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
        """Counts under vote shares, token by token; transitions are those of the annotators' own tags.

        Products of neighbouring shares would be wrong: if annotators begin a span at different tokens, they count a
        transition at each of these tokens.
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
        """Sums the counts of the paths of labelled sentences."""
        posteriors = np.zeros((self.table.num_tokens, self.shape[-1]))
        posteriors[self.chosen] = paths.posteriors
        says = sum_rows(posteriors[self.table.tokens], self.cells, int(np.prod(self.shape[:3]))).reshape(self.shape)
        words = np.zeros((0, self.shape[-1]))
        if self.num_words:
            words = sum_rows(paths.posteriors, self.words[self.chosen], self.num_words)
        return ChainSums(says, paths.first, paths.after, words)

    # === From counts to beliefs ===

    def expected(self, sums: ChainSums) -> tuple[ChainLogs, float]:
        """Expected logarithms under the optimal Dirichlet distributions, and divergence from the priors (nats)."""
        says, divergence = np.empty_like(sums.says), 0.0
        for context, prior in enumerate(self.prior):
            says[:, context], part = expected_logs(sums.says[:, context] + self.votes[:, context], prior.T)
            divergence += part
        divergence -= self._constant + float((self.votes * says).sum())  # so that priors are those without votes
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
        """Dirichlet distribution over only the allowed classes, [K]; the others have -inf."""
        logs = np.full(len(counts), -np.inf)
        prior = np.full((int(allowed.sum()), 1), self.settings.transitions)
        expected, divergence = expected_logs(counts[allowed].reshape(1, -1, 1), prior)
        logs[allowed] = expected.ravel()
        return logs, divergence

    def means(self, sums: ChainSums) -> tuple[Array, Array, Array, ChainLogs]:
        """Expected first tags [K], transitions [K, K] and confusions [R, K, K], and the logarithms of all of them."""
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
        # averaged over contexts, weighted by how often each occurred
        weights = sums.says.sum(axis=2, keepdims=True) + cells.sum(axis=2, keepdims=True) * 1e-9
        confusions = (says * weights).sum(axis=1) / weights.sum(axis=1)
        return first, after, confusions.transpose(0, 2, 1), logs

    # === From beliefs to paths ===

    def paths(self, logs: ChainLogs) -> ChainCounts:
        """Paths of the labelled sentences."""
        return forward_backward(logs.chain, self._emissions(logs)[self.chosen], self.starts)

    def answers(self, logs: ChainLogs) -> tuple[Array, NDArray[np.int64]]:
        """Posteriors [T, K] of all tokens, and their labels on the best paths, int64 [T]."""
        emissions, starts = self._emissions(logs), self.table.starts
        return forward_backward(logs.chain, emissions, starts).posteriors, viterbi(logs.chain, emissions, starts)

    def _emissions(self, logs: ChainLogs) -> Array:
        """Log-weight of each class at each token from its annotations and its word, [T, K]."""
        said = logs.says.reshape(-1, self.shape[-1])[self.cells]
        weights = sum_rows(said, self.table.tokens, self.table.num_tokens)
        if self.num_words:
            weights += np.where(self.words[:, None] >= 0, logs.words[self.words], 0.0)
        return weights


def _shares(counts: Array) -> Array:
    return counts / counts.sum(axis=-1, keepdims=True)


def _log_normaliser(rows: Array) -> float:
    """Log B of Dirichlet distributions [R, said, true], summed: log gamma of the cells minus log gamma of the sums."""
    return float(gammaln(rows).sum() - gammaln(rows.sum(axis=1)).sum())


def _log(values: NDArray[np.generic]) -> Array:
    """Logarithms; for zero, -inf."""
    with np.errstate(divide="ignore"):
        return np.log(values.astype(np.float64))


LEAST_PRIOR = 1e-6  # a Dirichlet distribution has positive parameters
RARE = 1e-3  # share of a cell's pseudo-count for labels that the scheme forbids


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
        """Pseudo-counts of annotations in each of C contexts, `[context, true, said]`, [C, K, K].

        With several contexts, that of an annotation is the annotator's label of the previous token; the last context is
        the beginning of a sentence.
        """
        raise NotImplementedError

    def fit(self, sequences: CrowdSequences | Annotations) -> SequenceAggregation:
        """Estimates tags, annotators and transitions jointly.

        Mean-field variational Bayes, with the paths of tags in one factor and the parameters in others. Each iteration
        sets the parameters' Dirichlet distributions to the optimum given the paths, then the paths to the optimum given
        these (forward-backward with expected logarithms), so that the bound never falls. Transitions that the scheme
        forbids have probability zero. Sentences without annotations are not used, and tagged at the end.

        Args:
            sequences: N sentences, R annotators, K classes; not changed.

        Returns:
            Posteriors of each token given all data; labels are the most probable path of each sentence.
            `confusions`, `transitions` and `first` are posterior means; `skills` is the expected accuracy of the
            annotator on tokens inside spans. `history` is the variational lower bound. Sentences without annotations
            are tagged by words and transitions.

        Raises:
            DataError: annotations are not of kind sequence, or do not cover whole sentences.

        Warns:
            ConvergenceWarning: `max_iter` was reached.
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
    """A hidden Markov model of the true tags, with token-level confusion matrices of annotators.

    HMM-crowd of Nguyen, Wallace, Li, Nenkova and Lease ("Aggregating and predicting sequence labels from crowd
    annotations", ACL 2017), with variational Bayes and Dirichlet priors on all parameters, where the paper has priors
    only on the annotators, and with confusion matrices, where it has one number per true class.

    - First tag ~ rho, tag after tag j ~ tau[j], both Dirichlet(`transitions`) over the tags that the scheme allows: I-X
      after O has probability 0, so the most probable path is always valid.
    - Annotator r says l of a token with tag k with probability pi[r, k, l], rows ~ Dirichlet(`prior`, plus `diagonal`
      at k), independently given the tags.
    - Part of the prior grows with the data: `votes` times the annotator's counts with vote shares as the truth.
      Annotators make errors at the same tokens, which the model ignores. With only fixed pseudo-counts, the more data
      there are, the more classes drift towards these errors: O comes to mean "nobody marked it", and what a single
      annotator marked becomes a span.
    - The token's word ~ Dirichlet(`words`) for each tag (words are the emissions of the paper's HMM).

    Paths are computed by exact forward-backward with expected logarithms, labels by Viterbi. Starts from vote shares.

    Args:
        max_iter: maximum number of iterations after the start from the votes.
        tol: converged if an iteration raises the bound by at most this, in nats per annotation.
        prior: pseudo-count of each cell of a confusion matrix, 1e-6 or more.
        diagonal: additional pseudo-count of the diagonal: the belief that annotators are right more often than not.
        votes: weight of the vote-based counts of each annotator in the priors, as a share of the data, 0 or more; the
            paper has 0.
        transitions: pseudo-count of each allowed transition, and of each first tag, 1e-6 or more.
        words: pseudo-count of each word in each tag; 0 leaves words out. Annotations without tokens have no words.
        scheme: scheme of annotations without tokens; `CrowdSequences` have their own.
        seed: seed of tied votes; has no effect, as the start uses shares.

    Raises:
        ConfigError: a setting is out of range.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import HMMCrowd
        >>> task, position, annotator = [1] * 9, [0, 1, 2] * 3, ["ann"] * 3 + ["bob"] * 3 + ["cem"] * 3
        >>> tags = ["B-PER", "I-PER", "O", "B-PER", "I-PER", "O", "O", "B-PER", "O"]
        >>> annotations = Annotations.from_arrays(task, annotator, tags, position=position, kind="sequence")
        >>> HMMCrowd().fit(annotations).tags()
        [['B-PER', 'I-PER', 'O']]

    Needs:
        Sentences; tags that form spans.

    Source:
        A. Nguyen, B. Wallace, J. Li, A. Nenkova, M. Lease: Aggregating and Predicting Sequence Labels from Crowd
        Annotations. ACL 2017.
    """

    title: ClassVar[str] = "HMM-crowd"
    name: ClassVar[str] = "hmm-crowd"

    def _says(self, tag_set: TagSet) -> NDArray[np.float64]:
        """Pseudo-counts of a confusion matrix, in a single context: [1, K, K]."""
        return (self.prior + self.diagonal * np.eye(len(tag_set.classes)))[None]


@dataclass(frozen=True)
class BayesianSequenceCombination(ChainMethod):
    """BSC-seq of Simpson and Gurevych ("A Bayesian approach for sequence tagging with crowds", EMNLP 2019).

    The model of `HMMCrowd` except for the annotators: r says l of a token with tag k with probability
    pi[r, before, k, l], where `before` is r's label of the previous token (or the beginning). An annotator who
    begins a span too early is likely to continue it: such errors come in runs, and count less than the same number of
    independent ones. Rows ~ Dirichlet with `prior` for labels that the scheme allows after `before` (a thousandth of it
    for others); plus `diagonal` for the right tag, or, if the scheme forbids it after `before`, for the tag that begins
    such a span; plus `votes`, which grows with the data (see `HMMCrowd`).

    Variational Bayes as in the paper, all factors Dirichlet; the word model is that of `HMMCrowd`. The result's
    `confusions` are the annotators' rows averaged over `before`, weighted by frequency.

    Args:
        max_iter: maximum number of iterations after the start from the votes.
        tol: converged if an iteration raises the bound by at most this, in nats per annotation.
        prior: pseudo-count of each cell that the scheme allows, 1e-3 or more.
        diagonal: additional pseudo-count of the right tag.
        votes: weight of the vote-based counts of each annotator in the priors, as a share of the data, 0 or more; the
            paper has 0.
        transitions: pseudo-count of each allowed transition, and of each first tag, 1e-6 or more.
        words: pseudo-count of each word in each tag; 0 leaves words out. Annotations without tokens have no words.
        scheme: scheme of annotations without tokens; `CrowdSequences` have their own.
        seed: seed of tied votes; has no effect, as the start uses shares.

    Raises:
        ConfigError: a setting is out of range.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import BayesianSequenceCombination
        >>> task, position, annotator = [1] * 9, [0, 1, 2] * 3, ["ann"] * 3 + ["bob"] * 3 + ["cem"] * 3
        >>> tags = ["B-PER", "I-PER", "O", "B-PER", "I-PER", "O", "O", "B-PER", "O"]
        >>> annotations = Annotations.from_arrays(task, annotator, tags, position=position, kind="sequence")
        >>> BayesianSequenceCombination().fit(annotations).tags()
        [['B-PER', 'I-PER', 'O']]

    Needs:
        Sentences; tags that form spans.

    Source:
        E. Simpson, I. Gurevych: A Bayesian Approach for Sequence Tagging with Crowds. EMNLP 2019.
    """

    title: ClassVar[str] = "BSC-seq"
    name: ClassVar[str] = "bsc-seq"

    prior: float = setting(1.0, Number(LEAST_PRIOR / RARE, 1e9))

    def _says(self, tag_set: TagSet) -> NDArray[np.float64]:
        """Pseudo-counts `[before, true, said]`, [K + 1, K, K]; the last `before` is the beginning of a sentence."""
        first, after, _ = tag_set.follows()
        allowed = np.concatenate([after, first[None]])
        count = len(tag_set.classes)
        says = np.repeat(np.where(allowed, self.prior, self.prior * RARE)[:, None], count, axis=1)
        instead = tag_set.codes(name if name == OUTSIDE else f"B-{name[2:]}" for name in tag_set.classes)
        for before in range(count + 1):
            right = np.where(allowed[before], np.arange(count), instead)
            says[before, np.arange(count), right] += self.diagonal
        return says
