"""HRRASA: RASA in which a text also counts by how near it is to the others of its task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.free_texts.text_rasa import TextRASA
from crowdzoo.aggregation.free_texts.text_table import Array, TextTable
from crowdzoo.checks.constraints import Number, setting


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
        Three texts a task or more; annotators with several tasks.

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
