"""Files that run TensorFlow Serving in containers: what stands in them, and what is refused."""

import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format, wrappers_pb2
from tensorflow_serving.config.model_server_config_pb2 import ModelServerConfig

from crowdzoo.commands import main as cli
from crowdzoo.serving.deploy.compose import health_check

INTEGER = descriptor_pb2.FieldDescriptorProto.TYPE_INT64


def message(name, **fields):
    """A message of TensorFlow Serving that `tensorflow-serving-api` does not have, by names and types of its fields."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{name}.proto", package="written", syntax="proto3")
    file.dependency.append(wrappers_pb2.DESCRIPTOR.name)
    described = file.message_type.add(name=name)
    for number, (field, kind) in enumerate(fields.items(), 1):
        made = described.field.add(name=field, number=number, label=1)
        if isinstance(kind, str):
            made.type, made.type_name = made.TYPE_MESSAGE, kind
        else:
            made.type = kind
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(wrappers_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    found = pool.FindMessageTypeByName(f"written.{name}")
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(found)
    return message_factory.MessageFactory(pool).GetPrototype(found)


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


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


def written(name, out="out"):
    return yaml.safe_load(Path(out, name).read_text())


def models_of(text):
    return text_format.Parse(text, ModelServerConfig()).model_config_list.config


def container(out="out"):
    return written("deployment.yaml", out)["spec"]["template"]["spec"]["containers"][0]


def test_kubernetes_has_all_objects_and_they_find_each_other():
    assert deploy("kubernetes", "--model", "labelme=pvc://models/a/labelme", "--replicas", 3, "--cpu", 1.5) == 0
    assert sorted(os.listdir("out")) == ["configmap.yaml", "deployment.yaml", "hpa.yaml", "pdb.yaml", "service.yaml"]
    objects = [written(name) for name in os.listdir("out")]
    found = {one["kind"]: one for one in objects}
    template = found["Deployment"]["spec"]["template"]
    selector = found["Deployment"]["spec"]["selector"]["matchLabels"]
    assert selector.items() <= template["metadata"]["labels"].items()
    assert found["Service"]["spec"]["selector"] == selector
    assert found["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == selector
    scaled = found["HorizontalPodAutoscaler"]["spec"]
    assert scaled["scaleTargetRef"]["name"] == found["Deployment"]["metadata"]["name"] == "labelme"
    assert (scaled["minReplicas"], scaled["maxReplicas"]) == (3, 6)
    assert "replicas" not in found["Deployment"]["spec"]  # or each `apply` would undo what the autoscaler did
    volumes = {volume["name"]: volume for volume in template["spec"]["volumes"]}
    assert volumes["config"]["configMap"]["name"] == found["ConfigMap"]["metadata"]["name"]
    assert volumes["model-0"]["persistentVolumeClaim"] == {"claimName": "models", "readOnly": True}
    mounts = {mount["name"]: mount for mount in container()["volumeMounts"]}
    assert mounts.keys() == volumes.keys()
    assert mounts["model-0"] == {
        "name": "model-0", "mountPath": "/models/labelme", "readOnly": True, "subPath": "a/labelme"
    }  # fmt: skip
    (model,) = models_of(found["ConfigMap"]["data"]["models.config"])
    assert (model.name, model.base_path) == ("labelme", mounts["model-0"]["mountPath"])
    ports = {port["name"] for port in container()["ports"]}
    assert {port["targetPort"] for port in found["Service"]["spec"]["ports"]} == ports
    assert "--tensorflow_session_parallelism=2" in container()["args"]
    assert container()["resources"]["limits"] == {"cpu": "1500m", "memory": "4096Mi"}


@pytest.mark.parametrize(
    ("target", "place"), [("kubernetes", "pvc://models"), ("kserve", "s3://b/a"), ("compose", "served")]
)
def test_the_container_is_not_root_and_writes_only_to_tmp(target, place, served):
    assert deploy(target, "--model", f"a={place}", "--user", 1234) == 0
    if target == "compose":
        service = written("compose.yaml")["services"]["serving"]
        assert service["user"] == "1234:1234"
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert service["tmpfs"] == ["/tmp"]
        assert all(volume["read_only"] for volume in service["volumes"])
        assert {port["host_ip"] for port in service["ports"]} == {"127.0.0.1"}
        return
    server = container() if target == "kubernetes" else written("inferenceservice.yaml")["spec"]["predictor"]["model"]
    context = server["securityContext"]
    assert context["runAsUser"] == 1234
    assert context["runAsNonRoot"]
    assert context["readOnlyRootFilesystem"]
    assert not context["allowPrivilegeEscalation"]
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert server["resources"]["requests"] == server["resources"]["limits"]
    assert [mount["name"] for mount in server["volumeMounts"] if not mount.get("readOnly")] == ["tmp"]


def test_tensorflow_serving_reads_its_files(served):
    words = ["--model", "a=served", "--model", "b=served", "--label", "a/stable=1", "--label", "a/canary=3"]
    assert deploy("compose", *words, "--batch", 32, "--cpu", 3) == 0
    a, b = models_of(Path("out/config/models.config").read_text())
    assert (a.name, a.base_path, a.model_platform) == ("a", "/models/a", "tensorflow")
    assert dict(a.version_labels) == {"stable": 1, "canary": 3}
    assert list(a.model_version_policy.specific.versions) == [1, 3]
    assert b.model_version_policy.WhichOneof("policy_choice") is None  # the newest
    assert not b.version_labels

    wrapper = ".google.protobuf.Int64Value"
    batching = message("BatchingParameters", max_batch_size=wrapper, batch_timeout_micros=wrapper,
                       max_enqueued_batches=wrapper, num_batch_threads=wrapper)  # fmt: skip
    parsed = text_format.Parse(Path("out/config/batching.config").read_text(), batching())
    assert (parsed.max_batch_size.value, parsed.num_batch_threads.value) == (32, 3)
    text = Path("out/config/monitoring.config").read_text().partition("{")[2].rpartition("}")[0]
    monitoring = message("PrometheusConfig", enable=descriptor_pb2.FieldDescriptorProto.TYPE_BOOL,
                         path=descriptor_pb2.FieldDescriptorProto.TYPE_STRING)  # fmt: skip
    parsed = text_format.Parse(text, monitoring())
    assert parsed.enable
    assert parsed.path == "/monitoring/prometheus/metrics"

    arguments = written("compose.yaml")["services"]["serving"]["command"]
    assert "--allow_version_labels_for_unavailable_models=true" in arguments
    folder = written("compose.yaml")["services"]["serving"]["volumes"][0]
    named = [word.split("=")[1] for word in arguments if word.split("=")[1].endswith(".config")]
    assert {Path(name).name for name in named} == set(os.listdir("out/config"))
    assert {str(Path(name).parent) for name in named} == {folder["target"]}


def test_without_labels_and_batches_nothing_is_said_of_them(served):
    assert deploy("compose", "--model", "a=served") == 0
    assert sorted(os.listdir("out/config")) == ["models.config", "monitoring.config"]
    assert not [word for word in written("compose.yaml")["services"]["serving"]["command"] if "label" in word]


def test_the_image_is_that_of_the_newest_tensorflow_of_a_served_version(served, capsys):
    def image(*words):
        assert deploy("compose", "--force", "--model", "a=served", *words) == 0
        return written("compose.yaml")["services"]["serving"]["image"]

    assert image() == "tensorflow/serving:2.16.1"
    assert "as the models were exported with TensorFlow 2.16.2" in capsys.readouterr().out
    assert image("--label", "old=1", "--label", "new=3") == "tensorflow/serving:2.18.1"
    assert image("--gpus", "1") == "tensorflow/serving:2.16.1-gpu"
    assert image("--tensorflow", "2.19.0") == "tensorflow/serving:2.19.1"
    assert image("--image", "registry.example.com:5000/tf/serving:1") == "registry.example.com:5000/tf/serving:1"
    for version in (1, 3):
        (served / str(version) / "assets.extra" / "model_card.json").write_text("[]")
    assert image().startswith("tensorflow/serving:2.")
    assert "which is installed here; no model's card was found" in capsys.readouterr().out


def test_kserve_has_the_model_where_it_copies_it_to():
    words = ["--model", "labelme=s3://crowd/labelme", "--label", "stable=4", "--gpus", 1, "--service-account", "reader"]
    assert deploy("kserve", *words) == 0
    service = written("inferenceservice.yaml")
    # KServe refuses the metric `cpu` in its other mode
    assert service["metadata"]["annotations"]["serving.kserve.io/deploymentMode"] == "RawDeployment"
    predictor = service["spec"]["predictor"]
    assert predictor["scaleMetric"] == "cpu"
    assert predictor["model"]["storageUri"] == "s3://crowd/labelme"
    assert predictor["serviceAccountName"] == "reader"
    assert predictor["model"]["image"].endswith("-gpu")
    assert predictor["model"]["resources"]["limits"]["nvidia.com/gpu"] == "1"
    (model,) = models_of(written("configmap.yaml")["data"]["models.config"])
    assert (model.name, model.base_path, dict(model.version_labels)) == ("labelme", "/mnt/models", {"stable": 4})
    assert predictor["volumes"][0]["configMap"]["name"] == written("configmap.yaml")["metadata"]["name"]


def test_a_server_is_replaced_when_a_file_changes_that_it_reads_once():
    def note(*words):
        assert deploy("kubernetes", "--force", "--model", "a=gs://b/a", *words) == 0
        return written("deployment.yaml")["spec"]["template"]["metadata"]["annotations"]["crowdzoo/config"]

    assert note("--batch", 32, "--label", "s=1") == note("--batch", 32, "--label", "s=2")
    assert note("--batch", 32) != note("--batch", 64)


def test_compose_makes_a_new_container_when_any_of_its_files_changes(served):
    """One that runs has the old folder mounted, which --force has replaced by another."""

    def service(*words):
        assert deploy("compose", "--force", "--model", "a=served", *words) == 0
        return written("compose.yaml")["services"]["serving"]

    assert service("--label", "s=1") == service("--label", "s=1")
    assert service("--label", "s=1") != service("--label", "s=3", "--tensorflow", "2.18.0")
    assert service("--label", "s=1", "--label", "t=3") != service("--label", "s=3", "--label", "t=1")


@pytest.mark.parametrize(
    ("target", "words", "says"),
    [
        ("compose", ["--model", "a"], "--model takes NAME=VALUE, such as labelme=/srv/served"),
        ("compose", ["--model", "a=served", "--model", "a=served"], "--model a: is given twice"),
        ("compose", ["--model", "a/b=served"], "model 'a/b': a name has letters, digits and . _ - only"),
        ("compose", ["--model", "a=nowhere"], "has no version with a saved_model.pb"),
        (
            "compose",
            ["--model", "a=served/1"],
            "Name the folder that `crowdzoo export` writes, which holds a folder a ver",
        ),
        ("compose", ["--model", "a=gs://b/c"], "gs://b/c is not seen by Docker Compose"),
        ("compose", ["--model", "a=served", "--replicas", 2], "--replicas has no effect with --target compose"),
        ("compose", ["--model", "a=served", "--label", "stable=2"], "has no version 2; versions are 1, 3"),
        ("compose", ["--model", "a=served", "--label", "stable"], "--label takes NAME=VALUE, such as stable=3"),
        ("compose", ["--model", "a=served", "--label", "stable=x"], "'x' is not the number of a version"),
        ("compose", ["--model", "a=served", "--label", "1=1"], "label '1': must have letters"),
        ("compose", ["--model", "a=served", "--label", "b/s=1"], "unknown model 'b'"),
        ("compose", ["--model", "a=served", "--model", "b=served", "--label", "s=1"], "of which model, as in a/s=1"),
        ("compose", ["--model", "a=served", "--label", "s=1", "--label", "s=3"], "--label s: is given twice"),
        ("compose", ["--model", "a=served", "--image", "tensorflow/serving"], "must have a tag or a digest"),
        ("compose", ["--model", "a=served", "--image", "tensorflow/serving:latest"], "is another image tomorrow"),
        ("compose", ["--model", "a=served", "--image", "x:1", "--tensorflow", "2.16"], "give one of them"),
        ("compose", ["--model", "a=served", "--tensorflow", "2.99.0"], "no release of TensorFlow Serving is known"),
        ("compose", ["--model", "a=served", "--tensorflow", "new"], "is not a version such as 2.16.2"),
        ("kubernetes", ["--model", "a=s3://b/c"], "read no s3:// since version 2.7"),
        ("kubernetes", ["--model", "a=hdfs://b/c"], "hdfs:// is not supported"),
        ("kubernetes", ["--model", "a=pvc://Claim"], "write pvc://CLAIM/FOLDER"),
        ("kubernetes", ["--model", "a=pvc://claim/../x"], "write pvc://CLAIM/FOLDER"),
        ("kubernetes", ["--model", 'a=gs://b/c"d'], "write gs://BUCKET/FOLDER"),
        ("kubernetes", ["--model", "a=gs://b", "--name", "My"], "name 'My': must have a to z"),
        ("kubernetes", ["--model", "a=gs://b", "--max-replicas", 1], "fewer than the 2 of"),
        ("kubernetes", ["--model", "a=gs://b", "--service-account", "A b"], "must have a to z, digits, - and ."),
        ("kserve", ["--model", "a=served"], "a folder of one machine, which KServe does not read"),
        ("kserve", ["--model", "a=gs://b", "--model", "c=gs://d"], "Run the command once for each model"),
        ("kserve", ["--model", "My_Model=gs://b"], "name it my-model"),
        ("kserve", ["--model", "a=gs://b", "--rest-port", 80], "--rest-port has no effect"),
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
    assert sorted(os.listdir("out")) == ["configmap.yaml", "inferenceservice.yaml"]
    Path("out/mine.yaml").write_text("kind: Secret")
    assert deploy("kserve", *words, "--force") == 4
    assert "out: exists and is not empty. Name a new folder." in capsys.readouterr().err
    assert Path("out/mine.yaml").exists()


def test_names_that_kubernetes_does_not_take_are_changed():
    for number, (model, name) in enumerate({"NER_v2": "ner-v2", "2nd": "model-2nd", "x" * 90: "x" * 40}.items()):
        assert deploy("kubernetes", "--model", f"{model}=gs://b/c", out=f"out{number}") == 0
        assert written("service.yaml", f"out{number}")["metadata"]["name"] == name


def test_a_dollar_in_a_path_is_no_variable_of_compose(served):
    served.rename("$HOME")
    assert deploy("compose", "--model", "a=$HOME") == 0
    assert written("compose.yaml")["services"]["serving"]["volumes"][1]["source"].endswith("/$$HOME")


def test_the_probes_ask_what_a_server_answers(server, pets):
    assert deploy("kubernetes", "--model", "pets=gs://b/c") == 0
    import httpx

    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        asked = container()[probe]["httpGet"]
        assert httpx.get(server.url + asked["path"]).status_code == 200
        assert httpx.get(server.url + asked["path"].replace("pets", "cats")).status_code == 404


@pytest.mark.parametrize(
    ("models", "healthy"), [(["pets"], True), (["pets", "pets"], True), (["pets", "cats"], False), (["cats"], False)]
)
def test_the_health_check_of_compose_succeeds_where_all_models_answer(server, models, healthy):
    done = subprocess.run(["bash", "-c", health_check(models, server.rest_port)], capture_output=True, timeout=30)
    assert (done.returncode == 0) == healthy


def test_the_health_check_of_compose_fails_where_nobody_listens(server):
    done = subprocess.run(["bash", "-c", health_check(["pets"], 1)], capture_output=True, timeout=30)
    assert done.returncode != 0
