"""Training: base models, deep methods and their training data, for one kind of label."""

from __future__ import annotations

import warnings
from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, cast

import numpy as np

from crowdzoo.data.annotations import Annotations
from crowdzoo.data.crowd_sequences import annotations_of
from crowdzoo.data.instance_kinds import IMAGES, INSTANCE_KINDS, TABLES, InstanceKind
from crowdzoo.data.label_kinds import LabelKind
from crowdzoo.errors import ConfigError, DataError, Setting, unknown
from crowdzoo.kinds.aggregating import Aggregating, Result
from crowdzoo.kinds.reading import Crowd, Gold, Reading
from crowdzoo.kinds.scoring import Rows, Scoring
from crowdzoo.plugins import Table
from crowdzoo.reading.instances.export_instances import named_by_image
from crowdzoo.reading.instances.instances import Instances, read_instances, take_rows
from crowdzoo.reading.instances.readers import recognised
from crowdzoo.reading.instances.tables import tables
from crowdzoo.reading.tables.layout import Layout
from crowdzoo.training.bases import ADDED, BASES, is_own
from crowdzoo.training.methods import AGGREGATED, default_method, methods_of
from crowdzoo.training.settings import InstanceSettings, Settings

if TYPE_CHECKING:
    from crowdzoo.networks.instance_encoder import InstanceEncoder
    from crowdzoo.networks.token_encoder import TokenEncoder
    from crowdzoo.training.crowd_model import CrowdModel
    from crowdzoo.training.pair_rows import Examples

Inputs: TypeAlias = "Mapping[str, str] | None"  # types of columns by name
# Targets of method "aggregated": an array with one row per task, for sentences a list of arrays
Targets: TypeAlias = "np.ndarray | Sequence[np.ndarray]"
# From instances to a model's input; None if they are the input
Encoder: TypeAlias = "InstanceEncoder | TokenEncoder | None"
TrainedModel: TypeAlias = "tuple[CrowdModel, Encoder]"


@dataclass(frozen=True)
class TrainingSet(Generic[Crowd, Gold]):
    """Training data read from files.

    Attributes:
        crowd: result of `Reading.read`.
        x: instances of all tasks, in the form of `Training.train`.
        annotations: labels of all tasks; task code i is row i of x.
        training: which tasks are used for training, bool [N]: labelled tasks whose split is not "eval".
        gold: gold of the tasks, in the kind's own form; None without any.
        gold_pairs: true preferences between the tasks, as of one annotator; None for other kinds or without any.
        names: names of the columns of feature vectors; None for a list column and for other instances.
        held_out: which tasks are in the split "eval", bool [N]; None if none are.
    """

    crowd: Crowd
    x: Any
    annotations: Annotations
    training: np.ndarray
    gold: Gold | None
    names: tuple[str, ...] | None = None
    held_out: np.ndarray | None = None
    gold_pairs: Annotations | None = None

    @property
    def instances(self) -> Examples:
        """Instances of the training tasks."""
        return self.x if self.training.all() else take_rows(self.x, self.training)

    @property
    def trained_on(self) -> Crowd | Annotations:
        """Result of `Reading.read` for the training tasks."""
        return self.crowd if self.training.all() else self.used

    @property
    def used(self) -> Annotations:
        """Labels of the training tasks."""
        every = self.training.all()
        return self.annotations if every else self.annotations.select_tasks(np.flatnonzero(self.training))


