"""BSC-seq: as HMM-crowd, but what an annotator says also depends on what the annotator said of the token before."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.sentences.chain_method import LEAST_PRIOR, ChainMethod
from crowdzoo.checks.constraints import Number, setting
from crowdzoo.data.tags import OUTSIDE, TagSet

RARE = 1e-3  # of a cell's pseudo-count, for what the scheme forbids an annotator to say


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
