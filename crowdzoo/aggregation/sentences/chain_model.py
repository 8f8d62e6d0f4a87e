"""ChainModel: variational Bayes for a hidden chain of tags that annotators, and words, tell of; over any blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from crowdzoo.aggregation.engine.block import Block
from crowdzoo.aggregation.engine.compiled import compiled
from crowdzoo.aggregation.engine.dirichlet import expected_logs
from crowdzoo.aggregation.engine.kernels import vote_shares
from crowdzoo.aggregation.engine.markov_chain import ChainCounts, LogChain, forward_backward, viterbi
from crowdzoo.aggregation.engine.params import Additive
from crowdzoo.aggregation.sentences.sentence_block import SentenceBlock

if TYPE_CHECKING:
    from crowdzoo.aggregation.sentences.chain_method import ChainMethod
    from crowdzoo.data.tags import TagSet

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ChainSums(Additive):
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


@dataclass(frozen=True, eq=False)
class ChainBeliefs:
    """What is believed.

    Attributes:
        sums: what the data added to the priors.
        votes: the part of the annotators' priors that grows with the data, laid out as `ChainSums.says`.
    """

    sums: ChainSums
    votes: Array


class ChainModel:
    """The steps of the EM, over blocks of sentences and over what was added up.

    Args:
        settings: the aggregator.
        tag_set: of K classes.
        num_words: V, different words; 0 leaves words out.
    """

    def __init__(self, settings: ChainMethod, tag_set: TagSet, num_words: int = 0):
        self.settings, self.tag_set = settings, tag_set
        self.prior = settings.says(tag_set)
        self.num_contexts, self.num_classes = self.prior.shape[:2]
        self.num_words = num_words if settings.words > 0 else 0
        self.allowed = tag_set.follows()

    @property
    def row_shape(self) -> tuple[int, int, int]:
        """Of an annotator's counts."""
        return self.num_contexts, self.num_classes, self.num_classes

    def zero(self, num_annotators: int) -> ChainSums:
        """Counts of nothing."""
        count = self.num_classes
        return ChainSums(
            np.zeros((num_annotators, *self.row_shape)),
            np.zeros(count),
            np.zeros((count, count)),
            np.zeros((self.num_words, count)),
        )

    # === From paths to counts ===

    def add_votes(self, block: SentenceBlock, sums: ChainSums) -> None:
        """Adds counts under vote shares, token by token; transitions are those of annotators' own tags.

        Products of neighbouring shares would not do: where annotators begin a span at different tokens, they count a
        change of class at each.
        """
        count = self.num_classes
        self._check(block, len(sums.says))
        chosen, starts = block.labelled
        by_token = Block(block.tokens, block.annotator_ids, block.labels, np.arange(block.num_tokens))
        shares = vote_shares(by_token, np.ones(len(sums.says)), count)[chosen]
        weights = 1 / np.bincount(block.tokens, minlength=block.num_tokens)[block.tokens]
        inner = block.previous < count
        pairs = np.zeros((count, count))
        np.add.at(pairs, (block.previous[inner], block.labels[inner]), weights[inner])
        first, after, _ = self.allowed
        begins = shares[starts[:-1]].sum(axis=0)
        self.add(block, ChainCounts(shares, begins * first, pairs * after, 0.0), sums)

    def add(self, block: SentenceBlock, chain_counts: ChainCounts, sums: ChainSums) -> None:
        """Adds what a block's paths say.

        Args:
            block: the block.
            chain_counts: of its labelled sentences.
            sums: changed.
        """
        chosen, _ = block.labelled
        posteriors = np.zeros((block.num_tokens, self.num_classes))
        posteriors[chosen] = chain_counts.posteriors
        says = sums.says.reshape(-1, *self.row_shape[1:])  # shares its memory
        _count_said(block.tokens, self._contexts(block), block.labels, posteriors, says)
        np.add(sums.first, chain_counts.first, out=sums.first)
        np.add(sums.after, chain_counts.after, out=sums.after)
        if self.num_words:
            _count_words(block.words[chosen], chain_counts.posteriors, sums.words)

    def _contexts(self, block: SentenceBlock) -> NDArray[np.int64]:
        """Annotator and context of each annotation as one number, [A]."""
        contexts = block.annotator_ids.astype(np.int64) * self.num_contexts
        return contexts + block.previous if self.num_contexts > 1 else contexts

    def _check(self, block: SentenceBlock, num_annotators: int) -> None:
        block.check_codes(num_annotators, self.num_classes, self.num_words or int(np.iinfo(np.int32).max))

    # === From counts to beliefs ===

    def believed(self, sums: ChainSums) -> ChainBeliefs:
        """What is believed at first, from counts under vote shares."""
        return ChainBeliefs(sums, self.settings.votes * sums.says)

    def votes_constant(self, votes: Array) -> float:
        """Log B(prior) - log B(prior with votes), summed over all rows; B is the Dirichlet's normaliser."""
        total = 0.0
        for context, prior in enumerate(self.prior):
            mine = votes[:, context]
            total += len(mine) * _log_normaliser(prior.T[None]) - _log_normaliser(mine + prior.T)
        return total

    def expected_says(self, says: Array, votes: Array, constant: float | None = None) -> tuple[Array, float]:
        """Expected logarithms under the best Dirichlet distributions, and their divergence from the priors (nats).

        Args:
            says: counts, [R, C, K, K].
            votes: see `ChainBeliefs`.
            constant: `votes_constant` of the votes; None computes it.
        """
        logs, divergence = np.empty_like(says), 0.0
        for context, prior in enumerate(self.prior):
            logs[:, context], part = expected_logs(says[:, context] + votes[:, context], prior.T)
            divergence += part
        # so far from the priors without votes
        constant = self.votes_constant(votes) if constant is None else constant
        return logs, divergence - (constant + float((votes * logs).sum()))

    def expected_rest(self, sums: ChainSums) -> tuple[LogChain, Array, float]:
        """The same of first tags, transitions and words."""
        first, after, last = self.allowed
        log_first, divergence = self._row(sums.first, first)
        log_after = np.empty_like(sums.after)
        for before, row in enumerate(after):
            log_after[before], part = self._row(sums.after[before], row)
            divergence += part
        words = sums.words
        if self.num_words:
            prior = np.full((self.num_words, self.num_classes), self.settings.words)
            logs, part = expected_logs(sums.words[None], prior)
            words = logs[0]
            divergence += part
        return LogChain(log_first, log_after, _log(last)), words, divergence

    def _row(self, counts: Array, allowed: NDArray[np.bool_]) -> tuple[Array, float]:
        """One distribution over the allowed classes only, [K]; the others have -inf."""
        logs = np.full(len(counts), -np.inf)
        prior = np.full((int(allowed.sum()), 1), self.settings.transitions)
        expected, divergence = expected_logs(counts[allowed].reshape(1, -1, 1), prior)
        logs[allowed] = expected.ravel()
        return logs, divergence

    def means(self, beliefs: ChainBeliefs) -> tuple[Array, Array, Array, ChainLogs]:
        """Expected firsts [K], transitions [K, K] and confusions [R, K, K], and the logarithms of all of them."""
        sums, settings = beliefs.sums, self.settings
        first_allowed, after_allowed, last = self.allowed
        first = _shares((sums.first + settings.transitions) * first_allowed)
        after = _shares((sums.after + settings.transitions) * after_allowed)
        cells = sums.says + beliefs.votes
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

    def paths(self, block: SentenceBlock, logs: ChainLogs) -> ChainCounts:
        """Of a block's labelled sentences."""
        chosen, starts = block.labelled
        return forward_backward(logs.chain, self._emissions(block, logs)[chosen], starts)

    def answers(self, block: SentenceBlock, logs: ChainLogs) -> tuple[Array, NDArray[np.int64]]:
        """Posteriors [T, K] of all of a block's tokens, and their labels on the best paths, int64 [T]."""
        emissions = self._emissions(block, logs)
        chain_counts = forward_backward(logs.chain, emissions, block.starts)
        return chain_counts.posteriors, viterbi(logs.chain, emissions, block.starts)

    def _emissions(self, block: SentenceBlock, logs: ChainLogs) -> Array:
        """Log weight of each class at each token by what was said and by its word, [T, K]."""
        self._check(block, len(logs.says))
        weights = np.zeros((block.num_tokens, self.num_classes))
        if self.num_words:
            weights += np.where(block.words[:, None] >= 0, logs.words[block.words], 0.0)
        _add_said(
            block.tokens, self._contexts(block), block.labels, logs.says.reshape(-1, *self.row_shape[1:]), weights
        )
        return weights


