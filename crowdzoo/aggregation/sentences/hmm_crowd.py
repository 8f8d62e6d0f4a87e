"""HMM-crowd: annotators with confusion matrices, and a truth whose tags follow each other by a Markov chain."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.sentences.chain_method import ChainMethod
from crowdzoo.data.tags import TagSet


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
