import pytest

from crowdzoo.errors import ConfigError
from crowdzoo.pipelines.config.load import load_config

CONFIG = """\
name: labelme
data: {annotations: s3://crowd/answers.csv, instances: gs://crowd/instances.parquet}
model: {base: feature-classifier}
training: {epochs: 3}
kubeflow:
  image: registry.example.com/crowdzoo:1.0
  pipeline_root: minio://mlpipeline/runs
  serving: s3://crowd/serving
"""


def loaded(folder, text=CONFIG, **overrides):
    path = folder / "kubeflow.yaml"
    path.write_text(text)
    return load_config(path, overrides, on="kubeflow")


def refused(folder, text=CONFIG, **overrides):
    with pytest.raises(ConfigError) as caught:
        loaded(folder, text, **overrides)
    return str(caught.value).removeprefix(str(folder / "kubeflow.yaml"))


def test_inputs_at_uris_are_kept_as_they_are_and_not_looked_at(tmp_path):
    config = loaded(tmp_path)
    assert config.data.annotations == "s3://crowd/answers.csv"
    assert config.data.instances == "gs://crowd/instances.parquet"
    assert config.base == "feature-classifier"


def test_a_run_on_this_machine_still_refuses_uris(tmp_path):
    (tmp_path / "kubeflow.yaml").write_text(CONFIG)
    with pytest.raises(ConfigError, match=r"data\.annotations: path s3://crowd/answers.csv"):
        load_config(tmp_path / "kubeflow.yaml")


def test_a_local_path_is_refused_with_its_key_and_value(tmp_path):
    problem = refused(tmp_path, **{"data.annotations": "answers.csv"})
    assert problem.startswith(", data.annotations: /")
    assert "/answers.csv is a path of this machine, which no contain" in problem
    assert "a URI that begins with gs:// or s3://, or a path below" in problem
    assert "kubeflow.serving: /models is a path of this machine" in refused(tmp_path, **{"kubeflow.serving": "/models"})


@pytest.mark.parametrize("key", ["image", "pipeline_root", "serving"])
def test_what_kubeflow_needs_is_asked_for(tmp_path, key):
    assert refused(tmp_path, **{f"kubeflow.{key}": None}).startswith(f", kubeflow.{key}: is missing. Name ")


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("kubeflow.imagge", "x", "kubeflow: unknown key 'imagge': choose one of image, pipel"),
        ("kubeflow.image", "two words", "kubeflow.image: must be the name of an image"),
        ("kubeflow.pipeline_root", "/tmp/runs", "kubeflow.pipeline_root: must begin with one of gs://, s3://, minio://"),
        ("kubeflow.serving", "ftp://x/y", "kubeflow.serving: ftp:// is not supported"),
        ("kubeflow.serving", "s3://crowd/*", "kubeflow.serving: must not hold * ? or ["),
        ("kubeflow.resources.Trainr", {"cpu": 1}, "kubeflow.resources: unknown key 'Trainr': choose one of de"),
        ("kubeflow.resources.Trainer.gpu", 1, "kubeflow.resources.Trainer: unknown key 'gpu': choose one"),
        ("kubeflow.resources.Trainer.cpu", 0, "kubeflow.resources.Trainer.cpu: must be a number above 0"),
        ("kubeflow.resources.Trainer.gpus", 0.5, "kubeflow.resources.Trainer.gpus: must be an integer from 0 to 1"),
        ("kubeflow.resources.Trainer.gpus", 1, "kubeflow.gpu_image: is missing. Trainer asks for GPUs, which an image"),
        ("kubeflow.resources.Trainer", {"cpu": 4, "cpu_limit": 2}, "'cpu_limit' (2) is below 'cpu' (4), which it asks"),
        ("kubeflow.resources.Trainer.tolerations", [{"key": "a", "effect": "No"}], "tolerations.0.effect: must be"),
        ("kubeflow.resources.Trainer.secrets", {"Hub": {"A": "b"}}, "must hold the name of a secret"),
        ("kubeflow.resources.Trainer.env", {"A-B": "x"}, "must hold names of environment variables, which 'A-B'"),
        ("kubeflow.image_pull_secrets", ["Registry"], "kubeflow.image_pull_secrets: must hold the name of a secret"),
        ("kubeflow.env", {"A-B": "x"}, "kubeflow.env: must hold names of environment variables, which 'A-B' is not"),
        ("kubeflow.env", {"A": 1}, "kubeflow.env.A: must be text (put quotes round it), got 1."),
        ("kubeflow.secrets", {"Store": {"A": "b"}}, "kubeflow.secrets: must hold the name of a secret"),
        ("kubeflow.volumes", {"data": "mnt"}, "kubeflow.volumes: must name an absolute path below / for data"),
        ("kubeflow.volumes", {"data": "/"}, "kubeflow.volumes: must name an absolute path below / for data"),
        ("kubeflow.parameters", ["training.epoch"], "kubeflow.parameters: unknown parameter 'training.epoch': choos"),
        ("kubeflow.parameters", ["training.batch_size"], "training.batch_size has no value here that could be its"),
        ("name", "Label_Me", "name: must hold lower-case letters, digits and - only on Kubeflow, got 'Label_Me'."),
        ("model.base", None, "model.base: must be named on Kubeflow"),
        ("model.base", "numpy:array", "model.base: a function of your own cannot run on Kubeflow"),
        ("data.annotations", 5, "data.annotations: must be a path, got 5."),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_named_with_its_key(tmp_path, key, value, says):
    assert says in refused(tmp_path, **{key: value})


