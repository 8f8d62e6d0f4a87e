"""STAPLE: sensitivity and specificity of each annotator, and the resulting probabilities of pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, logit

from crowdzoo.aggregation.base import warn_not_converged
from crowdzoo.aggregation.regions.pixel_vote import Array, Part, PixelVote
from crowdzoo.checks.constraints import MAX_ITER, TOL, setting

_LEAST = 1e-12  # of sensitivities and specificities, and of 1 minus these


@dataclass(frozen=True)
class STAPLE(PixelVote):
    """EM over pixels: each annotator has a sensitivity and a specificity per class.

    The prior of a pixel is the mean share of the image's pixels that annotators mark. Pixels with the same votes are
    one row with a count, so unanimous ones cost nothing. Images on which nobody marked a class are not used for it.
    Sensitivities and specificities are shared by all images; for a single image they equal those of SimpleITK.

    Args:
        max_iter: maximum number of iterations.
        tol: converged if no sensitivity and no specificity changes by more than this.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import STAPLE
        >>> image = '{"size": [4, 6], "regions": [{"category": "cat", "bbox": [%d, 1, 2, 2]}]}'
        >>> marked = [image % left for left in (1, 1, 2)]
        >>> result = STAPLE().fit(Annotations.from_arrays([1, 1, 1], ["ann", "bob", "cem"], marked, kind="region"))
        >>> str(result.annotators[result.sensitivity[:, 0].argmin()])  # who misses the most pixels
        'cem'

    Needs:
        At least three annotators per image; masks that mostly lie in the same place.

    Source:
        S. K. Warfield, K. H. Zou and W. M. Wells: Simultaneous Truth and Performance Level Estimation (STAPLE), IEEE
        Transactions on Medical Imaging 23, 2004, equations 14 to 20.
    """

    title: ClassVar[str] = "STAPLE"
    name: ClassVar[str] = "staple"
    _learns: ClassVar[tuple[str, ...]] = ("sensitivity", "specificity")

    max_iter: int = setting(1000, MAX_ITER)
    tol: float = setting(1e-7, TOL)

    def _probabilities(self, parts: list[Part], number: int) -> tuple[list[Array], Any, int, bool]:
        """See `PixelVote`; rows are distinct votes of an image, with the number of pixels that have them."""
        sizes, lengths = [len(part[-1]) for part in parts], np.concatenate([part[-1] for part in parts])
        images, answers = np.repeat(np.arange(len(parts)), sizes), np.full((len(lengths), number), -1)
        for image, (_, who, votes, _) in enumerate(parts):
            answers[np.ix_(images == image, who)] = votes
        means = (answers > 0).sum(axis=1) / (answers >= 0).sum(axis=1)
        priors = np.bincount(images, lengths * means) / np.bincount(images, lengths)
        _, first, back = np.unique(np.c_[images, answers], axis=0, return_index=True, return_inverse=True)
        weights, odds = np.bincount(back.ravel(), lengths), logit(priors[images[first]].clip(max=1 - _LEAST))
        inside, outside, shares = (answers[first] > 0).astype(float), (answers[first] == 0).astype(float), means[first]
        rates, change, steps = np.full((2, number), np.inf), np.inf, 0
        while change > self.tol and steps < self.max_iter:
            steps += 1
            true, false = weights * shares, weights * (1 - shares)
            right = np.stack([true @ inside, false @ outside])
            wholes = right + np.stack([true @ outside, false @ inside])
            of_all = right.sum(axis=1, keepdims=True) / wholes.sum(axis=1, keepdims=True).clip(1e-300)
            fresh = np.where(wholes > 0, right / np.where(wholes > 0, wholes, 1), of_all).clip(_LEAST, 1 - _LEAST)
            change, rates = float(np.abs(fresh - rates).max()), fresh
            (hit, reject), (miss, invent) = np.log(rates), np.log1p(-rates)
            shares = expit(odds + inside @ (hit - invent) + outside @ (miss - reject))
        if change > self.tol:
            warn_not_converged(self.title, self.max_iter, self.tol, change, "change of a rate")
        probabilities = np.split(shares[back.ravel()], np.cumsum(sizes)[:-1])
        return probabilities, rates, steps, change <= self.tol
