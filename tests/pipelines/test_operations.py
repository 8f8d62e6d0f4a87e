"""Runs as an operator makes them: push, refusal, rollback, veto, new data, canary; folder and exit code after each."""

import csv
import shlex
from dataclasses import fields

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from crowdzoo.commands import main as cli
from crowdzoo.files.version_folders import complete_versions
from crowdzoo.pipelines.run_result import RunResult
from crowdzoo.serving import Client, Server


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
    for cached in (8, 9):  # from TFX's cache, too
        code, printed = crowdzoo_run("training.epochs=9", "evaluation.tolerance=1")
        assert code == 8
        assert f"{cached} of 9 components cached" in printed
        assert "worse on cats" in printed
        assert versions() == [first]
    advice = shlex.split(printed.partition("`crowdzoo ")[2].partition("`")[0])
    assert advice == ["rollback", str(served), "--undo", second]
    assert run(*advice)[0] == 0
    code, printed = crowdzoo_run("training.epochs=9", "evaluation.tolerance=1")
    assert code == 0, "served, and no veto is left"
    assert "9 of 9 components cached" in printed, "the push before the veto holds again"
    assert f"Model:       {served / second}: " in printed
    assert versions() == [first, second]
    assert run("rollback", str(served))[0] == 0
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


def scale_features(folder, factor, shift):
    table = pyarrow.parquet.read_table(folder / "instances.parquet")
    features = [[factor * value + shift for value in row] for row in table["features"].to_pylist()]
    column = table.schema.get_field_index("features")
    table = table.set_column(column, "features", pa.array(features, table.schema.field(column).type))
    pyarrow.parquet.write_table(table, folder / "instances.parquet")


@pytest.mark.slow
def test_features_of_another_scale_are_named_keep_the_served_model_or_end_the_run(make_inputs, inputs, capsys):
    make_inputs(inputs, 200)

    def run(*settings):
        words = [word for setting in ("evaluation.tolerance=1", *settings) for word in ("--set", setting)]
        code = cli.main(["run", "tiny.yaml", "--fail-unless", "pushed", *words])
        printed = capsys.readouterr()
        return code, printed.out + printed.err, [path.name for path in complete_versions(inputs / "out" / "serving")]

    code, printed, versions = run()
    assert code == 0
    assert "Anomaly" not in printed
    scale_features(inputs, 50, 10)
    code, printed, after = run("drift.action=fail")
    assert (code, after) == (5, versions)
    assert "instances: The approximate Jensen-Shannon divergence" in printed
    assert "--set drift.action=warn" in printed
    code, printed, after = run("drift.action=keep", "report.fail_if=[]")
    assert (code, after) == (8, versions)
    assert "the data differ from those of the served model" in printed
    page = next((inputs / "out" / "artifacts" / "CrowdReport" / "page").rglob("report.html"))
    assert "differ from those of the served model" in page.read_text()
    code, printed, after = run()
    assert code == 0, "it is only said"
    assert "Anomaly:     instances: The approximate Jensen" in printed
    assert len(after) == 2
    _, printed, _ = run()
    assert "Anomaly:     instances: " in printed, "again the same when nothing changed"
    _, printed, _ = run("training.epochs=9")
    assert "Anomaly:     instances: " in printed
    with open(inputs / "answers.csv", "a", newline="") as file:
        csv.writer(file).writerow(["t00", "a9", "cat"])
    _, printed, _ = run()
    assert "Anomaly" not in printed, "compared with the scaled features, which are served now"


@pytest.mark.slow
@pytest.mark.parametrize(("factor", "code"), [(1, 0), (50, 7)])
def test_requests_like_the_data_of_a_run_are_no_anomaly_and_requests_of_another_scale_are(
    make_inputs, inputs, capsys, factor, code
):
    make_inputs(inputs, 200)
    assert cli.main(["run", "tiny.yaml"]) == 0
    features = pyarrow.parquet.read_table(inputs / "instances.parquet")["features"].to_pylist()
    served = inputs / "out" / "serving"
    with Server(served, name="tiny", rest_port=0, grpc_port=0, log_requests=inputs / "log", log_share=1.0) as server:
        with Client(f"http://127.0.0.1:{server.rest_port}", model="tiny") as client:
            for start in range(0, 200, 50):  # of a request 64 are logged at most
                client.predict(factor * np.array(features[start : start + 50], "float32"))
        server.stop()
    capsys.readouterr()
    assert cli.main(["skew", str(served), "log/tiny.jsonl", "--fail-if", "anomaly"]) == code
    printed = capsys.readouterr().out
    assert "200 logged instances" in printed
    assert ("Anomaly: instances: The approximate Jensen" in printed) == bool(code)


@pytest.mark.parametrize(
    ("outcome", "blessed", "code", "verdict"),
    [
        ("not pushed", False, 8, "not pushed"),
        ("undecided", False, 9, "undecided, so not pushed"),
        ("undecided", True, 8, "not pushed"),  # evaluation.undecided is push; a condition or a veto kept it back
    ],
)
def test_a_run_ends_with_the_code_of_what_kept_the_model_back(
    inputs, monkeypatch, capsys, outcome, blessed, code, verdict
):
    candidate = {"accuracy": 0.5, "tasks": 60}
    evaluation = {"outcome": outcome, "blessed": blessed, "truth": "gold", "metric": "accuracy"}
    facts = {"reason": "why", "seconds": {}, "cached": (), "total_seconds": 0.0, "anomalies": ()}
    facts["evaluation"] = {**evaluation, "candidate": candidate, "baseline": None}
    result = RunResult(**{**dict.fromkeys(field.name for field in fields(RunResult)), **facts})
    monkeypatch.setattr("crowdzoo.pipelines.local.run", lambda *_, **__: result)
    assert cli.main(["run", "tiny.yaml", "--fail-unless", "pushed"]) == code
    assert capsys.readouterr().out.splitlines()[0] == f"Model:       {verdict}: why"


@pytest.mark.parametrize("more", [("--check",), ("--on", "kubeflow", "--out", "pipeline.yaml")])
def test_a_run_that_pushes_nothing_takes_no_fail_unless(inputs, refusal_of, more):
    assert "--fail-unless is for a run" in refusal_of("run", "tiny.yaml", "--fail-unless", "pushed", *more)
