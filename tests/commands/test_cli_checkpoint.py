"""`crowdzoo train --checkpoint`: a process that was killed goes on where it stood."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

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


@pytest.fixture
def stopped(words, tmp_path, monkeypatch, capsys):
    """The words of a training of three epochs that was interrupted after two."""
    from crowdzoo.training.checkpoint import _Keeper

    write = _Keeper.on_epoch_end

    def stop(keeper, epoch, logs=None):
        write(keeper, epoch, logs)
        if epoch == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(_Keeper, "on_epoch_end", stop)
    words = [*words, "--out", str(tmp_path / "model.keras"), "--checkpoint", str(tmp_path / "checkpoint")]
    assert cli.main([*words, "--epochs", "3"]) == 130
    monkeypatch.undo()
    capsys.readouterr()
    return words


@pytest.mark.slow
def test_a_checkpoint_of_other_settings_is_refused_with_what_differs(stopped, tmp_path, capsys):
    data = tmp_path / "other.csv"
    data.write_text(Path(stopped[2]).read_text().rpartition(",")[0] + ",9")  # one number of the last task
    for words, message in [
        ([*stopped, "--epochs", "4"], "epochs is 3 there and 4 here. Repeat"),
        ([*stopped, "--epochs", "3", "--seed", "4"], "seed is 1 there and 4 here. Repeat"),
        (
            [*stopped, "--epochs", "3", "--method", "deep-em"],
            "method is ccem there and deep-em here. Rep",
        ),
        ([*stopped, "--epochs", "3", "--method", "majority-vote"], "there and majority-vote here. Repeat"),
        ([*stopped[:2], str(data), *stopped[3:], "--epochs", "3"], "its data are other ones. Repeat"),
    ]:
        assert cli.main(words) == 4
        said = capsys.readouterr().err
        assert message in said
        assert "set_random_seed" not in said
    assert not (tmp_path / "model.keras").exists()


@pytest.mark.slow
def test_patience_ends_a_training_and_the_table_says_at_which_epoch(words, tmp_path, capsys):
    out = tmp_path / "model.keras"
    long = ["--patience", "2", "--precision", "mixed_bfloat16", "--no-jit-compile", "--learning-rate", "0.1"]
    assert cli.main([*words, *long, "--epochs", "50", "--out", str(out)]) == 0
    rows = re.findall(r"(trained for epochs|best epoch) +(\d+)", capsys.readouterr().out)
    found = {name: int(value) for name, value in rows}
    assert found["best epoch"] + 2 == found["trained for epochs"] < 50
