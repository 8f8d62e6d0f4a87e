"""chain_model: variational Bayes for a hidden chain of tags that annotators, and words, tell of."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.classes.iterative import Iterative
from crowdzoo.aggregation.classes.majority_vote import MajorityVote
from crowdzoo.aggregation.engine.compiled import compiled
from crowdzoo.aggregation.engine.dirichlet import expected_logs, log_gamma
from crowdzoo.aggregation.engine.markov_chain import ChainCounts, LogChain, forward_backward, viterbi
from crowdzoo.aggregation.engine.run import Run, advance
from crowdzoo.aggregation.sentences.sequence_aggregation import SequenceAggregation
from crowdzoo.aggregation.sentences.sequence_table import SequenceTable
from crowdzoo.constraints import MAX_ITER, PRIOR, SEED, TOL, Choice, Number, setting
from crowdzoo.sequences.tags import SCHEMES

__all__ = ["LEAST_PRIOR", "ChainMethod", "fit_chain"]

LEAST_PRIOR = 1e-6  # a Dirichlet distribution has positive parameters


@dataclass(frozen=True)
class ChainMethod(Iterative):
    """Settings of the methods whose truth is a chain; see `HMMCrowd`."""

    kind: ClassVar[str] = "sequence"

    max_iter: int = setting(200, MAX_ITER)
    tol: float = setting(1e-6, TOL)
    prior: float = setting(1.0, Number(LEAST_PRIOR, 1e9))
    diagonal: float = setting(3.0, PRIOR)
    votes: float = setting(0.2, PRIOR)
    transitions: float = setting(1.0, Number(LEAST_PRIOR, 1e9))
    words: float = setting(0.1, PRIOR)
    scheme: str = setting("BIO", Choice(tuple(SCHEMES)))
    seed: int = setting(0, SEED)


@dataclass(frozen=True, eq=False)
class _Sums:
    """Expected counts.

    Attributes:
        says: `[annotator and context, said, true]`, [R * C, K, K].
        first: of first tags, [K].
        after: `[before, after]`, [K, K].
        words: [V, K], or None.
    """

    says: NDArray[np.float64]
    first: NDArray[np.float64]
    after: NDArray[np.float64]
    words: NDArray[np.float64] | None


@dataclass(frozen=True, eq=False)
class _Logs:
    """Weights of the E-step, laid out as `_Sums`, and how far the beliefs are from the priors (nats)."""

    says: NDArray[np.float64]
    chain: LogChain
    words: NDArray[np.float64] | None
    divergence: float = 0.0


def fit_chain(
    method: str, table: SequenceTable, contexts: NDArray[np.int64], says: NDArray[np.float64], settings: ChainMethod
) -> SequenceAggregation:
    """Mean-field variational Bayes: paths of tags in one factor, parameters in the others.

    Each iteration sets the parameters' Dirichlet distributions to the best ones given the paths, then the paths to the
    best given those (forward-backward with expected logarithms), so that the bound never falls. Transitions that the
    scheme forbids have no probability at all. Sentences that nobody labelled teach nothing, and get their tags at the
    end.

    Args:
        method: name of the method.
        table: T tokens, A annotations.
        contexts: annotator and context of each annotation, r * C + c, int64 [A].
        says: pseudo-counts of what an annotator says, in each of C contexts, `[context, true, said]`, [C, K, K].
        settings: everything else.

    Returns:
        Posteriors under the last beliefs, the most probable path of each sentence under them, posterior means.
    """
    model = _Model(table, contexts, says, settings)
    run = Run(model.start)
    while not run.done:
        logs = model.expected(run.params)
        found = model.paths(logs)
        bound, number = found.log_normaliser - logs.divergence, len(table.labels)
        run = advance(run, bound, 0.0, number, settings.max_iter, settings.tol, partial(model.sums, found))
    settings.warn_unless_converged(run, len(table.labels), stacklevel=4)
    return model.result(method, run, logs)


class _Model:
    def __init__(
        self, table: SequenceTable, contexts: NDArray[np.int64], says: NDArray[np.float64], settings: ChainMethod
    ):
        self.table = table
        self.contexts = contexts
        self.prior = says
        self.settings = settings
        self.num_classes = len(table.tag_set.classes)
        self.shape = (table.annotations.num_annotators * len(says), self.num_classes, self.num_classes)
        self.allowed = table.tag_set.follows()
        # the labelled sentences, one after the other
        labelled = np.zeros(len(table.starts) - 1, bool)
        labelled[table.annotations.task_ids] = True
        lengths = np.diff(table.starts)
        self.chosen = np.flatnonzero(np.repeat(labelled, lengths))
        self.starts = np.concatenate([[0], np.cumsum(lengths[labelled])]).astype(np.int64)
        # words of labelled sentences; any other tells nothing
        self.num_words = 0
        self.words = np.full(table.num_tokens, -1)
        if settings.words > 0 and table.words is not None:
            known = np.unique(table.words[self.chosen])
            self.num_words = len(known)
            place = np.full(table.num_words, -1)
            place[known] = np.arange(len(known))
            self.words = place[table.words]
        self.start = self._start(settings.seed)
        # the part of the annotators' priors that grows with the data, laid out as `_Sums.says`, and its own constant
        self.votes = settings.votes * self.start.says
        self.votes_constant = self._votes_constant()

    # === From paths to beliefs ===

    def _start(self, seed: int) -> _Sums:
        """Counts under vote shares, token by token; transitions are those of annotators' own tags.

        Products of neighbouring shares would not do: where annotators begin a span at different tokens, they count a
        change of class at each.
        """
        table, num_classes = self.table, self.num_classes
        shares = MajorityVote(seed=seed).fit(table.as_classification()).posteriors[self.chosen]
        weights = 1 / np.bincount(table.tokens, minlength=table.num_tokens)[table.tokens]
        inner = table.previous < num_classes
        pairs = np.zeros((num_classes, num_classes))
        np.add.at(pairs, (table.previous[inner], table.labels[inner]), weights[inner])
        first, after, _ = self.allowed
        begins = shares[self.starts[:-1]].sum(axis=0)
        return self.sums(ChainCounts(shares, begins * first, pairs * after, 0.0))

    def _votes_constant(self) -> float:
        """Log B(prior) - log B(prior with votes), summed over all rows; B is the Dirichlet's normaliser."""
        num_contexts = len(self.prior)
        total = 0.0
        for context, prior in enumerate(self.prior):
            votes = self.votes[context::num_contexts]
            total += len(votes) * _log_normaliser(prior.T[None]) - _log_normaliser(votes + prior.T)
        return total

    def sums(self, found: ChainCounts) -> _Sums:
        table = self.table
        posteriors = np.zeros((table.num_tokens, self.num_classes))
        posteriors[self.chosen] = found.posteriors
        says = np.zeros(self.shape)
        _count_said(table.tokens, self.contexts, table.labels, posteriors, says)
        words = None
        if self.num_words:
            words = np.zeros((self.num_words, self.num_classes))
            _count_words(self.words[self.chosen], found.posteriors, words)
        return _Sums(says, found.first, found.after, words)

    def expected(self, sums: _Sums) -> _Logs:
        """Expected logarithms under the best Dirichlet distributions, and their divergence from the priors."""
        num_contexts = len(self.prior)
        says = np.empty(self.shape)
        divergence = 0.0
        for context, prior in enumerate(self.prior):
            mine = slice(context, None, num_contexts)
            says[mine], part = expected_logs(sums.says[mine] + self.votes[mine], prior.T)
            divergence += part
        # so far from the priors without votes
        divergence -= self.votes_constant + float((self.votes * says).sum())
        first, after, last = self.allowed
        log_first, part = self._row(sums.first, first)
        divergence += part
        log_after = np.empty_like(sums.after)
        for before, row in enumerate(after):
            log_after[before], part = self._row(sums.after[before], row)
            divergence += part
        words = None
        if sums.words is not None:
            prior = np.full(sums.words.shape, self.settings.words)
            logs, part = expected_logs(sums.words[None], prior)
            words = logs[0]
            divergence += part
        return _Logs(says, LogChain(log_first, log_after, _log(last)), words, divergence)

    def _row(self, counts: NDArray[np.float64], allowed: NDArray[np.bool_]) -> tuple[NDArray[np.float64], float]:
        """One distribution over the allowed classes only, [K]; the others have -inf."""
        logs = np.full(len(counts), -np.inf)
        prior = np.full((int(allowed.sum()), 1), self.settings.transitions)
        found, divergence = expected_logs(counts[allowed].reshape(1, -1, 1), prior)
        logs[allowed] = found.ravel()
        return logs, divergence

    # === From beliefs to paths ===

    def emissions(self, logs: _Logs) -> NDArray[np.float64]:
        """Log weight of each class at each token by what was said and by its word, [T, K]."""
        table = self.table
        weights = np.zeros((table.num_tokens, self.num_classes))
        if logs.words is not None:
            weights += np.where(self.words[:, None] >= 0, logs.words[self.words], 0.0)
        _add_said(table.tokens, self.contexts, table.labels, logs.says, weights)
        return weights

    def paths(self, logs: _Logs) -> ChainCounts:
        """Of the labelled sentences."""
        return forward_backward(logs.chain, self.emissions(logs)[self.chosen], self.starts)

    def means(self, sums: _Sums) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], _Logs]:
        """Expected firsts [K], transitions [K, K] and confusions [R, K, K], and the logarithms of all of them."""
        first_allowed, after_allowed, last = self.allowed
        first = _shares((sums.first + self.settings.transitions) * first_allowed)
        after = _shares((sums.after + self.settings.transitions) * after_allowed)
        num_contexts = len(self.prior)
        cells = (sums.says + self.votes).reshape(-1, num_contexts, *self.shape[1:])
        cells += self.prior.transpose(0, 2, 1)
        says = cells / cells.sum(axis=2, keepdims=True)
        words = None
        if sums.words is not None:
            words = np.log(sums.words + self.settings.words)
            words -= np.log((sums.words + self.settings.words).sum(axis=0))
        logs = _Logs(np.log(says).reshape(self.shape), LogChain(_log(first), _log(after), _log(last)), words)
        # over contexts: what the annotator says of a class, however often it was in which context
        weights = sums.says.reshape(cells.shape).sum(axis=2, keepdims=True) + cells.sum(axis=2, keepdims=True) * 1e-9
        confusions = (says * weights).sum(axis=1) / weights.sum(axis=1)
        return first, after, confusions.transpose(0, 2, 1), logs

    def result(self, method: str, run: Run[_Sums], logs: _Logs) -> SequenceAggregation:
        table = self.table
        emissions = self.emissions(logs)
        found = forward_backward(logs.chain, emissions, table.starts)
        labels = viterbi(logs.chain, emissions, table.starts)
        first, after, confusions, mean_logs = self.means(run.params)
        likely = self.paths(mean_logs)
        inside = found.posteriors[self.chosen].sum(axis=0)
        inside[table.tag_set.outside] = 0.0
        total = inside.sum()
        weights = inside / total if total > 0 else np.full(len(inside), 1 / len(inside))
        return SequenceAggregation.of(
            method,
            table,
            found.posteriors,
            labels,
            confusions=confusions,
            transitions=after,
            first=first,
            reliability=np.einsum("rkk,k->r", confusions, weights),
            **run.facts | {"log_likelihood": likely.log_normaliser},
        )


def _shares(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    return counts / counts.sum(axis=-1, keepdims=True)


def _log_normaliser(rows: NDArray[np.float64]) -> float:
    """Log B of Dirichlet distributions [R, said, true], summed: of the gamma functions of cells, less that of sums."""
    return float(log_gamma(rows).sum() - log_gamma(rows.sum(axis=1)).sum())


def _log(values: NDArray[np.generic]) -> NDArray[np.float64]:
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
