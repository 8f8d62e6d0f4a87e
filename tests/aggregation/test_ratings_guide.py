"""docs/ratings.md: its examples run."""

import re
from pathlib import Path

import numpy as np
import pytest

from crowdzoo.export.predict import load_and_predict

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "ratings.md").read_text(encoding="utf-8")


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
