"""`crowdzoo train --checkpoint`: a process that was killed goes on where it stood."""

import os
import re
import signal
import subprocess
import sys
import time

import keras
import numpy as np
import pytest

from crowdzoo.commands import main as cli


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """A training on 200 tasks by 5 annotators, as the command line has it."""
    folder, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    features = rng.normal(size=(200, 3))
    lines = ["task,annotator,label"]
    for task, row in enumerate(features):
        for annotator in rng.choice(5, 3, replace=False):
            lines.append(f"t{task},a{annotator},{rng.integers(2) if rng.random() < 0.2 else int(row[0] > 0)}")
    (folder / "annotations.csv").write_text("\n".join(lines))
    rows = [f"t{task},{row[0]},{row[1]},{row[2]}" for task, row in enumerate(features)]
    (folder / "instances.csv").write_text("\n".join(["task,x,y,z", *rows]))
    return ["train", str(folder / "annotations.csv"), str(folder / "instances.csv"), "--batch-size", "8", "--seed", "1"]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["crowdsourced-layer", "cross-fitted-em"])
def test_a_killed_process_ends_with_the_same_model_when_it_is_started_again(words, method, tmp_path):
    words = [*words, "--method", method, "--epochs", "40"]
    assert cli.main([*words, "--out", str(tmp_path / "whole.keras")]) == 0
    folder, out = tmp_path / "checkpoint", tmp_path / "killed.keras"
    command = [sys.executable, "-m", "crowdzoo", *words, "--out", str(out), "--checkpoint", str(folder)]
    state = folder / "phase-0.npz"
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and not state.exists():
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    with np.load(state) as stored:
        assert b'"ended": false' in stored["json"].tobytes()  # it was in mid-training
    assert not out.exists()
    assert cli.main(command[3:]) == 0
    one, two = (keras.saving.load_model(tmp_path / name) for name in ("whole.keras", "killed.keras"))
    for left, right in zip(one.get_weights(), two.get_weights(), strict=True):
        np.testing.assert_array_equal(left, right)
    assert not folder.exists()


@pytest.mark.slow
def test_patience_ends_a_training_and_the_table_says_at_which_epoch(words, tmp_path, capsys):
    long = ["--patience", "2", "--learning-rate", "0.1", "--epochs", "50", "--out", str(tmp_path / "model.keras")]
    assert cli.main([*words, *long]) == 0
    found = dict(re.findall(r"(trained for epochs|best epoch) +(\d+)", capsys.readouterr().out))
    assert int(found["best epoch"]) + 2 == int(found["trained for epochs"]) < 50
