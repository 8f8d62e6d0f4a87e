"""Files that run TensorFlow Serving in containers: what is in them, and what is refused."""

import json
import os
import re
import subprocess
from pathlib import Path

import httpx
import pytest
import yaml
from google.protobuf import text_format
from tensorflow_serving.config.model_server_config_pb2 import ModelServerConfig

from crowdzoo.commands import main as cli

pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture
def served(tmp_path):
    """A served folder with versions 1 and 3, exported with two versions of TensorFlow."""
    for version, tensorflow in ((1, "2.18.0"), (3, "2.16.2")):
        folder = tmp_path / "served" / str(version)
        (folder / "assets.extra").mkdir(parents=True)
        (folder / "saved_model.pb").touch()
        (folder / "assets.extra" / "model_card.json").write_text(json.dumps({"software": {"tensorflow": tensorflow}}))
    return tmp_path / "served"


def deploy(target, *words, out="out"):
    return cli.main(["deploy", "--target", target, "--out", out, *map(str, words)])


def written(target, out="out"):
    """Kind -> object, or the one service of Compose."""
    objects = list(yaml.safe_load_all(Path(out, f"{target}.yaml").read_text()))
    return objects[0]["services"]["serving"] if target == "compose" else {one["kind"]: one for one in objects}


def models_of(text):
    return text_format.Parse(text, ModelServerConfig()).model_config_list.config


def container(out="out"):
    return written("kubernetes", out)["Deployment"]["spec"]["template"]["spec"]["containers"][0]


