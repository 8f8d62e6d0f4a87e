import json
import re
from pathlib import Path

import pytest
import yaml
from google.protobuf import json_format
from kfp.pipeline_spec import pipeline_spec_pb2

from crowdzoo import pipelines
from crowdzoo.commands.main import main
from crowdzoo.components.code_version import code_version
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.pipelines import kubeflow, kubeflow_step
from crowdzoo.pipelines.config.load import load_config
from crowdzoo.pipelines.kubeflow import compile_pipeline

CONFIG = """\
name: labelme
data: {annotations: s3://crowd/answers.csv, instances: /mnt/crowd/instances.parquet}
model: {base: feature-classifier}
training: {epochs: 3}
report: {fail_if: ["alpha<0.2"]}
output: {root: here}
kubeflow:
  image: registry.example.com/crowdzoo:1.0
  gpu_image: registry.example.com/crowdzoo:1.0-gpu
  image_pull_secrets: [registry]
  pipeline_root: minio://mlpipeline/runs
  serving: s3://crowd/serving
  parameters: [training.epochs, training.learning_rate, evaluation.minimum_accuracy, data.annotations]
  resources:
    default: {cpu: 2, memory_gb: 8, retries: 2}
    Trainer:
      memory_gb: 16
      memory_limit_gb: 24
      gpus: 1
      node_selector: {pool: gpu}
      tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]
      env: {TF_FORCE_GPU_ALLOW_GROWTH: "true"}
      secrets: {hub: {HF_TOKEN: token}}
    Pusher: {cpu: 0.5, retries: 0}
  gpu_type: nvidia.com/gpu
  env: {AWS_ENDPOINT_URL: "http://minio:9000"}
  secrets: {store: {AWS_ACCESS_KEY_ID: accesskey, AWS_SECRET_ACCESS_KEY: secretkey}}
  volumes: {crowd-data: /mnt/crowd}
"""
TASKS = {
    "AnnotationExampleGen": set(),
    "StatisticsGen": {"AnnotationExampleGen"},
    "SchemaGen": {"StatisticsGen"},
    "ExampleValidator": {"SchemaGen", "StatisticsGen"},
    "DriftValidator": {"AnnotationExampleGen", "ExampleValidator", "SchemaGen", "StatisticsGen"},
    "CrowdAggregator": {"AnnotationExampleGen", "DriftValidator"},
    "Trainer": {"CrowdAggregator", "SchemaGen"},
    "Evaluator": {"CrowdAggregator", "DriftValidator", "Trainer"},
    "CrowdReport": {"AnnotationExampleGen", "CrowdAggregator", "Evaluator", "Trainer"},
    "Pusher": {"CrowdReport", "Trainer"},
}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The file, its documents, and the spec and the containers as protos; names that protobuf does not know fail."""
    folder = tmp_path_factory.mktemp("compiled")
    (folder / "labelme.yaml").write_text(CONFIG)
    compile_pipeline(load_config(folder / "labelme.yaml", on="kubeflow"), folder / "pipeline.yaml")
    documents = list(yaml.safe_load_all((folder / "pipeline.yaml").read_text()))
    spec = json_format.ParseDict(documents[0], pipeline_spec_pb2.PipelineSpec())
    deployment = json_format.ParseDict(documents[0]["deploymentSpec"], pipeline_spec_pb2.PipelineDeploymentConfig())
    containers = {
        name: deployment.executors[component.executor_label].container for name, component in spec.components.items()
    }
    return folder, documents, spec, containers


def test_the_spec_has_every_component_after_those_that_it_needs(compiled):
    _, _, spec, _ = compiled
    assert spec.schema_version == "2.1.0"
    assert spec.pipeline_info.name == "labelme"
    assert spec.default_pipeline_root == "minio://mlpipeline/runs"
    assert {name: {*task.dependent_tasks} for name, task in spec.root.dag.tasks.items()} == TASKS
    assert not any(task.caching_options.enable_cache for task in spec.root.dag.tasks.values())


def test_kubeflows_own_package_loads_it(compiled):
    components = pytest.importorskip("kfp.components", reason="Kubeflow's package is not installed")
    loaded = components.load_component_from_file(str(compiled[0] / "pipeline.yaml"))
    assert loaded.name == "labelme"
    assert {*loaded.pipeline_spec.root.dag.tasks} == {*TASKS}
    assert "kubernetes" in loaded.platform_spec.platforms


def test_no_path_of_this_machine_is_in_the_spec(compiled):
    folder, _, _, _ = compiled
    text = (folder / "pipeline.yaml").read_text()
    paths = {*re.findall(r"""(?<![\w:/.<}])/[\w.-]+(?:/[\w.-]+)+""", text)}
    assert paths == {"/mnt/crowd/instances.parquet", "/mnt/crowd"}
    assert str(folder) not in text


def test_every_container_runs_the_image_with_its_environment_secrets_and_volumes(compiled):
    _, documents, spec, containers = compiled
    labels = {component.executor_label for component in spec.components.values()}
    executors = documents[1]["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    assert {*executors} == labels
    for name, container in containers.items():
        if name == "Trainer":  # has its own, told below
            continue
        assert container.image == "registry.example.com/crowdzoo:1.0", name
        assert list(container.command) == ["python", "-m", "crowdzoo.pipelines.kubeflow_step"], name
        assert [(each.name, each.value) for each in container.env] == [("AWS_ENDPOINT_URL", "http://minio:9000")], name
        own = executors[spec.components[name].executor_label]
        assert own["pvcMount"] == [{"constant": "crowd-data", "mountPath": "/mnt/crowd"}]
        (secret,) = own["secretAsEnv"]
        assert secret["secretName"] == "store"
        assert {"secretKey": "accesskey", "envVar": "AWS_ACCESS_KEY_ID"} in secret["keyToEnv"]
        assert own["imagePullSecret"] == [{"secretName": "registry"}]
        assert not {"nodeSelector", "tolerations"} & {*own}, "which are the Trainer's"


def test_a_component_has_its_own_image_node_environment_secrets_and_retries(compiled):
    _, documents, spec, containers = compiled
    own = documents[1]["platforms"]["kubernetes"]["deploymentSpec"]["executors"][
        spec.components["Trainer"].executor_label
    ]
    assert own["nodeSelector"] == {"labels": {"pool": "gpu"}}
    assert own["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
    assert [each["secretName"] for each in own["secretAsEnv"]] == ["hub", "store"]
    assert containers["Trainer"].image.endswith("-gpu")
    assert [each.name for each in containers["Trainer"].env] == ["AWS_ENDPOINT_URL", "TF_FORCE_GPU_ALLOW_GROWTH"]
    resources = containers["Trainer"].resources
    assert (resources.memory_request, resources.memory_limit, resources.cpu_request, resources.cpu_limit) == (
        16,
        24,
        2,
        2,
    )
    retries = {name: task.retry_policy.max_retry_count for name, task in spec.root.dag.tasks.items()}
    assert retries == {**dict.fromkeys(TASKS, 2), "Pusher": 0}


def test_the_platforms_part_is_that_of_kubeflows_own_api(compiled):
    proto = pytest.importorskip(
        "kfp.kubernetes.kubernetes_executor_config_pb2", reason="kfp-kubernetes is not installed"
    )
    for own in compiled[1][1]["platforms"]["kubernetes"]["deploymentSpec"]["executors"].values():
        parsed = json_format.ParseDict(own, proto.KubernetesExecutorConfig())  # names that it does not know fail
        assert json_format.MessageToDict(parsed) == own


@pytest.mark.slow
def test_with_cache_only_what_depends_on_the_served_model_runs_every_time(compiled, tmp_path):
    config = load_config(compiled[0] / "labelme.yaml", {"kubeflow.cache": True}, on="kubeflow")
    compile_pipeline(config, tmp_path / "pipeline.yaml")
    spec = next(yaml.safe_load_all((tmp_path / "pipeline.yaml").read_text()))
    tasks = spec["root"]["dag"]["tasks"]
    cached = {name for name, task in tasks.items() if task.get("cachingOptions", {}).get("enableCache")}
    assert cached == {*TASKS} - {"DriftValidator", "Evaluator", "Pusher"}


def test_a_container_whose_image_has_other_code_says_so_and_does_nothing(compiled, capsys):
    containers = compiled[3]
    arguments = [*containers["Pusher"].args]
    place = arguments.index("--compiled_from") + 1
    given = ["--executor_class_path", "nowhere.Executor", "--json_serialized_invocation_args", "{}"]
    given += ["--json_serialized_inputs_spec_args", "{}", "--compiled_from"]
    with pytest.raises(ImportError, match=r"nowhere\.Executor"):
        kubeflow_step.main([*given, arguments[place]])
    assert kubeflow_step.main([*given, "0" * 32]) == 1
    assert "is not the code that the pipeline was compiled from" in capsys.readouterr().err


def test_parameters_of_the_run_have_the_files_values_as_defaults(compiled):
    spec = compiled[2]
    found = {
        name: json_format.MessageToDict(each.default_value)
        for name, each in spec.root.input_definitions.parameters.items()
    }
    assert found == {
        "training_epochs": 3,
        "training_learning_rate": 0.001,
        "evaluation_minimum_accuracy": 0,
        "data_annotations": "s3://crowd/answers.csv",
    }
    given = spec.root.dag.tasks["Trainer"].inputs.parameters["training_epochs"]
    assert given.component_input_parameter == "training_epochs"


def step(tmp_path, monkeypatch, execute):
    """The exit code of a step whose executor is a function, on the call of open-source Kubeflow; and its output."""
    schema = {"instanceSchema": "title: tfx.Examples"}
    call = {
        "inputs": {
            "artifacts": {"examples": {"artifacts": [{"name": "7", "uri": "s3://crowd/examples"}]}},
            "parameterValues": {"settings": json.dumps({"tolerance": 0.0})},
        },
        "outputs": {
            "artifacts": {"report": {"artifacts": [{"uri": "s3://crowd/report", "type": schema}]}},
            "outputFile": str(tmp_path / "output.json"),
        },
    }
    monkeypatch.setattr(kubeflow_step, "run_kubeflow_executor", execute)
    code = kubeflow_step.main([
        "--executor_class_path", "package.Executor", "--json_serialized_invocation_args", json.dumps(call),
        "--json_serialized_inputs_spec_args", json.dumps({"artifacts": {"examples": {"artifactType": schema}}}),
        "--local_path", f"inputs.examples={tmp_path}/in", "--local_path", f"outputs.report={tmp_path}/out=1",
        "--runner=FnApiRunner", "--compiled_from", code_version(*kubeflow_step.STEP_CODE),
    ])  # fmt: skip
    file = tmp_path / "output.json"
    return code, json.loads(file.read_text()) if file.exists() else None


def test_a_step_whose_input_cannot_be_used_ends_with_the_message(tmp_path, monkeypatch, capsys):
    def execute(*_):
        raise DataError("s3://crowd/a.csv: holds no annotations.")

    assert step(tmp_path, monkeypatch, execute) == (1, None)
    assert capsys.readouterr().err == "DataError: s3://crowd/a.csv: holds no annotations.\n"


KUBERNETES = ("secrets", "volumes", "image_pull_secrets", "node_selector", "tolerations")


def test_for_vertex_it_is_a_job_in_json_with_the_same_tasks_and_the_accelerator(tmp_path, capsys):
    text = CONFIG.replace("minio://mlpipeline", "gs://crowd").replace("s3://", "gs://").replace("/mnt", "gs://mnt")
    lines = [line for line in text.splitlines() if line.split(":")[0].strip() not in KUBERNETES]
    (tmp_path / "labelme.yaml").write_text("\n".join(lines).replace("nvidia.com/gpu", "NVIDIA_TESLA_T4"))
    out = tmp_path / "job.json"
    for _ in range(2):  # it may replace its own file
        capsys.readouterr()
        assert main(["run", str(tmp_path / "labelme.yaml"), "--on", "vertex", "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}: the pipeline labelme for Vertex AI\n"
    job = json_format.Parse(out.read_text(), pipeline_spec_pb2.PipelineJob())
    assert job.display_name == "labelme"
    assert job.runtime_config.gcs_output_directory == "gs://crowd/runs"
    spec = json_format.ParseDict(json_format.MessageToDict(job.pipeline_spec), pipeline_spec_pb2.PipelineSpec())
    assert {name: {*task.dependent_tasks} for name, task in spec.root.dag.tasks.items()} == TASKS
    assert {*spec.root.input_definitions.parameters} >= {"training_epochs", "data_annotations"}
    deployment = json_format.ParseDict(
        json_format.MessageToDict(spec.deployment_spec), pipeline_spec_pb2.PipelineDeploymentConfig()
    )
    trainer = deployment.executors[spec.components["Trainer"].executor_label].container
    assert (trainer.resources.accelerator.type, trainer.resources.accelerator.count) == ("NVIDIA_TESLA_T4", 1)
    assert trainer.resources.memory_limit == 24
    assert str(tmp_path) not in out.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["labelme", "labelme-images", "generated-ner", "generated-ratings"])
def test_shipped_configurations_compile(name, tmp_path):
    file = Path(pipelines.__file__).parent / "configs" / f"{name}.yaml"
    needed = {"image": "crowdzoo:1.0", "pipeline_root": "gs://crowd/runs", "serving": "gs://crowd/serving"}
    config = load_config(file, {"kubeflow": needed, "output.root": str(tmp_path / "here")}, on="kubeflow")
    compile_pipeline(config, tmp_path / "pipeline.yaml")
    (document,) = yaml.safe_load_all((tmp_path / "pipeline.yaml").read_text())
    spec = json_format.ParseDict(document, pipeline_spec_pb2.PipelineSpec())
    assert {*spec.root.dag.tasks} == {*TASKS}
    assert str(tmp_path) not in (tmp_path / "pipeline.yaml").read_text()


def test_the_command_writes_the_file_and_says_so(tmp_path, capsys, here):
    (tmp_path / "labelme.yaml").write_text(CONFIG)
    assert main(["run", "labelme.yaml", "--on", "kubeflow", "--out", "pipeline.yaml"]) == 0
    assert capsys.readouterr().out == "pipeline.yaml: the pipeline labelme for Kubeflow\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["labelme.yaml", "pipeline.yaml"]
    assert main(["run", "labelme.yaml", "--on", "kubeflow", "--out", "pipeline.yaml"]) == 0, "its own file"
    capsys.readouterr()
    assert main(["run", "labelme.yaml", "--on", "kubeflow", "--check"]) == 0
    assert capsys.readouterr().out == "labelme.yaml: fine for Kubeflow, no input file was read\n"


@pytest.mark.parametrize("place", ["kubeflow", "vertex"])
def test_a_check_runs_the_compiler_and_leaves_no_file(tmp_path, refusal_of, here, monkeypatch, place):
    def fails(config, out, *, vertex):
        assert (config.name, vertex) == ("labelme", place == "vertex")
        assert out.parent.is_dir()
        assert out.parent != tmp_path
        raise ConfigError("Trainer cannot be compiled")

    monkeypatch.setattr(kubeflow, "compile_pipeline", fails)
    text = (
        "name: labelme\ndata: {dataset: labelme}\nkubeflow:\n  image: crowdzoo:1.0\n  pipeline_root: gs://crowd/runs\n"
    )
    (tmp_path / "labelme.yaml").write_text(text + "  serving: gs://crowd/serving\n")
    assert "Trainer cannot be compiled" in refusal_of("run", "labelme.yaml", "--on", place, "--check")
    assert [path.name for path in tmp_path.iterdir()] == ["labelme.yaml"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--on", "kubeflow"], "--on kubeflow needs --out FILE.yaml"),
        (["--out", "p.yaml"], "--out is for --on kubeflow and --on vertex"),
        (["--on", "vertex"], "--on vertex needs --out FILE.json"),
        (["--on", "vertex", "--out", "p.yaml"], "--out p.yaml: must end in .json, as Vertex AI takes the file"),
        (["--on", "kubeflow", "--out", "p.json"], "--out p.json: must end in .yaml or .yml"),
        (["--on", "kubeflow", "--out", "labelme.yaml"], "is also an input"),
        (["--on", "kubeflow", "--out", "p.yaml", "--check=all"], "--check=all reads files"),
        (["--on", "kubeflow", "--out", "p.yaml", "--set", "data.annotations=a.csv"], "is a path of this machine"),
    ],
)
def test_arguments_that_do_not_go_together_are_refused_before_anything_is_written(
    arguments, says, tmp_path, refusal_of, here
):
    (tmp_path / "labelme.yaml").write_text(CONFIG)
    assert says in refusal_of("run", "labelme.yaml", *arguments)
    assert [path.name for path in tmp_path.iterdir()] == ["labelme.yaml"]
