"""CRF-MA (Rodrigues, Pereira and Ribeiro 2014), the baseline of the crowd layer's table of named entities.

    python benchmarks/reproduce/crf_ma.py            # what is missing in the saved results
    python benchmarks/reproduce/crf_ma.py --print    # the saved results, no training

**Protocol**, fixed before the first run. The data of ner.py: learnt from the 2,845 sentences with their crowd's tags,
spans scored on the paper's 3,250 test sentences as conlleval does. Nothing is chosen by gold, and nothing is random:
each row has one run.

The model: in each sentence one annotator is the reliable one (a latent variable, pi_r before anything is seen), whose
tags follow a linear-chain CRF; what the others said is uniform. EM:

- E-step: q_ir, the probability that annotator r is the reliable one of sentence i, goes with pi_r p(tags of r | words).
  Uniform tags of the others are equally probable whoever is reliable, since all of them tagged the whole sentence.
- M-step: the CRF learns the tags of each annotator weighted by q, and pi is what makes q most probable among the
  annotators of each sentence (one step of minorization, as for Luce's choice model, since not all tagged all).

The text of the paper is in no source at hand, only its abstract; how it starts, its features and its prior are not.
Here: q starts from how far an annotator's tags agree with the others' of the sentence; 20 rounds; features are words,
their ends and shapes, and words and shapes of two neighbours on either side, kept where they occur twice; the prior of
the weights is a Gaussian of variance 1; each M-step goes on from the last, at most 40 steps of L-BFGS (100 in the
last).

Rows: CRF-MA; the same CRF on majority votes ("CRF, MV"), on the true tags ("CRF, gold") and, added when the other
three were known, on the tags of BSC-seq ("CRF, BSC"). "own_f1" is that of the
training sentences: the tags of the annotator with the largest q; for the other rows what the CRF says.

Bars of the claims, set before CRF-MA was run: the crowd layer (CL MW of ner.py) is on a par with CRF-MA if its mean F1
is at most one standard deviation of its seeds below; it trains ten times as fast if CRF-MA needs ten times its CPU
seconds.
"""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rows import Parts, run
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

RESULTS = Path(__file__).parents[1] / "results" / "crf_ma.json"
VARIANCE = 1.0
ROUNDS = 20
STEPS, LAST_STEPS = 40, 100
LEAST = 2  # tokens with a feature
START, END = "<s>", "</s>"
AGGREGATED = {"CRF, MV": "majority-vote", "CRF, BSC": "bsc-seq"}

# === Features of tokens ===


def word_features(word: str) -> list[str]:
    """A word, its ends of two to four letters, and its shape."""
    low = word.lower()
    ends = [f"{side}{part}" for n in (2, 3, 4) for side, part in (("^", low[:n]), ("$", low[-n:])) if len(low) > n]
    return [f"w={low}", f"s={shape(word)}", *ends]


def shape(word: str) -> str:
    """What is capital, small, a digit or something else, runs as one: "U.S." is "A.A."."""
    kinds = ("0" if c.isdigit() else "A" if c.isupper() else "a" if c.islower() else c for c in word)
    runs: list[str] = []
    for kind in kinds:
        if not runs or runs[-1] != kind:
            runs.append(kind)
    return "".join(runs)


def token_features(tokens: Sequence[str]) -> list[list[str]]:
    """Features of each token of a sentence: its own, and those of two neighbours on either side (words and shapes)."""
    padded = [START, START, *tokens, END, END]
    found = []
    for place in range(2, len(tokens) + 2):
        own = word_features(padded[place])
        for step in (-2, -1, 1, 2):
            word = padded[place + step]
            own += [f"{step}w={word.lower()}", f"{step}s={shape(word)}"]
        found.append([*own, "bias"])
    return found