def _shares(counts: Array) -> Array:
    return counts / counts.sum(axis=-1, keepdims=True)


def _log_normaliser(rows: Array) -> float:
    """Log B of Dirichlet distributions [R, said, true], summed: of the gamma functions of cells, less that of sums."""
    return float(gammaln(rows).sum() - gammaln(rows.sum(axis=1)).sum())


def _log(values: NDArray[np.generic]) -> Array:
    """Logarithms; of zero, -inf."""
    with np.errstate(divide="ignore"):
        return np.log(values.astype(np.float64))


@compiled()
def _add_said(tokens, contexts, labels, logs, weights):  # type: ignore[no-untyped-def]  # for Numba
    for a in range(len(tokens)):
        for k in range(weights.shape[1]):
            weights[tokens[a], k] += logs[contexts[a], labels[a], k]


@compiled()
def _count_said(tokens, contexts, labels, posteriors, counts):  # type: ignore[no-untyped-def]  # for Numba
    for a in range(len(tokens)):
        for k in range(posteriors.shape[1]):
            counts[contexts[a], labels[a], k] += posteriors[tokens[a], k]


@compiled()
def _count_words(words, posteriors, counts):  # type: ignore[no-untyped-def]  # for Numba
    for t in range(len(words)):
        for k in range(posteriors.shape[1]):
            counts[words[t], k] += posteriors[t, k]
