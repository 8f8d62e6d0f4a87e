"""RASA: the text closest to the mean of the texts' vectors, weighted by annotator."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from crowdzoo.aggregation.base import warn_not_converged
from crowdzoo.aggregation.free_texts.chosen_text import FEATURES, ChosenText
from crowdzoo.aggregation.free_texts.text_table import Array, TextTable
from crowdzoo.checks.constraints import FLAG, MAX_ITER, TOL, Number, setting

_LEAST = 1e-5  # of an annotator's sum of squared distances, and of the share of the others' weights


@dataclass(frozen=True)
class TextRASA(ChosenText):
    """The text whose vector is closest to the mean of its task's vectors, weighted by the annotators' skills.

    A skill is a quantile of the chi-squared distribution, for the number of the annotator's texts, over the sum of the
    squared distances between the annotator's vectors and those of the tasks; skills and means are estimated in turn. A
    vector with a large weight pulls the mean towards itself. So each squared distance is divided by the share of the
    others' weights, which makes it unbiased if weights are inverse variances (restricted maximum likelihood). Otherwise
    the result may follow a single one of a handful of annotators. Tasks with one text are not used to estimate skills.

    Args:
        unit: kind of tokens: "words", or "characters" for scripts without spaces.
        normalize: what to ignore: "blanks" (only their number), "case", "punctuation", or both ("words").
        features: vectors of the texts: "edits" (vectors whose squared distances are the error rates of two texts: edits
            over the tokens of the longer), "ngrams" (frequencies of three consecutive characters, as a vector of
            length 1), or a function from a list of texts to an array [n, d], such as `encode` of a sentence
            transformer.
        max_iter: maximum number of iterations.
        tol: converged if the squared change of the tasks' vectors, relative to their squares, is below this.
        alpha: level of the quantile, which is at alpha / 2.
        corrected: whether distances are divided by the share of the others' weights; False is the published method, as
            in Crowd-Kit.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import TextRASA
        >>> task, annotator = [1, 1, 1, 2, 2, 2], ["ann", "bob", "cem"] * 2
        >>> words = ["a cat sat", "a cat sat", "cats", "the dog ran", "the dog ran", "go"]
        >>> texts = Annotations.from_arrays(task, annotator, words, kind="free-text")
        >>> TextRASA().fit(texts).texts.tolist()
        ['a cat sat', 'the dog ran']

    Needs:
        Annotators with several tasks.

    Source:
        J. Li and F. Fukumoto: A Dataset of Crowdsourced Word Sequences, AnnoNLP 2019, as in Crowd-Kit.
    """

    title: ClassVar[str] = "RASA"
    name: ClassVar[str] = "text-rasa"

    features: Any = setting("edits", FEATURES)
    max_iter: int = setting(100, MAX_ITER)
    tol: float = setting(1e-5, TOL)
    alpha: float = setting(0.05, Number(0, 1, above=True, below=True))
    corrected: bool = setting(True, FLAG)

    def _local(self, table: TextTable, own: Array, products: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Weight of a text from the others of its task, and whether it is used to estimate skills, [A] each."""
        return np.ones(len(own)), np.ones(len(own), bool)

    def _scores(self, table: TextTable) -> tuple[Array, dict[str, Any]]:
        own, products = table.products(self.features)
        local, counted = self._local(table, own, products)
        if self.corrected:
            counted = counted & (table.sizes[table.tasks] > 1)
        number = table.annotations.num_annotators
        counts = np.bincount(table.who[counted], minlength=number)
        prior = np.where(counts > 0, chdtri(np.maximum(counts, 1), self.alpha / 2), np.nan)
        skills, last, change, steps = np.ones(number), None, np.inf, 0
        for _ in range(self.max_iter):
            steps += 1
            weights = skills[table.who] * local
            shares = weights / table.of_tasks(weights)[table.tasks]
            along = own * shares + table.sums(products, shares)  # inner product of a text's vector and its task's
            squares = table.of_tasks(shares * along)
            far = np.maximum(own - 2 * along + squares[table.tasks], 0) / local
            if self.corrected:
                far /= np.maximum(1 - shares, _LEAST)
            learnt = prior / np.maximum(np.bincount(table.who[counted], far[counted], number), _LEAST)
            skills = np.where(counts > 0, learnt, np.nanmedian(learnt) if counts.any() else 1.0)
            if last is not None:
                moved = np.where(counted, shares - last, 0.0)
                across = own * moved + table.sums(products, moved)
                change = float(moved @ across / max(table.of_tasks(shares * along * counted).sum(), 1e-300))
                if change < self.tol:
                    break
            last = shares
        if not (converged := change < self.tol):
            warn_not_converged(self.title, self.max_iter, self.tol, change, "change of the tasks' squared vectors")
        lengths = np.sqrt(own * squares[table.tasks])
        scores = np.divide(along, lengths, out=np.full(len(own), -np.inf), where=lengths > 0)
        return scores, {"skills": skills, "num_iterations": steps, "converged": converged}


@dataclass(frozen=True)
class TextHRRASA(TextRASA):
    """As `TextRASA`, with weights that also depend on how much the other texts of the task agree with a text.

    The skill is multiplied by a weighted sum of two means over the other texts: of exp(-d² / (|a|² |b|²)) of the
    vectors, and of Google's BLEU of the tokens. Tasks with one text are never used to estimate skills.

    Args:
        unit: kind of tokens: "words", or "characters" for scripts without spaces.
        normalize: what to ignore: "blanks" (only their number), "case", "punctuation", or both ("words").
        features: vectors of the texts; see `TextRASA`.
        max_iter: maximum number of iterations.
        tol: converged if the squared change of the tasks' vectors, relative to their squares, is below this.
        alpha: level of the quantile, which is at alpha / 2.
        corrected: see `TextRASA`.
        lambda_emb: weight of the vectors.
        lambda_out: weight of the tokens.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import TextHRRASA
        >>> task, annotator = [1, 1, 1, 2, 2, 2], ["ann", "bob", "cem"] * 2
        >>> words = ["a cat sat", "a cat sat", "cats", "the dog ran", "the dog ran", "go"]
        >>> texts = Annotations.from_arrays(task, annotator, words, kind="free-text")
        >>> TextHRRASA().fit(texts).texts.tolist()
        ['a cat sat', 'the dog ran']

    Needs:
        At least three texts per task; annotators with several tasks.

    Source:
        J. Li: Crowdsourced Text Sequence Aggregation Based on Hybrid Reliability and Representation, SIGIR 2020, as in
        Crowd-Kit, which compares tokens with tokens only if its `output_similarity` is passed.
    """

    title: ClassVar[str] = "HRRASA"
    name: ClassVar[str] = "text-hrrasa"

    lambda_emb: float = setting(0.5, Number(0, 1))
    lambda_out: float = setting(0.5, Number(0, 1))

    def _local(self, table: TextTable, own: Array, products: Array) -> tuple[Array, NDArray[np.bool_]]:
        left, right = table.pairs
        norms, apart = own[left] * own[right], own[left] + own[right] - 2 * products
        near = np.exp(-np.divide(apart, norms, out=np.full(len(norms), 700.0), where=norms > 0))
        both = self.lambda_emb * near + self.lambda_out * (1 - table.distances)
        num_others = table.sizes[table.tasks] - 1
        means = table.sums(both) / np.maximum(num_others, 1)
        return np.where(num_others > 0, np.maximum(means, 1e-300), 1.0), num_others > 0
