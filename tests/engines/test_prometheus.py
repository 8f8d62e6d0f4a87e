"""A real Prometheus: it accepts the rules, reads a server's metrics, and the alerts are those that are due."""

import json
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import numpy as np
import pytest
import yaml

sys.path.insert(0, str(Path(__file__).parent))
from install import PROMETHEUS, ROOT

from crowdzoo.commands import main as cli
from crowdzoo.errors import ServingError
from crowdzoo.export.saved_model import export_model
from crowdzoo.networks.feature_network import FeatureClassifier
from crowdzoo.serving import Client, Server
from crowdzoo.training.crowd_model import CrowdModel

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PROMETHEUS.exists(), reason=f"no {PROMETHEUS.relative_to(ROOT)}: run `make engines`"),
]
PROMTOOL = PROMETHEUS.with_name("promtool")


@pytest.fixture
def files(tmp_path):
    """The folder that `crowdzoo deploy --target prometheus` writes."""
    words = ["--target", "prometheus", "--model", f"pets={tmp_path / 'served'}", "--out", str(tmp_path / "out")]
    assert cli.main(["deploy", *words]) == 0
    return tmp_path / "out"


def promtool(*words):
    done = subprocess.run([PROMTOOL, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_promtool_accepts_the_files_and_the_rules_for_the_operator_are_the_same(files):
    assert "SUCCESS: 5 rules found" in promtool("check", "rules", files / "rules.yaml")
    assert "is valid prometheus config file" in promtool("check", "config", files / "prometheus.yaml")
    assert cli.main(["deploy", "--target", "kubernetes", "--model", "pets=gs://b/c", "--out", str(files / "k")]) == 0
    *_, rules = yaml.safe_load_all((files / "k" / "monitoring.yaml").read_text())
    assert rules["spec"] == yaml.safe_load((files / "rules.yaml").read_text())


DAY = 86400
COUNT, BUCKET = ":tensorflow:serving:request_count", ":tensorflow:serving:request_latency_bucket"


@pytest.mark.parametrize(
    ("series", "minutes", "alert"),
    [
        # 2 of 100 requests a minute fail, and 1 of 200
        ({f'{COUNT}{{status="OK"}}': "0+98x30", f'{COUNT}{{status="INTERNAL"}}': "0+2x30"}, 20, "CrowdzooErrors"),
        ({f'{COUNT}{{status="OK"}}': "0+199x30", f'{COUNT}{{status="INTERNAL"}}': "0+1x30"}, 20, None),
        # 2 of 100 take more than 0.6 s, and 1 of 200
        ({f'{BUCKET}{{le="6e5"}}': "0+98x30", f'{BUCKET}{{le="+Inf"}}': "0+100x30"}, 20, "CrowdzooSlow"),
        ({f'{BUCKET}{{le="{end}"}}': f"0+{n}x30" for end, n in (("1e5", 199), ("6e5", 200), ("+Inf", 200))}, 20, None),
        # the clock of the test begins at 0
        ({"crowdzoo_model_written_timestamp_seconds": f"{-31 * DAY}x90"}, 70, "CrowdzooOldModel"),
        ({"crowdzoo_model_written_timestamp_seconds": f"{-29 * DAY}x90"}, 70, None),
        ({'crowdzoo_drift_anomalies{data="training"}': "0x30", 'crowdzoo_drift_anomalies{data="requests"}': "2x30"}, 20,
         "CrowdzooDrift"),
        ({'crowdzoo_drift_anomalies{data="training"}': "0x30"}, 20, None),
        ({'up{job="pets"}': "0x30"}, 20, "CrowdzooNoServer"),
    ],
)  # fmt: skip
def test_each_alert_fires_where_it_is_due(files, series, minutes, alert):
    def labelled(name):
        bare, _, labels = name.partition("{")
        return f'{bare}{{model_name="pets",{labels.rstrip("}")}}}'

    values = [{"series": name if name.startswith("up") else labelled(name), "values": v} for name, v in series.items()]
    values += [] if "up" in str(series) else [{"series": 'up{job="pets"}', "values": "1x90"}]
    wanted = [{"alertname": alert}] if alert else []
    rules = yaml.safe_load((files / "rules.yaml").read_text())["groups"][0]["rules"]
    tests = []
    for rule in rules:
        fires = rule["alert"] == alert
        about = {**rule["labels"], **({"data": "requests"} if alert == "CrowdzooDrift" else {})}
        summary = rule["annotations"]["summary"].replace("{{ $labels.data }}", "requests")
        expected = [{"exp_labels": about, "exp_annotations": {"summary": summary}}] if fires else []
        tests.append({"eval_time": f"{minutes}m", "alertname": rule["alert"], "exp_alerts": expected})
    assert sum(bool(test["exp_alerts"]) for test in tests) == len(wanted)
    content = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": values, "alert_rule_test": tests}],
    }
    (files / "tests.yaml").write_text(yaml.safe_dump(content))
    assert "SUCCESS" in promtool("test", "rules", files / "tests.yaml")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.fixture
def server(files, tmp_path):
    """A server of a model whose training data had one anomaly, and whose requests had two."""
    version = tmp_path / "served" / "7"
    export_model(CrowdModel(FeatureClassifier(4, 2, hidden=(3,))), version, classes=["cat", "dog"])
    (version / "assets.extra" / "drift").mkdir()
    (version / "assets.extra" / "drift" / "anomalies.json").write_text('{"anomalies": ["a: differs"]}')
    with Server(version.parent, name="pets", rest_port=0, grpc_port=0, log_requests=tmp_path / "log") as running:
        (tmp_path / "log" / "pets.7.skew.json").write_text('{"anomalies": ["a: differs", "b: differs"]}')
        running.written = version.stat().st_mtime
        yield running


@pytest.fixture
def ask(files, server, tmp_path):
    """A function that asks a Prometheus that reads the server every second."""
    settings = yaml.safe_load((files / "prometheus.yaml").read_text())
    settings["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    settings["scrape_configs"][0]["static_configs"] = [{"targets": [f"127.0.0.1:{server.rest_port}"]}]
    (files / "prometheus.yaml").write_text(yaml.safe_dump(settings))
    port = free_port()
    command = [PROMETHEUS, f"--config.file={files / 'prometheus.yaml'}", f"--storage.tsdb.path={tmp_path / 'data'}",
               f"--web.listen-address=127.0.0.1:{port}"]  # fmt: skip
    with open(tmp_path / "prometheus.log", "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)

    def ask(path, until, **parameters):
        for _ in range(240):
            try:
                answer = httpx.get(f"http://127.0.0.1:{port}/api/v1/{path}", params=parameters, trust_env=False).json()
                if answer["status"] == "success" and until(answer["data"]):
                    return answer["data"]
            except (httpx.HTTPError, json.JSONDecodeError):
                assert process.poll() is None, (tmp_path / "prometheus.log").read_text()
            time.sleep(0.5)
        raise AssertionError((path, parameters, (tmp_path / "prometheus.log").read_text()[-2000:]))

    yield ask
    process.terminate()
    process.wait(30)


def test_prometheus_reads_the_server_and_every_panel_of_the_dashboard_shows_it(files, server, ask):
    with Client(f"http://127.0.0.1:{server.rest_port}", model="pets") as client:
        client.predict(np.ones((1, 4), "float32"))
        with pytest.raises(ServingError):
            client.predict(np.ones((1, 5), "float32"))
        rows = ask("query", lambda data: data["result"], query=f'{COUNT}{{model_name="pets"}}')["result"]
        assert {row["metric"]["status"] for row in rows} == {"OK", "INVALID_ARGUMENT"}
        for _ in range(9):
            client.predict(np.ones((1, 4), "float32"))

    def is_ten(data):
        return [row["value"][1] for row in data["result"]] == ["10"]

    (row,) = ask("query", is_ten, query=f'{COUNT}{{model_name="pets",status="OK"}}')["result"]
    assert row["metric"]["job"] == "pets"
    (written,) = ask("query", bool, query="crowdzoo_model_written_timestamp_seconds")["result"]
    assert written["metric"]["version"] == "7"
    assert float(written["value"][1]) == pytest.approx(server.written, abs=1)
    alerts = ask("alerts", lambda data: len(data["alerts"]) == 2)["alerts"]
    drift = {alert["labels"]["data"]: float(alert["value"]) for alert in alerts}
    assert {alert["labels"]["alertname"] for alert in alerts} == {"CrowdzooDrift"}
    assert drift == {"training": 1, "requests": 2}
    (group,) = ask("rules", lambda data: all(rule["health"] == "ok" for rule in data["groups"][0]["rules"]))["groups"]
    assert len(group["rules"]) == 5
    for panel in json.loads((files / "dashboard.json").read_text())["panels"]:
        if panel["title"] in ("Processor", "Memory"):  # of the cluster
            continue
        for target in panel["targets"]:
            query = target["expr"].replace("$__rate_interval", "30s")
            assert ask("query", lambda data: data["result"], query=query)["result"], panel["title"]