@pytest.mark.parametrize(
    ("place", "volume", "mount"),
    [
        (
            "pvc://models/a/labelme", {"persistentVolumeClaim": {"claimName": "models", "readOnly": True}},
            {"subPath": "a/labelme"},
        ),
        ("/srv/labelme", {"hostPath": {"path": "/srv/labelme", "type": "Directory"}}, {}),
        ("gs://crowd/labelme", None, None),
    ],
)  # fmt: skip
def test_kubernetes_has_all_objects_and_they_find_each_other(place, volume, mount):
    assert deploy("kubernetes", "--model", f"labelme={place}") == 0
    assert {*os.listdir("out")} == {"kubernetes.yaml", "monitoring.yaml", "network.yaml", "dashboard.json"}
    found = written("kubernetes")
    assert [*found] == ["ConfigMap", "Deployment", "Service", "HorizontalPodAutoscaler", "PodDisruptionBudget"]
    template = found["Deployment"]["spec"]["template"]
    selector = found["Deployment"]["spec"]["selector"]["matchLabels"]
    assert selector.items() <= template["metadata"]["labels"].items()
    assert found["Service"]["spec"]["selector"] == selector
    assert found["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == selector
    scaled = found["HorizontalPodAutoscaler"]["spec"]
    assert scaled["scaleTargetRef"]["name"] == found["Deployment"]["metadata"]["name"] == "labelme"
    assert "replicas" not in found["Deployment"]["spec"]  # or each `apply` would undo what the autoscaler did
    volumes = {one.pop("name"): one for one in template["spec"]["volumes"]}
    assert volumes["config"]["configMap"]["name"] == found["ConfigMap"]["metadata"]["name"]
    mounts = {one.pop("name"): one for one in container()["volumeMounts"]}
    assert mounts.keys() == volumes.keys()
    base = place
    if volume is None:
        assert "model" not in volumes
    else:
        base = "/models/labelme"
        assert volumes["model"] == volume
        assert mounts["model"] == {"mountPath": base, "readOnly": True, **mount}
    (model,) = models_of(found["ConfigMap"]["data"]["models.config"])
    assert (model.name, model.base_path) == ("labelme", base)
    ports = {port["name"] for port in container()["ports"]}
    assert {port["targetPort"] for port in found["Service"]["spec"]["ports"]} == ports


def test_what_watches_and_guards_the_servers_finds_them_by_the_same_labels_ports_and_metrics():
    assert deploy("kubernetes", "--model", "Dogs=gs://crowd/dogs") == 0
    labels = written("kubernetes")["Deployment"]["spec"]["template"]["metadata"]["labels"]
    ports = {port["name"]: port["containerPort"] for port in container()["ports"]}
    found = {one["kind"]: one["spec"] for name in ("monitoring", "network")
             for one in yaml.safe_load_all(Path("out", f"{name}.yaml").read_text())}  # fmt: skip
    assert found["PodMonitor"]["selector"]["matchLabels"] == labels
    (endpoint,) = found["PodMonitor"]["podMetricsEndpoints"]
    assert endpoint["port"] in ports
    assert endpoint["path"] in written("kubernetes")["ConfigMap"]["data"]["monitoring.config"]
    assert found["NetworkPolicy"]["podSelector"]["matchLabels"] == labels
    assert {port["port"] for rule in found["NetworkPolicy"]["ingress"] for port in rule["ports"]} == {*ports.values()}
    (backend,) = found["HTTPRoute"]["rules"][0]["backendRefs"]
    assert (backend["name"], backend["port"]) == ("dogs", ports["http"])
    assert found["Ingress"]["rules"][0]["http"]["paths"][0]["path"] == "/v1/models"  # a prefix of Dogs:predict, too
    asked = [rule["expr"] for group in found["PrometheusRule"]["groups"] for rule in group["rules"]]
    dashboard = json.loads(Path("out/dashboard.json").read_text())
    asked += [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    names = {name.removesuffix("_bucket") for text in asked for name in re.findall(r":tensorflow:serving:\w+", text)}
    assert names == {":tensorflow:serving:request_count", ":tensorflow:serving:request_latency"}
    own = {name for text in asked for name in re.findall(r"crowdzoo_\w+", text)}
    assert own == {"crowdzoo_model_written_timestamp_seconds", "crowdzoo_drift_anomalies"}
    assert all('model_name="Dogs"' in text for text in asked if ":tensorflow" in text or "crowdzoo_" in text)
    assert "{{" not in json.dumps(dashboard)


def test_prometheus_on_a_machine_has_the_rules_of_a_cluster_and_the_dashboard_shows_what_they_watch():
    assert deploy("prometheus", "--model", "Dogs=served") == 0
    assert deploy("kubernetes", "--model", "Dogs=gs://crowd/dogs", out="cluster") == 0
    assert {*os.listdir("out")} == {"prometheus.yaml", "rules.yaml", "dashboard.json"}
    assert Path("out/dashboard.json").read_text() == Path("cluster/dashboard.json").read_text()
    rules = yaml.safe_load(Path("out/rules.yaml").read_text())
    *_, on_cluster = yaml.safe_load_all(Path("cluster/monitoring.yaml").read_text())
    assert on_cluster["spec"] == rules
    settings = yaml.safe_load(Path("out/prometheus.yaml").read_text())
    (job,) = settings["scrape_configs"]
    assert settings["rule_files"] == ["rules.yaml"]
    assert (job["job_name"], job["metrics_path"]) == ("dogs", "/monitoring/prometheus/metrics")
    panels = json.loads(Path("out/dashboard.json").read_text())["panels"]
    shown = " ".join(target["expr"] for panel in panels for target in panel["targets"])
    for rule in rules["groups"][0]["rules"]:
        watched = re.findall(r"(?:up|:tensorflow:serving:\w+|crowdzoo_\w+)(?=\{)", rule["expr"])
        assert watched
        assert all(name in shown for name in watched), rule["alert"]
    places = [{**panel["gridPos"]} for panel in panels]
    assert len({(place["x"], place["y"]) for place in places}) == len({panel["id"] for panel in panels}) == len(panels)


@pytest.mark.parametrize(
    ("target", "place"), [("kubernetes", "pvc://models/a"), ("kserve", "s3://b/a"), ("compose", "served")]
)
def test_the_container_is_not_root_and_writes_only_to_tmp(target, place, served):
    assert deploy(target, "--model", f"a={place}") == 0
    if target == "compose":
        service = written(target)
        assert service["user"] == "1000:1000"
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert service["tmpfs"] == ["/tmp"]
        assert all(volume["read_only"] for volume in service["volumes"])
        assert {port["host_ip"] for port in service["ports"]} == {"127.0.0.1"}
        return
    server = (
        container() if target == "kubernetes" else written(target)["InferenceService"]["spec"]["predictor"]["model"]
    )
    context = server["securityContext"]
    assert context["runAsUser"] == 1000
    assert context["runAsNonRoot"]
    assert context["readOnlyRootFilesystem"]
    assert not context["allowPrivilegeEscalation"]
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert server["resources"]["requests"] == server["resources"]["limits"]
    assert [mount["name"] for mount in server["volumeMounts"] if not mount.get("readOnly")] == ["tmp"]


def test_tensorflow_serving_reads_its_files_with_the_comments_taken_in_or_not(served):
    assert deploy("compose", "--model", "a=served") == 0
    text = Path("out/config/models.config").read_text()
    (a,) = models_of(text)
    assert (a.name, a.base_path, a.model_platform) == ("a", "/models/a", "tensorflow")
    assert a.model_version_policy.WhichOneof("policy_choice") is None  # the newest
    for field in ("model_version_policy", "version_labels"):
        text = text.replace(f"# {field} {{", f"{field} {{")
    (a,) = models_of(text)
    assert list(a.model_version_policy.specific.versions) == [3, 4]
    assert dict(a.version_labels) == {"stable": 3, "canary": 4}
    arguments = [word.split("=")[1] for word in written("compose")["command"] if word.endswith(".config")]
    assert {Path(name).name for name in arguments} == set(os.listdir("out/config"))
    assert {str(Path(name).parent) for name in arguments} == {written("compose")["volumes"][1]["target"]}


def test_the_image_is_that_of_the_newest_version(served, capsys):
    def image(*words):
        assert deploy("compose", "--force", "--model", "a=served", *words) == 0
        return written("compose")["image"]

    assert image() == "tensorflow/serving:2.16.1"
    assert "as the model was exported with TensorFlow 2.16.2" in capsys.readouterr().out
    assert image("--tensorflow", "2.19.0") == "tensorflow/serving:2.19.1"
    assert image("--image", "registry.example.com:5000/tf/serving:1") == "registry.example.com:5000/tf/serving:1"
    (served / "3" / "assets.extra" / "model_card.json").write_text("[]")
    assert image().startswith("tensorflow/serving:2.")
    assert "which is installed here; no model's card was found" in capsys.readouterr().out


def test_kserve_has_the_model_where_it_copies_it_to():
    assert deploy("kserve", "--model", "labelme=s3://crowd/labelme") == 0
    found = written("kserve")
    # KServe refuses the metric `cpu` in its other mode
    assert found["InferenceService"]["metadata"]["annotations"]["serving.kserve.io/deploymentMode"] == "RawDeployment"
    predictor = found["InferenceService"]["spec"]["predictor"]
    assert (predictor["scaleMetric"], predictor["model"]["storageUri"]) == ("cpu", "s3://crowd/labelme")
    (model,) = models_of(found["ConfigMap"]["data"]["models.config"])
    assert (model.name, model.base_path) == ("labelme", "/mnt/models")
    assert predictor["volumes"][0]["configMap"]["name"] == found["ConfigMap"]["metadata"]["name"]


@pytest.mark.parametrize(
    ("target", "words", "says"),
    [
        ("compose", ["--model", "a"], "--model takes NAME=VALUE, such as labelme=/srv/served"),
        ("compose", ["--model", "a/b=served"], "model 'a/b': a name has letters, digits and . _ - only"),
        ("compose", ["--model", "a=nowhere"], "has no version with a saved_model.pb"),
        ("compose", ["--model", "a=served/1"], "Name the folder that `crowdzoo export` writes, which holds a folder a"),
        ("compose", ["--model", "a=gs://b/c"], "gs://b/c is not read by compose; it reads folder"),
        ("compose", ["--model", "a=served", "--image", "tensorflow/serving"], "must have a tag or a digest"),
        ("compose", ["--model", "a=served", "--image", "tensorflow/serving:latest"], "is another image tomorrow"),
        ("compose", ["--model", "a=served", "--image", "x:1", "--tensorflow", "2.16"], "give one of them"),
        ("compose", ["--model", "a=served", "--tensorflow", "2.99.0"], "no release of TensorFlow Serving is known"),
        ("compose", ["--model", "a=served", "--tensorflow", "new"], "is not a version such as 2.16.2"),
        ("kubernetes", ["--model", "a=s3://b/c"], "is not read by kubernetes; it reads folder, pvc://, gs://"),
        ("kubernetes", ["--model", "a=hdfs://b/c"], "is not a place. Use a folder, pvc://"),
        ("kubernetes", ["--model", "a=pvc://Claim"], "is not a place"),
        ("kubernetes", ["--model", "a=pvc://claim/../x"], "is not a place"),
        ("kubernetes", ["--model", 'a=gs://b/c"d'], "is not a place"),
        ("kserve", ["--model", "a=served"], "is not read by kserve; it reads pvc://, gs://, s3://"),
        ("kserve", ["--model", "My_Model=gs://b"], "name it my-model"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(target, words, says, served, capsys):
    assert deploy(target, *words) == 4
    assert says in capsys.readouterr().err
    assert os.listdir() == ["served"]


def test_only_what_the_command_wrote_is_replaced_and_only_with_force(capsys):
    words = ["--model", "a=gs://b/c"]
    assert deploy("kubernetes", *words) == 0
    assert deploy("kserve", *words) == 4
    assert "replace the earlier result with --force" in capsys.readouterr().err
    assert deploy("kserve", *words, "--force") == 0
    assert os.listdir("out") == ["kserve.yaml"]
    Path("out/mine.yaml").write_text("kind: Secret")
    assert deploy("kserve", *words, "--force") == 4
    assert "out: exists and is not empty. Name a new folder." in capsys.readouterr().err
    assert Path("out/mine.yaml").exists()


def test_names_that_kubernetes_does_not_take_are_changed():
    for number, (model, name) in enumerate({"NER_v2": "ner-v2", "2nd": "model-2nd", "x" * 90: "x" * 40}.items()):
        assert deploy("kubernetes", "--model", f"{model}=gs://b/c", out=f"out{number}") == 0
        assert written("kubernetes", f"out{number}")["Service"]["metadata"]["name"] == name


def test_a_dollar_or_a_quote_in_a_path_is_no_variable_of_compose_and_no_yaml(served):
    served.rename('$HOME "x"')
    assert deploy("compose", "--model", 'a=$HOME "x"') == 0
    assert written("compose")["volumes"][0]["source"].endswith('/$$HOME "x"')


def test_the_probes_ask_what_a_server_answers(server, pets):
    assert deploy("kubernetes", "--model", "pets=gs://b/c") == 0
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        asked = container()[probe]["httpGet"]
        assert httpx.get(server.url + asked["path"]).status_code == 200
        assert httpx.get(server.url + asked["path"].replace("pets", "cats")).status_code == 404


@pytest.mark.parametrize(("model", "healthy"), [("pets", True), ("cats", False), (None, False)])
def test_the_health_check_of_compose_succeeds_where_the_model_answers(server, served, model, healthy):
    assert deploy("compose", "--model", f"{model or 'pets'}=served") == 0
    *command, check = written("compose")["healthcheck"]["test"]
    assert command == ["CMD", "bash", "-c"]
    check = check.replace("8501", str(server.rest_port if model else 1)).replace("$$", "$")
    done = subprocess.run(["bash", "-c", check], capture_output=True, timeout=30)
    assert (done.returncode == 0) == healthy
