"""Trainer: the module that TFX's Trainer runs. TFX imports it twice, so it must not register classes."""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf
from absl import logging

from crowdzoo.components.lineage import training_lineage, write_origin
from crowdzoo.components.remote_files import fetch, is_remote, last_part, remote_files, remove, upload_file
from crowdzoo.components.tfx_internals import SERVING_MODEL, FnArgs
from crowdzoo.export.saved_model import export_model
from crowdzoo.files.json import FORMAT_VERSION
from crowdzoo.kinds import kind_of
from crowdzoo.kinds.records import TrainingFiles
from crowdzoo.networks.encoders import encoder_config
from crowdzoo.records.example_dataset import files_of
from crowdzoo.records.example_files import read_dataset_info
from crowdzoo.records.training import INSTANCES, NAMES_FILE, instances_of
from crowdzoo.training.checkpoint import Checkpoint
from crowdzoo.training.length import with_length


def run_fn(fn_args: FnArgs) -> None:
    """Trains a model on the train split and exports it, reproducibly.

    Writes the SavedModel to `fn_args.serving_model_dir`, and `model.keras`, `history.json` (the loss of each epoch),
    `model.names.json` (names of classes and annotators, as `crowdzoo train` writes them next to a model) and
    `encoder.json` (the encoder of instances that are not numbers: a vocabulary, the columns of a table, the size of
    images) to `fn_args.model_run_dir`.

    Args:
        fn_args: TFX's arguments; `custom_config` holds `name`, `seed`, and the sections `model`, `method` and
            `training` of the pipeline's configuration, and as `examples` the folder of the Examples artifact. Optional:
            `checkpoint`, a folder or a URI below which the state of the training is saved after each epoch, so that the
            same call continues after an interruption; it is removed once the model has been written. And `warm_start`,
            the `model_run_dir` of the training whose weights are used to start; "" starts from new weights.
    """
    config = fn_args.custom_config
    info = read_dataset_info(config["examples"])
    kind, num_tasks = kind_of(info["kind"]), info["num_tasks"]["train"]
    arguments = {key: value for key, value in config["method"].items() if key != "name"}
    method: Any = {"method": config["method"]["name"], "arguments": arguments, "seed": config["seed"]}
    settings: Any = kind.training.settings(**method, **config["model"], **config["training"])
    settings = with_length(settings, num_tasks)  # settings missing in the configuration depend on the number of tasks
    logging.info("training: %d epochs, batches of %d, %d tasks", settings.epochs, settings.batch_size, num_tasks)
    if not settings.jit_compile:  # Keras turns XLA off with determinism; XLA has its own flag
        tf.config.experimental.enable_op_determinism()
    checkpoint = None
    if "checkpoint" in config:
        content = content_of(files_of(fn_args.train_files))
        checkpoint = PipelineCheckpoint(config["checkpoint"], content, {"code version": config.get("code_version")})
    files = TrainingFiles(fn_args.train_files, info, checkpoint, config.get("warm_start") or None)
    trained = kind.records.train(settings, files)
    if checkpoint is not None:
        checkpoint.say()

    parent = None
    if trained.began:  # TFX uses the same number for all output folders of an execution
        start = Path(config["warm_start"])
        parent = start.parents[1] / "model" / start.name / SERVING_MODEL
    lineage = training_lineage(config, info, parent)
    folder = Path(fn_args.model_run_dir)
    folder.mkdir(parents=True, exist_ok=True)
    trained.model.save(folder / "model.keras")
    (folder / "history.json").write_text(json.dumps(trained.history.history, indent=2))
    vocabularies = {"classes": info["classes"], "annotators": info["annotators"]}
    names = {**vocabularies, INSTANCES: instances_of(info), "lineage": lineage, "format_version": FORMAT_VERSION}
    (folder / NAMES_FILE).write_text(json.dumps({**names, **encoder_config(trained.encoder)}), encoding="utf-8")
    if trained.encoder is not None:
        encoder = json.dumps(trained.encoder.get_config(), ensure_ascii=False)
        (folder / "encoder.json").write_text(encoder, encoding="utf-8")
    card = {
        "training_tasks": num_tasks,
        **{name: config[name] for name in ("seed", "method", "model")},
        "training": {**config["training"], "epochs": settings.epochs, "batch_size": settings.batch_size},
        "aggregation": info["aggregation"],
        "lineage": lineage,
        **{key: info[key] for key in ("scheme", "features") if info.get(key) is not None},
    }
    how = {"encoder": trained.encoder, "warmup_instances": trained.warmup, "model_card": card}
    export_model(trained.model, fn_args.serving_model_dir, name=config["name"], **vocabularies, **how)
    write_origin(fn_args.serving_model_dir, info)
    if checkpoint is not None:
        checkpoint.remove()


class PipelineCheckpoint(Checkpoint):
    """A `Checkpoint` in a subfolder named by the training, which depends on data and settings.

    A run with other settings thus starts from the beginning, and one that returns to earlier settings continues. In a
    store the files are copies of those in a local folder, written atomically.

    Args:
        root: folder of all checkpoints of the pipeline, a path or a URI.
        data: training data; see `Checkpoint`.
        settings: see `Checkpoint`.
    """

    def __init__(self, root: str, data: Any, settings: Mapping[str, Any]):
        self._root = root.rstrip("/")
        self._uri: str | None = None
        self._copies = tempfile.TemporaryDirectory() if is_remote(root) else None
        super().__init__(root if self._copies is None else self._copies.name, data, settings)
        self._base = self.folder

    def on_begin(self, identity: Mapping[str, object]) -> None:
        """Changes to the training's own folder, and fetches its files from a store."""
        name = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
        self.folder = self._base / name
        if self._copies is not None:
            self._uri = f"{self._root}/{name}"
            for file in remote_files(f"{self._uri}/*"):
                fetch(file, self.folder / last_part(file))

    def on_write(self, path: Path) -> None:
        """Copies a file to the store."""
        if self._uri is not None:
            upload_file(path, f"{self._uri}/{path.name}")

    def remove(self) -> None:
        """Removes the state, which is not needed once the model has been written.

        In a store only the state of this training is removed; locally that of all trainings of the pipeline, as only
        one run uses the folder at a time.
        """
        if self._copies is None:
            shutil.rmtree(self._base, ignore_errors=True)
            return
        if self._uri is not None:
            remove(sorted(remote_files(f"{self._uri}/*"), reverse=True))  # the file of the identity goes last
        self._copies.cleanup()

    def say(self) -> None:
        """Prints the epoch at which the training resumed."""
        if self.resumed:
            print(f"training went on after epoch {self.resumed} of the checkpoint {self._uri or self.folder}")


def content_of(files: Sequence[str]) -> list[str]:
    """SHA-256 of the content of each file, on any file system that TensorFlow supports."""
    digests = []
    for name in files:
        digest = hashlib.sha256()
        with tf.io.gfile.GFile(name, "rb") as file:
            while part := file.read(1 << 20):
                digest.update(part)
        digests.append(digest.hexdigest())
    return digests