@dataclass(frozen=True)
class Training(ABC, Generic[Crowd, Result, Gold]):
    """Training of models on labels of one kind.

    Args:
        labels: kind of label.
        reading: reading of the labels.
        aggregation: aggregation of the labels.
        scoring: scoring of answers.

    Attributes:
        fit: line of Python that trains with a `layer`.
        fit_aggregated: line of Python that trains on the `result` of an aggregation.
        starts_warm: whether a pipeline's training may start from the weights of the served model.
    """

    labels: LabelKind
    reading: Reading[Crowd, Gold]
    aggregation: Aggregating[Crowd, Result, Gold]
    scoring: Scoring
    fit: ClassVar[str] = "CrowdModel(base, {layer}).fit(x, annotations, tasks=ids)"
    fit_aggregated: ClassVar[str] = "CrowdModel(base).fit(x, result.posteriors)"
    starts_warm: ClassVar[bool] = False

    # === Base models ===

    @property
    def instance_kinds(self) -> tuple[InstanceKind, ...]:
        """Kinds of instances with a base model for these labels, the default first."""
        return tuple(instances for instances in INSTANCE_KINDS if self.labels.name in instances.bases)

    @property
    def bases(self) -> tuple[str, ...]:
        """Names of base models, the default first."""
        return tuple(instances.bases[self.labels.name] for instances in self.instance_kinds)

    def instances_of(
        self, instances: Path | None, inputs: Inputs = None, layout: Layout | None = None, base: str | None = None
    ) -> InstanceKind:
        """Kind of the instances in a file.

        Args:
            instances: file of instances; None if the kind needs none.
            inputs: types of columns; see `crowdzoo.instances.recognised`.
            layout: layout of the file.
            base: name of the base model, or `module:function` of a custom one. With None or a custom one, the file
                decides.

        Raises:
            ConfigError: no file, an unknown base, or no base model for these labels and instances.
            DataError: an invalid file.
        """
        if instances is None:
            raise ConfigError("the file of instances is missing: crowdzoo train ANNOTATIONS INSTANCES --out FILE.keras")
        if base is not None and not is_own(base):
            kind = self.instances_for(base)
            return tables(inputs) if kind == TABLES else kind
        kind = recognised(instances, inputs, layout)
        if self.labels.name not in kind.bases:
            raise ConfigError(f"{instances}: contains {kind.name}, which models of {self.labels.title} do not support.")
        return kind

    def instances_for(self, base: str) -> InstanceKind:
        """Kind of instances for one of crowdzoo's base models.

        Raises:
            ConfigError: no base with this name for these labels.
        """
        if base in self.bases:
            return self.instance_kinds[self.bases.index(base)]
        text = unknown("base", base, [*self.bases, *ADDED])
        raise ConfigError(f"{text} Or name a function of your own, FILE.py:FUNCTION.")

    def settings(self, base: str, **given: Any) -> Settings:
        """Create training settings.

        Args:
            base: name of the base model.
            **given: fields of `settings_class(base)`; `method` defaults to the kind's own.

        Raises:
            ConfigError: a setting that the base does not have, or a value out of range.
        """
        known = {field.name for field in fields(self.settings_class(base))}
        for name in given:
            if name not in known and not is_own(base):  # custom bases check their settings themselves
                own = sorted(known - {field.name for field in fields(InstanceSettings)} | {"dropout"})
                raise ConfigError(f"{Setting(name)}: is not for base {base}, which has {', '.join(own)}.")
        return BASES[base].make_settings(**{"kind": self.labels.name, **given})

    def settings_class(self, base: str) -> type[Settings]:
        """Class of the training settings of a base model."""
        return BASES[base].settings

    # === Methods ===

    @property
    def default(self) -> str:
        """Name of the default deep method."""
        return default_method(self.labels.name)

    def methods(self) -> Table:
        """The deep methods; see `methods_of`."""
        return methods_of(self.labels.name) if self.labels.trained else Table("layer", {}, lambda _: None)

    def split_method(self, method: str) -> tuple[str, str | None]:
        """Split a method into a deep method and the aggregation that precedes it.

        Args:
            method: a deep method, or an aggregation method on whose result the base is trained.

        Returns:
            The deep method and None, or "aggregated" and the aggregation method.

        Raises:
            ConfigError: an unknown name, or no deep methods for these labels.
        """
        if not self.labels.trained:
            return self.default, None  # raises
        if method == AGGREGATED:
            return AGGREGATED, self.aggregation.default
        if method in self.methods():
            return method, None
        aggregations = self.aggregation.methods()
        if method in aggregations:
            return AGGREGATED, method
        known = list(dict.fromkeys([*(name for name in self.methods() if name != AGGREGATED), *aggregations]))
        raise ConfigError(unknown("method", method, known))

    # === Training data ===

    def read(
        self,
        annotations: Path,
        instances: Path | None,
        inputs: Inputs = None,
        layout: Layout | None = None,
        base: str | None = None,
        **options: Any,
    ) -> TrainingSet[Crowd, Gold]:
        """Read the training data.

        Args:
            annotations: file of annotations.
            instances: file of instances; None for sentences, which are in the file of annotations.
            inputs: types of columns; see `crowdzoo.instances.recognised`.
            layout: layout of the file of instances.
            base: see `instances_of`.
            **options: any of `KindOptions.reading` and `KindOptions.training`.

        Raises:
            ConfigError: a file that the kind needs is missing, or one that it does not use is given.
            DataError: an invalid file.
        """
        kind = self.instances_of(instances, inputs, layout, base)
        assert instances is not None
        table = read_instances(instances, kind, layout)
        options = named_by_image(options, instances)
        if table.kind == IMAGES:
            plain = {name: value for name, value in options.items() if name != "rejects"}
            with warnings.catch_warnings():  # only the second reading warns and writes rejects
                warnings.simplefilter("ignore")
                table = table.named_like(annotations_of(self.reading.read(annotations, **plain)).tasks)
        try:
            crowd = self.reading.read(annotations, tasks=table.tasks, **options)  # task codes become rows of instances
        except DataError as error:
            if table.kind == IMAGES and "is not one of the tasks" in str(error):
                missing = "The tasks are its images: copy those that are missing, or leave their annotations out."
                error.args = (f"{error}\n  {instances}: {missing}",)
            raise
        labels = annotations_of(crowd)
        gold = self.gold_column(table, labels, instances)
        training = table.training & (labels.redundancy > 0)
        if not training.any():
            raise DataError(f"{instances}: every annotated task is of the split 'eval', so nothing is trained on.")
        held_out = None if table.training.all() else ~table.training
        return TrainingSet(crowd, table.values, labels, training, gold, table.names, held_out)

    def gold_column(self, table: Instances, crowd: Annotations, path: Path) -> Gold | None:
        """Gold in a table of instances, in the kind's own form.

        Args:
            table: table of instances.
            crowd: the annotations.
            path: path of the table, for messages.
        """
        return None

    def targets(self, result: Result, annotations: Annotations) -> Targets | None:
        """Training targets of method "aggregated", one row per task; None for kinds without deep methods."""
        return None

    def class_names(self, annotations: Annotations) -> Sequence[str] | np.ndarray | None:
        """Class names, one per model output; None for ratings."""
        return annotations.classes

    def train(
        self, settings: Settings, x: Examples, crowd: Crowd, targets: Targets | None = None, **how: Any
    ) -> TrainedModel:
        """Train a model on arrays.

        Args:
            settings: result of the method `settings`.
            x: instances, row i is task code i.
            crowd: labels from `Reading.read`.
            targets: targets for method "aggregated"; see the method `targets`.
            **how: `callbacks` and `verbose` of Keras.

        Returns:
            The model, and the encoder from instances to its input (None if they are the input).

        Raises:
            DataError: labels that do not match the instances, or non-finite values in training.
        """
        from crowdzoo.training.instance_training import train

        annotations = annotations_of(crowd)
        if targets is None or self.labels.has_pairs:  # annotations identify the pairs
            how |= {"annotations": annotations, "tasks": annotations.tasks}
        if targets is not None:
            how["label_distribution" if self.labels.has_classes else "ratings"] = targets
        return train(cast(InstanceSettings, settings), x, **how)

    # === Evaluation ===

    def rows(self, model: CrowdModel, encoder: Encoder, data: TrainingSet[Crowd, Gold]) -> Rows:
        """Rows of a table that compares a trained model with gold of its training tasks and of the others."""
        rows: Rows = []
        gold: Any = data.gold
        for split, tasks in (("training", data.training), ("held-out", ~data.training)):
            if gold is not None and (known := tasks & self.scoring.known(gold)).any():
                inputs = encode(data.x, known, encoder)
                answers = self.answers(model, inputs, data.annotations, gold[known])
                rows += self.scoring.rows(gold[known], answers, split)
        return rows

    def answers(self, model: CrowdModel, x: Examples, annotations: Annotations, gold: np.ndarray) -> np.ndarray:
        """Answers of a trained model, in the form of `scoring`.

        Args:
            model: the model.
            x: input for n tasks.
            annotations: its training annotations.
            gold: gold of these tasks, [n].
        """
        return np.asarray(model.predict(x, verbose=0))


def encode(values: Examples, rows: np.ndarray, encoder: Encoder) -> Examples:
    """Encode the instances selected by `rows`, bool [N], for a model; see `encode_rows`."""
    from crowdzoo.training.instance_training import encode_rows

    encoded: Any = encode_rows(values, rows, cast("InstanceEncoder | None", encoder))  # sentences have another encoder
    return encoded
