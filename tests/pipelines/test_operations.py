"""Runs as an operator makes them: push, refusal, rollback, veto, new data, canary; folder and exit code after each."""

import csv

import pytest

from crowdzoo.commands import main as cli
from crowdzoo.errors import ConfigError
from crowdzoo.files.version_folders import complete_versions


@pytest.fixture
def inputs(make_inputs, tmp_path, monkeypatch):
    make_inputs(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_a_story_of_ten_runs(inputs, capsys):
    served, log = inputs / "out" / "serving", []

    def run(*words):
        code = cli.main([*words])
        log.append((words, code, [path.name for path in complete_versions(served)]))
        return code, capsys.readouterr().out

    def crowdzoo_run(*settings):
        return run(
            "run", "tiny.yaml", "--fail-unless", "pushed", *(word for each in settings for word in ("--set", each))
        )

    def versions():
        return [path.name for path in complete_versions(served)]

    assert crowdzoo_run()[0] == 0
    (first,) = versions()
    code, printed = crowdzoo_run("training.epochs=1", "training.learning_rate=1e-7", "evaluation.minimum_accuracy=0.99")
    assert code == 8, "refused"
    assert "not pushed" in printed
    assert versions() == [first]
    assert crowdzoo_run()[0] == 0, "the first model again, which is served"
    assert versions() == [first]
    code, printed = crowdzoo_run("training.epochs=9", "evaluation.tolerance=1")
    assert code == 0
    second = versions()[-1]
    assert versions() == [first, second]

    code, printed = run("rollback", str(served), "--reason", "worse on cats")
    assert code == 0
    assert versions() == [first]
    for _ in range(2):  # from TFX's cache, too
        code, printed = crowdzoo_run("training.epochs=9", "evaluation.tolerance=1")
        assert code == 8
        assert "worse on cats" in printed
        assert "crowdzoo rollback --undo" in printed
        assert versions() == [first]
    with open(inputs / "answers.csv", "a", newline="") as file:
        csv.writer(file).writerow(["t00", "a5", "cat"])
    code, printed = crowdzoo_run("training.epochs=9", "evaluation.tolerance=1", "data.on_duplicate=first")
    assert code == 0, "the data changed"
    third = versions()[-1]
    assert versions() == [first, third]
    assert int(third) > int(second)

    assert run("promote", str(served), f"stable={first}", "canary=newest", "--config", "models.config")[0] == 0
    _, printed = run("promote", str(served), "stable=canary", "canary=", "--config", "models.config")
    assert printed == f"stable: version {third}\n"
    _, printed = run("versions", str(served), "--config", "models.config")
    rows = [line.split()[:2] for line in printed.splitlines()[3:]]
    assert rows == [[third, "served"], [second, "withdrawn"], [first, "not"]]
    print("\n".join(f"{code}  {versions}  crowdzoo {' '.join(words)}" for words, code, versions in log))


@pytest.mark.parametrize("more", [("--check",), ("--on", "kubeflow", "--out", "pipeline.yaml")])
def test_a_run_that_pushes_nothing_takes_no_fail_unless(inputs, capsys, more):
    assert cli.main(["run", "tiny.yaml", "--fail-unless", "pushed", *more]) == ConfigError.exit_code
    assert "--fail-unless is for a run" in capsys.readouterr().err
