"""fitted_skills: how good annotators are, by how far any two of them agree."""

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]


def fitted_skills(first: Codes, second: Codes, agreement: Floats, weights: Floats, number: int) -> Floats:
    """Skills whose products fit the agreement of pairs of annotators best, by least squares, 0 to 1, [R].

    Those who answer by themselves agree as far as both are right. So skills are found without an aggregate, also where
    most annotators are bad, as long as they are bad each in their own way.

    Args:
        first: an annotator of each pair, each pair in both orders, [P].
        second: the other one, [P].
        agreement: beyond chance, 1 at most, [P].
        weights: of the pairs, [P].
        number: of annotators, R.
    """
    skill = np.full(number, 0.7)
    for _ in range(30):  # half a step: whole ones go to and fro
        product = np.bincount(first, weights * agreement * skill[second], number)
        square = np.bincount(first, weights * skill[second] ** 2, number)
        skill = (skill + np.clip(product / np.maximum(square, 1e-6), 0, 1)) / 2
    return skill
