"""Several labels by one annotator for one task: kept where a method counts labels, refused elsewhere."""

import os
from pathlib import Path

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.aggregation import METHODS, Aggregation, DawidSkene, MajorityVote, create
from crowdzoo.commands.main import main
from crowdzoo.errors import DataError
from crowdzoo.quality import quality_report
from crowdzoo.training.pair_rows import pair_rows

# annotator 0 looked at each task twice
TASK, ANNOTATOR = [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2], [0, 0, 1, 2] * 3
LABEL = [0, 0, 1, 1, 1, 0, 1, 1, 0, 1, 0, 0]


def repeated():
    return Annotations.from_arrays(TASK, ANNOTATOR, LABEL, on_duplicate="all")


def dawid_skene_from_counts(counts, iterations):
    """Dawid and Skene's EM (1979, equations 2.3 to 2.5) on counts [R, N, K] of how often who said what of which."""
    posterior = counts.sum(axis=0) / counts.sum(axis=(0, 2))[:, None]
    for _ in range(iterations):
        prior = posterior.mean(axis=0)
        confusion = np.einsum("nj,rnk->rjk", posterior, counts) + 1e-9
        confusion /= confusion.sum(axis=2, keepdims=True)
        log = np.log(prior) + np.einsum("rnk,rjk->nj", counts, np.log(confusion))
        posterior = np.exp(log - log.max(axis=1, keepdims=True))
        posterior /= posterior.sum(axis=1, keepdims=True)
    return posterior


def test_majority_vote_counts_each_label():
    posteriors = MajorityVote().fit(repeated()).posteriors
    np.testing.assert_allclose(posteriors, [[0.5, 0.5], [0.25, 0.75], [0.75, 0.25]])


@pytest.mark.parametrize("method", ["majority-vote", "dawid-skene"])
def test_the_command_counts_each_label(method, tmp_path, refusal_of):
    rows = [f"{task},{who},{label}" for task, who, label in zip(TASK, ANNOTATOR, LABEL, strict=True)]
    (tmp_path / "a.csv").write_text("\n".join(["task,annotator,label", *rows]) + "\n")
    words = ["aggregate", str(tmp_path / "a.csv"), "--method", method, "--out", str(tmp_path / "out")]
    assert "keep one with --on-duplicate first or --on-duplicate last." in refusal_of(*words, code=3)
    assert main([*words, "--on-duplicate", "all"]) == 0
    found = Aggregation.from_parquet(tmp_path / "out")
    assert found.annotations_per_task.tolist() == [4, 4, 4]
    np.testing.assert_allclose(found.posteriors, create(method).fit(repeated()).posteriors, rtol=1e-9, atol=1e-12)
    assert main([*words, "--on-duplicate", "all", "--method", "glad", "--force"]) == DataError.exit_code


def test_dawid_skene_counts_each_label_as_its_authors_did():
    counts = np.zeros((3, 3, 2))
    np.add.at(counts, (ANNOTATOR, TASK, LABEL), 1)
    result = DawidSkene(max_iter=200).fit(repeated())
    np.testing.assert_allclose(result.posteriors, dawid_skene_from_counts(counts, 500), atol=1e-3)


def test_all_other_methods_refuse_repeated_answers_with_what_to_do():
    others = [name for name in METHODS if name not in ("majority-vote", "dawid-skene")]
    assert len(others) == 8
    for name in others:
        with pytest.raises(DataError, match=r"needs one label .*on_duplicate='first'"):
            create(name).fit(repeated())


def test_tables_measures_and_training_refuse_repeated_answers():
    for use in (Annotations.to_dense, quality_report, lambda found: pair_rows(np.zeros((3, 1)), found)):
        with pytest.raises(DataError, match="needs one label per annotator and task"):
            use(repeated())


@pytest.mark.skipif("CROWDZOO_DATA" not in os.environ, reason="CROWDZOO_DATA names no folder of data")
def test_the_estimates_for_the_anaesthetists_are_those_of_dawid_and_skene():
    path = Path(os.environ["CROWDZOO_DATA"], "dawid-skene-1979", "anaesthetists.csv")
    found = Annotations.read(path, columns="task=patient,annotator=observer", on_duplicate="all")
    assert len(found) == 315
    result = DawidSkene(prior=1e-9, diagonal=0.0, max_iter=500, tol=1e-9).fit(found)
    # their marginal probabilities, and the error rates of observer 1, who looked at each patient three times
    np.testing.assert_allclose(result.posteriors.mean(axis=0), [0.40, 0.42, 0.11, 0.07], atol=0.005)
    expected = [[0.89, 0.11, 0, 0], [0.07, 0.88, 0.05, 0], [0, 0.34, 0.66, 0], [0, 0, 0.56, 0.44]]
    np.testing.assert_allclose(result.confusions[0], expected, atol=0.006)
