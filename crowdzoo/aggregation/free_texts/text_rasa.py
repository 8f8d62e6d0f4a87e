"""RASA: the text nearest to a mean of the texts' vectors in which annotators have weights."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from crowdzoo.aggregation.base import warn_not_converged
from crowdzoo.aggregation.free_texts.chosen_text import FEATURES, ChosenText
from crowdzoo.aggregation.free_texts.text_table import Array, TextTable
from crowdzoo.checks.constraints import FLAG, MAX_ITER, TOL, Number, setting

_LEAST = 1e-5  # of the sum of an annotator's squared distances, and of what the others weigh


@dataclass(frozen=True)
class TextRASA(ChosenText):
    """The text whose vector is nearest to the task's: the mean of its texts' vectors, weighted by annotators' skills.

    A skill is a quantile of the chi-squared distribution, for the number of the annotator's texts, over the sum of the
    squared distances of the annotator's vectors from those of the tasks; both are found in turn. The more a vector
    weighs in its task's, the nearer it lies to it. So each squared distance is divided by what the others weigh, which
    makes it unbiased where weights are inverse variances (restricted maximum likelihood). Without that, one of a
    handful of annotators may be followed in everything. Tasks with one text do not count for the skills.

    Args:
        unit: what tokens are: "words", or "characters" for scripts without blanks.
        normalize: what does not count: "blanks" (only their number), "case", "punctuation", or both ("words").
        features: vectors of the texts: "edits" (vectors whose squared distances are the error rates of two texts: edits
            over the tokens of the longer), "ngrams" (how often each run of three characters occurs, as a vector of
            length 1), or a function from a list of texts to an array [n, d], such as `encode` of a sentence
            transformer.
        max_iter: most iterations.
        tol: they end when the squared change of the tasks' vectors, over their squares, is below.
        alpha: of the quantile, which is that of alpha / 2.
        corrected: whether distances are divided by what the others weigh; False is the method as it was published, and
            as Crowd-Kit has it.

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
        J. Li and F. Fukumoto: A Dataset of Crowdsourced Word Sequences, AnnoNLP 2019, as Crowd-Kit has it.
    """

    title: ClassVar[str] = "RASA"
    name: ClassVar[str] = "text-rasa"

    features: Any = setting("edits", FEATURES)
    max_iter: int = setting(100, MAX_ITER)
    tol: float = setting(1e-5, TOL)
    alpha: float = setting(0.05, Number(0, 1, above=True, below=True))
    corrected: bool = setting(True, FLAG)

    def _local(self, table: TextTable, own: Array, products: Array) -> tuple[Array, NDArray[np.bool_]]:
        """What the others of its task say of a text, and whether skills are learnt from it, [A] each."""
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
            along = own * shares + table.sums(products, shares)  # of a text's vector and its task's
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
            warn_not_converged(self.title, self.max_iter, self.tol, change, "of the squares of the tasks' vectors")
        lengths = np.sqrt(own * squares[table.tasks])
        scores = np.divide(along, lengths, out=np.full(len(own), -np.inf), where=lengths > 0)
        return scores, {"skills": skills, "num_iterations": steps, "converged": converged}


@dataclass(frozen=True)
class TextHRRASA(TextRASA):
    """As `TextRASA`, with weights that are the annotator's skill times what the other texts of the task say of a text.

    That is a weighted sum of two means over the others: of exp(-d² / (|a|² |b|²)) of the vectors, and of Google's BLEU
    of the tokens. Tasks with one text never count for the skills.

    Args:
        unit: what tokens are: "words", or "characters" for scripts without blanks.
        normalize: what does not count: "blanks" (only their number), "case", "punctuation", or both ("words").
        features: vectors of the texts; see `TextRASA`.
        max_iter: most iterations.
        tol: they end when the squared change of the tasks' vectors, over their squares, is below.
        alpha: of the quantile, which is that of alpha / 2.
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
        Three texts per task or more; annotators with several tasks.

    Source:
        J. Li: Crowdsourced Text Sequence Aggregation Based on Hybrid Reliability and Representation, SIGIR 2020, as
        Crowd-Kit has it; the tokens are compared with tokens there only where its `output_similarity` is given.
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
