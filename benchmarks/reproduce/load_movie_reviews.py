"""MovieReviews: reviews rated by workers of Mechanical Turk, with the rating that the review's author gave."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crowdzoo.data.annotations import Annotations
from crowdzoo.datasets.crowd_dataset import data_folder
from crowdzoo.errors import DataError
from crowdzoo.files.regular import open_regular


@dataclass(frozen=True, eq=False, repr=False)
class MovieReviews:
    """Two releases of the set; row i of every array is task code i of its annotations.

    All ratings are from 0 to 1. The releases have other orders, and the second misses two reviews.

    Attributes:
        annotations: ratings of 1,500 reviews by 135 annotators.
        gold: the authors' ratings, float64 [1500].
        words: of each of these reviews, term numbers and counts, int64 [terms, 2]; the terms themselves are not known.
        test_gold: of 3,506 further reviews, which nobody annotated.
        test_words: of these, as `words`.
        text_annotations: ratings of the 1,498 reviews whose text there is.
        text_gold: the authors' ratings of these, float64 [1498].
        texts: the 1,498 texts. The test reviews have no texts.
    """

    annotations: Annotations
    gold: np.ndarray
    words: list[np.ndarray]
    test_gold: np.ndarray
    test_words: list[np.ndarray]
    text_annotations: Annotations
    text_gold: np.ndarray
    texts: list[str]

    def tf_idf(self, min_texts: int = 3) -> tuple[np.ndarray, np.ndarray]:
        """Bags of words as features: counts times `1 + log((1 + N) / (1 + reviews with the term))`, rows of length one.

        Args:
            min_texts: training reviews that a term must occur in.

        Returns:
            Of the training and of the test reviews, float32 [1500, terms] and [3506, terms]; the weights are those of
            the training reviews.
        """
        terms = np.concatenate([words[:, 0] for words in self.words])
        texts = np.bincount(terms)
        kept = np.flatnonzero(texts >= min_texts)
        weight = 1 + np.log((1 + len(self.words)) / (1 + texts[kept]))
        place = np.full(max(len(texts), 1 + max(words[:, 0].max() for words in self.test_words)), -1)
        place[kept] = np.arange(len(kept))
        return _bags(self.words, place, weight), _bags(self.test_words, place, weight)

    def __repr__(self) -> str:
        return (
            f"<MovieReviews: {self.annotations!r}, {len(self.test_gold):,} further reviews, {len(self.texts):,} texts>"
        )


def load_movie_reviews(folder: str | Path | None = None) -> MovieReviews:
    """Reads MovieReviews, which does not ship with crowdzoo.

    Args:
        folder: `movie-reviews-amt`, with `MovieReviews/` (F. Rodrigues' MA-sLDAr) and `clasda/` (AAAI 2018) in it; None
            is the one below `data_folder()`.

    Returns:
        The set.

    Raises:
        DataError: a file is missing.

    Source:
        F. Rodrigues et al.: Learning Supervised Topic Models for Classification and Regression from Crowds. TPAMI
        2017. Reviews: B. Pang, L. Lee: Seeing Stars. ACL 2005.
    """
    folder = data_folder() / "movie-reviews-amt" if folder is None else Path(folder)
    if not folder.is_dir():
        raise DataError(f"{folder} does not exist. Set CROWDZOO_DATA to the folder of the raw data sets.")
    reviews, authors = folder / "MovieReviews", folder / "clasda"
    return MovieReviews(
        annotations=_answers(reviews / "answers.txt.gz", 999999999),
        gold=_numbers(reviews / "labels_train_amt.txt"),
        words=_words(reviews / "data_train_amt.txt.gz"),
        test_gold=_numbers(reviews / "labels_test.txt"),
        test_words=_words(reviews / "data_test.txt.gz"),
        text_annotations=_answers(authors / "answers.txt.gz", -1),
        text_gold=_numbers(authors / "ratings_train.txt"),
        texts=_lines(authors / "texts_train.txt.gz"),
    )


def _lines(path: Path) -> list[str]:
    with open_regular(path) as file:
        return file.read().decode("utf-8").splitlines()


def _numbers(path: Path) -> np.ndarray:
    return np.array([float(line) for line in _lines(path)])


def _answers(path: Path, missing: float) -> Annotations:
    matrix = np.array([[float(cell) for cell in line.split()] for line in _lines(path)])
    return Annotations.from_dense(matrix, kind="regression", missing=missing)


def _words(path: Path) -> list[np.ndarray]:
    """Lines of LDA-C: the number of terms, then `term:count` for each."""
    return [
        np.array([pair.split(":") for pair in line.split()[1:]], dtype="int64").reshape(-1, 2) for line in _lines(path)
    ]


def _bags(rows: list[np.ndarray], place: np.ndarray, weight: np.ndarray) -> np.ndarray:
    bags = np.zeros((len(rows), len(weight)), "float32")
    for bag, words in zip(bags, rows, strict=True):
        known = place[words[:, 0]] >= 0
        at = place[words[known, 0]]
        np.add.at(bag, at, words[known, 1] * weight[at])
        bag /= max(float(np.linalg.norm(bag)), 1e-12)
    return bags
