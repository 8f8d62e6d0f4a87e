"""docs/keras.md: its code runs as it stands."""

import re
from pathlib import Path

import keras
import numpy as np
import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "keras.md"
R, K = 6, 3


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="the page exports, which needs TensorFlow")
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning:keras_tuner.*")
@pytest.mark.filterwarnings("ignore:Skipping variable loading for optimizer")  # KerasTuner loads weights alone
def test_the_code_of_the_page_runs_from_top_to_bottom(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    keras.utils.set_random_seed(0)
    names = {}
    for block in re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.S):
        exec(compile(block, str(GUIDE), "exec"), names)
    model = names["loaded"]
    assert model.predict(names["x"][:2], verbose=0).shape == (2, K)
    assert model.annotator_confusions().shape == names["shares"].shape == (R, K, K)
    right = np.array([(names["truth"] == said)[said >= 0].mean() for said in names["y"].T])
    assert names["accuracies"].shape == right.shape
    assert (tmp_path / "served" / "1" / "saved_model.pb").is_file()