class Features:
    """From sentences to a sparse matrix of the features that occur often enough in the training sentences."""

    def __init__(self, sentences: Sequence[Sequence[str]]):
        counts = Counter(name for tokens in sentences for token in token_features(tokens) for name in token)
        self.columns = {name: n for n, name in enumerate(sorted(name for name, c in counts.items() if c >= LEAST))}

    def __call__(self, sentences: Sequence[Sequence[str]]) -> csr_matrix:
        """Ones where a token has a feature, [T, F]; the sentences one after the other."""
        rows, columns, row = [], [], 0
        for tokens in sentences:
            for token in token_features(tokens):
                known = [self.columns[name] for name in token if name in self.columns]
                columns += known
                rows += [row] * len(known)
                row += 1
        return csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(row, len(self.columns)))


# === The chain ===


class Chains:
    """Forward and backward sums over many sentences at once.

    Args:
        lengths: tokens of each sentence, int [N].
    """

    def __init__(self, lengths: np.ndarray):
        self.lengths = lengths
        self.starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        order = np.argsort(-lengths, kind="stable")
        # at each place the tokens of the sentences that are long enough; their number falls
        self.tokens = [self.starts[order[lengths[order] > t]] + t for t in range(int(lengths.max()))]

    def sums(self, scores: np.ndarray, transitions: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Sum of the log-norms, marginals and expected transitions.

        Args:
            scores: log-weight of each tag at each token, [T, K].
            transitions: log-weight of [tag, next tag], [K, K].

        Returns:
            The sum over sentences of log Z; the probability of each tag [T, K]; the expected number of each
            transition [K, K].
        """
        highest = scores.max(axis=1, keepdims=True)
        weights, steps = np.exp(scores - highest), np.exp(transitions)
        forward, scale = np.empty_like(weights), np.empty(len(weights))
        for t, tokens in enumerate(self.tokens):
            now = weights[tokens]
            if t:
                now = now * (forward[tokens - 1] @ steps)
            scale[tokens] = now.sum(axis=1)
            forward[tokens] = now / scale[tokens, None]
        backward, moved = np.ones_like(weights), np.zeros_like(transitions)
        for tokens in reversed(self.tokens[1:]):
            ahead = weights[tokens] * backward[tokens] / scale[tokens, None]
            backward[tokens - 1] = ahead @ steps.T
            moved += forward[tokens - 1].T @ ahead
        return float(np.log(scale).sum() + highest.sum()), forward * backward, moved * steps

    def log_norms(self, scores: np.ndarray, transitions: np.ndarray) -> np.ndarray:
        """The log-norm of each sentence, [N]."""
        highest = scores.max(axis=1, keepdims=True)
        weights, steps = np.exp(scores - highest), np.exp(transitions)
        forward, logs = np.empty_like(weights), np.empty(len(weights))
        for t, tokens in enumerate(self.tokens):
            now = weights[tokens]
            if t:
                now = now * (forward[tokens - 1] @ steps)
            total = now.sum(axis=1)
            logs[tokens], forward[tokens] = np.log(total), now / total[:, None]
        found: np.ndarray = np.add.reduceat(logs + highest[:, 0], self.starts)
        return found

    def best(self, scores: np.ndarray, transitions: np.ndarray) -> np.ndarray:
        """The most probable tags (Viterbi), int [T]."""
        total, came = scores.copy(), np.zeros(scores.shape, int)
        for tokens in self.tokens[1:]:
            paths = total[tokens - 1][:, :, None] + transitions
            came[tokens] = paths.argmax(axis=1)
            total[tokens] += paths.max(axis=1)
        tags = total.argmax(axis=1)  # right at the last token of a sentence
        for tokens in reversed(self.tokens[1:]):
            tags[tokens - 1] = came[tokens, tags[tokens]]
        return tags


class LinearChain:
    """A linear-chain CRF that learns from weighted tags.

    Args:
        features: [T, F].
        lengths: tokens of each sentence, int [N].
        num_tags: K.
    """

    def __init__(self, features: csr_matrix, lengths: np.ndarray, num_tags: int):
        self.features, self.chains, self.num_tags = features, Chains(lengths), num_tags
        self.weights = np.zeros((features.shape[1], num_tags))
        self.transitions = np.zeros((num_tags, num_tags))

    def fit(self, counts: np.ndarray, moves: np.ndarray, steps: int, variance: float = VARIANCE) -> None:
        """Goes on from the weights there are, by L-BFGS.

        Args:
            counts: how much each token is given each tag, [T, K]; rows sum to one.
            moves: how often each tag follows another in the given tags, weighted likewise, [K, K].
            steps: at most.
            variance: of the Gaussian prior of all weights.
        """
        given, shape = self.features.T @ counts, self.weights.shape

        def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
            weights, transitions = self._split(flat, shape)
            total, tags, moved = self.chains.sums(self.features @ weights, transitions)
            value = total - (weights * given).sum() - (transitions * moves).sum() + flat @ flat / (2 * variance)
            slope = np.concatenate([(self.features.T @ tags - given).ravel(), (moved - moves).ravel()])
            return value, slope + flat / variance

        start = np.concatenate([self.weights.ravel(), self.transitions.ravel()])
        found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": steps})
        self.weights, self.transitions = self._split(found.x, shape)

    def _split(self, flat: np.ndarray, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        cut = shape[0] * shape[1]
        return flat[:cut].reshape(shape), flat[cut:].reshape(self.num_tags, self.num_tags)

    def log_probabilities(self, sentences: np.ndarray, tags: Sequence[np.ndarray]) -> np.ndarray:
        """Log-probability of the tags of each of C copies given the words, [C].

        Args:
            sentences: which sentence a copy is of, int [C].
            tags: codes of its tokens, C arrays.
        """
        scores = self.features @ self.weights
        logs, starts = -self.chains.log_norms(scores, self.transitions)[sentences], self.chains.starts
        for n, (i, own) in enumerate(zip(sentences, tags, strict=True)):
            logs[n] += scores[starts[i] + np.arange(len(own)), own].sum() + self.transitions[own[:-1], own[1:]].sum()
        return logs

    def tag(self, features: csr_matrix, lengths: np.ndarray) -> list[np.ndarray]:
        """The most probable tags of each sentence."""
        found = Chains(lengths).best(features @ self.weights, self.transitions)
        return np.split(found, np.cumsum(lengths)[:-1])


# === EM over annotators ===


def shares(given: np.ndarray, sentences: np.ndarray) -> np.ndarray:
    """Numbers that sum to one within each sentence, [C]."""
    found: np.ndarray = given / np.bincount(sentences, given)[sentences]
    return found


def agreement(sentences: np.ndarray, tags: Sequence[np.ndarray], starts: np.ndarray, num_tags: int) -> np.ndarray:
    """The start of q: shares of each copy's mean agreement with the other copies of its sentence, [C].

    A sentence with one copy has 1; one whose copies agree nowhere has equal shares.
    """
    size = starts[-1] + max(len(own) for own in tags)
    counts = np.zeros((size, num_tags))
    places = [starts[i] + np.arange(len(own)) for i, own in zip(sentences, tags, strict=True)]
    for place, own in zip(places, tags, strict=True):
        counts[place, own] += 1
    agreed = np.array([(counts[place, own] - 1).mean() for place, own in zip(places, tags, strict=True)])
    return shares(agreed + 1e-9, sentences)


def weighted(
    q: np.ndarray, sentences: np.ndarray, tags: Sequence[np.ndarray], starts: np.ndarray, shape: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Tags [T, K] and transitions [K, K] of the copies, weighted by q."""
    counts, moves = np.zeros(shape), np.zeros((shape[1], shape[1]))
    for weight, i, own in zip(q, sentences, tags, strict=True):
        counts[starts[i] + np.arange(len(own)), own] += weight
        np.add.at(moves, (own[:-1], own[1:]), weight)
    return counts, moves


def reliabilities(q: np.ndarray, sentences: np.ndarray, annotators: np.ndarray, pi: np.ndarray) -> np.ndarray:
    """The next pi [R]: sum of q of an annotator over what it would be if all annotators were alike in pi."""
    among = np.bincount(sentences, pi[annotators])  # of the annotators of a sentence
    chances = np.bincount(annotators, 1 / among[sentences], len(pi))
    found = np.bincount(annotators, q, len(pi)) / np.where(chances > 0, chances, 1)
    total: np.ndarray = found / found.sum()
    return total


def fit_crowd(
    crf: LinearChain, sentences: np.ndarray, annotators: np.ndarray, tags: Sequence[np.ndarray], rounds: int = ROUNDS
) -> tuple[np.ndarray, np.ndarray]:
    """CRF-MA.

    Args:
        crf: is trained.
        sentences: which sentence each of C tagged copies is of, int [C].
        annotators: by whom, int [C].
        tags: codes of its tokens, C arrays.
        rounds: of EM.

    Returns:
        q [C], which sums to one within each sentence, and pi [R].
    """
    starts, size = crf.chains.starts, (crf.features.shape[0], crf.num_tags)
    q = agreement(sentences, tags, starts, crf.num_tags)
    pi = np.full(annotators.max() + 1, 1 / (annotators.max() + 1))
    for step in range(rounds):
        pi = reliabilities(q, sentences, annotators, pi)
        crf.fit(*weighted(q, sentences, tags, starts, size), steps=STEPS if step < rounds - 1 else LAST_STEPS)
        logs = crf.log_probabilities(sentences, tags) + np.log(np.maximum(pi[annotators], 1e-300))
        highest = np.full(len(starts), -np.inf)
        np.maximum.at(highest, sentences, logs)
        q = shares(np.exp(logs - highest[sentences]), sentences)
    return q, pi


# === Rows ===


def copies(crowd: Any) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Tagged copies of the sentences: sentence [C], annotator [C], codes of the tags."""
    rows = crowd.annotations
    order = np.lexsort((rows.positions, rows.annotator_ids, rows.task_ids))
    pairs = np.stack([rows.task_ids, rows.annotator_ids])[:, order]
    cuts = np.flatnonzero((pairs[:, 1:] != pairs[:, :-1]).any(axis=0)) + 1
    firsts = np.concatenate([[0], cuts])
    return pairs[0, firsts], pairs[1, firsts], np.split(rows.labels[order], cuts)


def measured(row: str) -> Iterator[dict[str, Any]]:
    """Scores of the spans of the test sentences, and seconds of the training."""
    from crowdzoo import aggregation
    from crowdzoo.datasets.ner_amt import load_ner_amt
    from crowdzoo.sequences import span_scores

    data = load_ner_amt()
    crowd, test = data.crowd, data.test
    started, cpu = time.perf_counter(), time.process_time()
    features = Features(crowd.tokens)
    lengths, test_lengths = (np.array([len(tokens) for tokens in each.tokens]) for each in (crowd, test))
    x = features(crowd.tokens)
    crf = LinearChain(x, lengths, len(crowd.classes))
    if row == "CRF-MA":
        sentences, annotators, tags = copies(crowd)
        q, pi = fit_crowd(crf, sentences, annotators, tags)
        order = np.lexsort((q, sentences))
        last = np.append(np.flatnonzero(np.diff(sentences[order])), len(order) - 1)
        own = [tags[n] for n in order[last]]
        more = {"mean of the largest q": float(q[order[last]].mean()), "largest pi": float(pi.max())}
    else:
        codes = crowd.gold
        if row in AGGREGATED:
            codes = aggregation.create(AGGREGATED[row], kind="sequence").fit(crowd).codes()
        every = np.arange(len(crowd))
        crf.fit(*weighted(np.ones(len(crowd)), every, codes, crf.chains.starts, (x.shape[0], crf.num_tags)), LAST_STEPS)
        own, more = crf.tag(x, lengths), {}
    seconds = {"seconds": time.perf_counter() - started, "cpu seconds": time.process_time() - cpu}
    said = crf.tag(features(test.tokens), test_lengths)
    scores = span_scores(test.gold_tags(), [test.tag_set.tags(each) for each in said])
    of_own = span_scores(crowd.gold_tags(), [crowd.tag_set.tags(each) for each in own])
    yield {
        "precision": scores.precision, "recall": scores.recall, "f1": scores.f1, "own_f1": of_own.f1,
        "features": x.shape[1], **seconds, **more,
    }  # fmt: skip


PARTS: Parts = {"CoNLL-2003": {row: partial(measured, row) for row in ("CRF, gold", *AGGREGATED, "CRF-MA")}}


if __name__ == "__main__":
    run(RESULTS, PARTS, __doc__)
