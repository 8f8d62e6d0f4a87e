"""docs/ratings.md: its examples run, and its figures are those of the saved results."""

import json
import re
import statistics
from pathlib import Path

import numpy as np
import pytest

from crowdzoo.aggregation import RATING_METHODS
from crowdzoo.export.predict import load_and_predict

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "ratings.md").read_text(encoding="utf-8")
RESULTS = json.loads((ROOT / "benchmarks" / "results" / "movie_reviews.json").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_the_examples_run_and_say_what_the_text_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in re.findall(r"```python\n(.*?)```", GUIDE, flags=re.DOTALL):
        exec(block, names)
    assert (tmp_path / "films" / "tasks.parquet").exists()
    found, truth = names["found"], names["truth"]
    stars = names["annotations"]
    mean = np.bincount(stars.task_ids, stars.labels) / np.maximum(stars.redundancy, 1)
    mean[stars.redundancy == 0] = np.nan
    assert np.std(found.estimates - truth) < 0.7 * np.nanstd(mean - truth)
    assert found.skills.argmin() == 5
    assert np.corrcoef(found.biases[:5], names["harshness"][:5])[0, 1] > 0.98
    assert np.corrcoef(names["on_features"].predict(names["x"], verbose=0)[:, 0], truth)[0, 1] > 0.9
    served = load_and_predict(tmp_path / "served_reviews", ["a great great film", "a dull awful film"])["value"]
    np.testing.assert_allclose(served, names["values"][:, 0], rtol=1e-5)
    assert served[0] > served[1] + 2


@pytest.mark.parametrize("method", RATING_METHODS)
def test_every_method_has_a_row(method):
    assert re.search(rf"^\| `{method}` \| ", GUIDE, flags=re.M)


def test_the_figures_are_those_of_the_results():
    shown = dict(re.findall(r"^\| `([a-z-]+)` \| (\.\d+) \| ", GUIDE.partition("## Networks")[0], flags=re.M))
    alone = RESULTS["aggregation"]["MovieReviews"]
    rows = {
        "mean": "mean",
        "median": "median",
        "rating-em": "EM, biases and precisions",
    }
    assert list(shown) == list(rows)
    for method, row in rows.items():
        assert float(shown[method]) == pytest.approx(alone[row]["R2"], abs=0.00051), row
    shown = dict(re.findall(r"^\| `([a-z-]+)` \| (\.\d+) \| ", GUIDE.partition("## Networks")[2], flags=re.M))
    shown |= dict(
        zip(("mean", "gold"), re.search(r"mean has (\.\d+), on the true ratings (\.\d+)", GUIDE).groups(), strict=True)
    )
    networks = RESULTS["bag of words"]
    r2 = {row: statistics.mean(seed["R2"] for seed in seeds.values()) for row, seeds in networks.items()}
    rows = {
        "aggregated": "EM", "rating-em": "deep EM", "crowdsourced-layer": "CL (B)",
        "mean": "mean", "gold": "gold",
    }  # fmt: skip
    assert list(shown) == list(rows)
    for method, row in rows.items():
        assert float(shown[method]) == pytest.approx(r2[row], abs=0.00051), row
    assert r2["CL (B)"] >= max(0.44, r2["mean"] + 0.02)
    assert r2["EM"] >= max(0.44, r2["mean"] + 0.02)
    assert min(seed["bias correlation"] for seed in networks["CL (B)"].values()) >= 0.9


def test_where_the_em_is_worse_than_the_mean_is_said():
    affects = {name: rows for name, rows in RESULTS["aggregation"].items() if name != "MovieReviews"}
    better = [name for name, rows in affects.items() if rows["EM, biases and precisions"]["R2"] > rows["mean"]["R2"]]
    worse = [name for name in affects if name not in better]
    assert f"on {', '.join(better)}, the lower one on {', '.join(worse)}." in " ".join(GUIDE.split())