def test_resources_of_a_component_go_before_the_default(tmp_path):
    resources = {"default": {"cpu": 2, "memory_gb": 8}, "Trainer": {"memory_gb": 16, "gpus": 1}}
    kubeflow = loaded(tmp_path, **{"kubeflow.resources": resources, "kubeflow.gpu_image": "gpu"}).kubeflow
    trainer, pusher = (kubeflow.resources_of(name) for name in ("Trainer", "Pusher"))
    assert (trainer.cpu, trainer.memory_gb, trainer.gpus) == (2, 16, 1)
    assert (pusher.cpu, pusher.memory_gb, pusher.gpus) == (2, 8, None)


@pytest.mark.parametrize(
    ("default", "own", "expected"),
    [
        ({"memory_gb": 4, "memory_limit_gb": 6}, {"memory_gb": 16}, (16, 16)),
        ({"memory_gb": 4, "memory_limit_gb": 32}, {"memory_gb": 16}, (16, 32)),
        ({"memory_gb": 4, "memory_limit_gb": 6}, {"memory_limit_gb": 2}, (2, 2)),
        ({"memory_gb": 4, "memory_limit_gb": 6}, {"memory_limit_gb": 8}, (4, 8)),
        ({"memory_gb": 4}, {"memory_limit_gb": 2}, (2, 2)),
        ({"memory_limit_gb": 6}, {"memory_gb": 16}, (16, 16)),
        ({"memory_gb": 4, "memory_limit_gb": 6}, {"memory_gb": 16, "memory_limit_gb": None}, (16, None)),
        ({"memory_gb": 4, "memory_limit_gb": 6}, {}, (4, 6)),
    ],
)
def test_a_default_gives_way_to_the_other_value_that_a_component_sets(tmp_path, default, own, expected):
    kubeflow = loaded(tmp_path, **{"kubeflow.resources": {"default": default, "Trainer": own}}).kubeflow
    trainer = kubeflow.resources_of("Trainer")
    assert (trainer.memory_gb, trainer.memory_limit_gb) == expected


@pytest.mark.parametrize("name", ["Trainer", "default"])
def test_a_limit_below_what_is_asked_for_is_named_with_its_component(tmp_path, name):
    problem = refused(tmp_path, **{f"kubeflow.resources.{name}": {"memory_gb": 16, "memory_limit_gb": 6}})
    expected = f", kubeflow.resources.{name}: 'memory_limit_gb' (6) is below 'memory_gb' (16), which it asks for."
    assert problem == expected


VERTEX = {
    "kubeflow.pipeline_root": "gs://crowd/runs", "kubeflow.serving": "gs://crowd/serving",
    "data.annotations": "gs://crowd/answers.csv",
}  # fmt: skip


def for_vertex(folder, **overrides):
    (folder / "vertex.yaml").write_text(CONFIG)
    return load_config(folder / "vertex.yaml", {**VERTEX, **overrides}, on="vertex")


def test_vertex_takes_places_in_googles_store_and_its_own_names_of_accelerators(tmp_path):
    resources = {"kubeflow.resources": {"Trainer": {"gpus": 1}}, "kubeflow.gpu_type": "NVIDIA_TESLA_T4"}
    resources["kubeflow.gpu_image"] = "registry.example.com/crowdzoo:1.0-gpu"
    assert for_vertex(tmp_path, **resources).kubeflow.resources_of("Trainer").gpus == 1
    assert for_vertex(tmp_path).kubeflow.gpu_type == "nvidia.com/gpu", "which nobody asks for"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"data.annotations": "s3://crowd/a.csv"}, "data.annotations: must begin with gs:// on Vertex AI, got 's3:"),
        ({"data.annotations": "a.csv"}, "data.annotations: must begin with gs:// on Vertex AI"),
        ({"kubeflow.serving": "s3://crowd/s"}, "kubeflow.serving: must begin with gs:// on Vertex AI"),
        ({"kubeflow.pipeline_root": "minio://a/b"}, "kubeflow.pipeline_root: must begin with gs:// on Vertex AI"),
        ({"kubeflow.image": None}, "kubeflow.image: is missing"),
        ({"kubeflow.secrets": {"store": {"A": "b"}}}, "kubeflow.secrets: is for Kubernetes, and Vertex AI has none"),
        ({"kubeflow.volumes": {"crowd": "/mnt/crowd"}}, "kubeflow.volumes: is for Kubernetes"),
        (
            {"kubeflow.resources": {"default": {"node_selector": {"a": "b"}}}},
            "kubeflow.resources.default.node_selector: is for Kubernetes",
        ),
        ({"kubeflow.resources": {"Trainer": {"gpus": 1}}}, "kubeflow.gpu_type: must name an accelerator of Vertex AI,"),
    ],
)
def test_what_vertex_does_not_have_is_refused_once_with_its_key(tmp_path, more, message):
    with pytest.raises(ConfigError) as caught:
        for_vertex(tmp_path, **more)
    assert message in str(caught.value)
    assert str(caught.value).count(message.split(":")[0] + ":") == 1
