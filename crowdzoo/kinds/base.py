"""Kind: everything that belongs to one kind of label, in one object.

A kind composes the rooms below it (tables, sequences, aggregation, training, models, export). The command line, the
components and the pipeline are each written once and ask the kind:

| part | members |
|------|---------|
| name, shape of labels | `name`, `labels` |
| input | `inputs`, `needed`, `reading`, `read`, `write_export`, `gold_of`, `size_rows` |
| aggregation | `aggregation`, `aggregators`, `create_aggregator`, `noted`, `result_rows`, `write_result` |
| base models | `bases`, `instances_of`, `taken_by`, `settings` |
| training | `method`, `methods`, `split_method`, `training_reading`, `training_set` |
| | `gold_column`, `targets`, `class_names`, `train` |
| evaluation | `metric`, `metric_title`, `scoring`, `gold_rows`, `training_rows`, `model_answers` |
| export and prediction | `signature`, `answer`, `header`, `prediction_lines`, `write_predictions` |
| command line | `add_arguments`, `check_arguments`, `refused`, `scale` |

Heavy imports stand inside the methods: `--help` asks every kind for its arguments and loads no Keras.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from inspect import signature
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.data.annotations import Annotations
from crowdzoo.data.instance_kinds import IMAGES, INSTANCE_KINDS, TABLES, InstanceKind
from crowdzoo.data.label_kinds import LabelKind, label_kind
from crowdzoo.errors import ConfigError, DataError, unknown
from crowdzoo.files.writing import csv_cell, write_numbers
from crowdzoo.kinds.chosen import chosen
from crowdzoo.kinds.scoring import Rows, Scoring
from crowdzoo.kinds.training_set import TrainingSet
from crowdzoo.plugins import Table
from crowdzoo.reading.instances.export_instances import named_by_image, write_export_instances
from crowdzoo.reading.instances.instances import Instances, read_instances
from crowdzoo.reading.instances.readers import recognised
from crowdzoo.reading.instances.tables import tables
from crowdzoo.reading.platforms.export import Export
from crowdzoo.reading.tables.annotation_files import write_annotations
from crowdzoo.reading.tables.layout import Layout
from crowdzoo.training.bases import ADDED, BASES, is_own
from crowdzoo.training.encode_rows import encode_rows
from crowdzoo.training.methods import AGGREGATED, default_method, methods_of
from crowdzoo.training.settings import InstanceSettings, Settings

# Of the reader: which platform's export the annotations are, and which of its questions
EXPORT_OPTIONS = ("platform", "field")
# Options of ratings, and why other kinds refuse them
RATINGS_ONLY = dict.fromkeys(("low", "high"), "an end of a scale of ratings belongs to --kind regression.")


class Kind(ABC):
    """One kind of label, from files to a served model; see the module for a list of the parts.

    Attributes:
        name: a key of `LABEL_KINDS`, as in files, in configurations and after `--kind`.
        counted: what is given, as tables of sizes count it: "annotations", "ratings", "sentences".
        reading: names of the options of `read`.
        gold_reading: names of the options of `gold_of`, beyond the layout.
        aggregation: default method of aggregation.
        refused: options of other kinds, and why they are not for this one.
        own_options: names of those that `add_arguments` adds, and that other kinds refuse.
        scale: those of its options that aggregators and settings of a training take as well.
        inputs: keys of its input files, in the order in which `crowdzoo.datasets.write_files` writes those of a
            shipped data set.
        needed: those of the inputs that have to be there.
        training_reading: further options of `training_set`.
        metric: what decides whether a model is pushed; `minimum_<metric>` is its key in a configuration.
        metric_title: the metric in messages.
        scoring: how answers are compared with gold.
        signature: of an exported model, asked for predictions.
        answer: output of that signature by which the kind of a model is known.
        header: columns of a file of predictions.
        fit_aggregated: the line of Python that trains on the `result` of an aggregation.
    """

    name: ClassVar[str]
    counted: ClassVar[str]
    reading: ClassVar[tuple[str, ...]]
    gold_reading: ClassVar[tuple[str, ...]] = ()
    aggregation: ClassVar[str]
    refused: ClassVar[Mapping[str, str]] = {}
    own_options: ClassVar[tuple[str, ...]] = ()
    scale: ClassVar[tuple[str, ...]] = ()
    inputs: ClassVar[tuple[str, ...]] = ("annotations", "instances")
    needed: ClassVar[tuple[str, ...]] = ("annotations", "instances")
    training_reading: ClassVar[tuple[str, ...]] = ()
    metric: ClassVar[str]
    metric_title: ClassVar[str]
    scoring: ClassVar[Scoring]
    signature: ClassVar[str] = "serving_default"
    answer: ClassVar[str]
    header: ClassVar[tuple[str, ...]]
    fit_aggregated: ClassVar[str] = "CrowdModel(base).fit(x, result.posteriors)"

    @property
    def labels(self) -> LabelKind:
        """What arrays of these labels look like."""
        return label_kind(self.name)

    @property
    def title(self) -> str:
        """What is labelled or given, in messages: "classes", "ratings"."""
        return self.labels.title

    def __repr__(self) -> str:
        return f"<kind {self.name}>"

    # === Command line ===

    def add_arguments(self, command: argparse.ArgumentParser) -> None:  # noqa: B027  no options is the rule
        """Adds the options that belong to this kind, to a command that has `--kind`."""

    def check_arguments(self, arguments: argparse.Namespace) -> None:
        """Refuses options of other kinds.

        Raises:
            ConfigError: names the option and why it is refused.
        """
        kinds = Kind.__subclasses__()
        others = {name: f"is for --kind {kind.name}; leave it out." for kind in kinds for name in kind.own_options}
        for name, why in {**others, **dict.fromkeys(self.own_options), **self.refused}.items():
            value = getattr(arguments, name, None)
            if value is not None and why:
                # task=x would be read as an option of Python's
                shown = f" {value:g}" if isinstance(value, float) else f" {value}"
                shown = "" if isinstance(value, bool) or "=" in shown else shown
                raise ConfigError(f"--{name.replace('_', '-')}{shown}: {why}")

    # === Input ===

    def read(
        self,
        annotations: str | Path,
        *,
        tasks: Any = None,
        only: Any = None,
        since: float | None = None,
        without: Sequence[tuple[str, float, float]] = (),
        **options: Any,
    ) -> Any:
        """Reads annotators' labels.

        Args:
            annotations: file; see `crowdzoo.data.annotations.Annotations.read`; of sentences spans or columns.
            tasks: names of the tasks, in the order of their codes; None takes those that occur. Not for sentences.
            only: names of the annotators who are kept; None: all. Tasks that nobody else labelled go, unless `tasks`
                names them. Not for sentences.
            since: annotations with a timestamp from this one on are kept, seconds since 1970. Not for sentences.
            without: annotators, and from when to when (not included) annotations with a timestamp are left out, seconds
                since 1970. Not for sentences.
            **options: any of `reading`.

        Returns:
            What the kind's aggregators fit: `Annotations`; of sentences `CrowdSequences`.

        Raises:
            DataError: a file that cannot be used.
        """
        found = Annotations.read(annotations, kind=self.name, tasks=tasks, **options)
        fix = "leave it out" if options.get("platform") else "name their column, columns='timestamp=COLUMN'"
        keep_tasks = tasks is not None or options.get("all_tasks", False)
        return chosen(found, annotations, only, since, without, keep_tasks, fix)

    @abstractmethod
    def gold_of(self, crowd: Any, path: Path | None, layout: Layout | None = None) -> Any:
        """What is known of the tasks; None where nothing is.

        Args:
            crowd: what `read` gave.
            path: file of gold, or None.
            layout: of that file.
        """

    def size_rows(self, crowd: Any, what: str = "") -> Rows:
        """Rows of a table that say how much there is.

        Args:
            crowd: what `read` gave.
            what: stands after the names of what is counted, such as " trained on".
        """
        rows = [(f"{self.counted}{what}", f"{len(crowd):,}")]
        if crowd.num_rejected:  # nothing disappears quietly
            rows.append(("rows left out", f"{crowd.num_rejected:,}"))
        return [*rows, (f"tasks{what}", f"{crowd.num_tasks:,}"), ("annotators", f"{crowd.num_annotators:,}")]

    def write_export(
        self, crowd: Any, export: Export, folder: Path, columns: Mapping[str, str], keep: Collection[str] = ()
    ) -> dict[str, str | None]:
        """Writes what `read` gave of a labelling platform's export, and what the export says of the tasks.

        Args:
            crowd: what `read` gave.
            export: the export.
            folder: where the files go.
            columns: "text" or "image" -> the export's name of that column.
            keep: names of columns that are kept beside them.

        Returns:
            The export's name of each column of the instances -> the file's, None where it is left out.
        """
        write_annotations(crowd, folder / "annotations.csv")
        return write_export_instances(export, folder / "instances.csv", columns, keep)

    # === Aggregation ===

    def aggregators(self) -> Table:
        """Methods of aggregation: name -> class."""
        from crowdzoo.aggregation.registry import METHODS_OF

        return METHODS_OF[self.name]

    def aggregator_class(self, method: str) -> type | None:
        """The class whose settings a method takes; None if the method is unknown."""
        return self.aggregators().get(method)

    def create_aggregator(self, method: str | None = None, *, seed: int | None = None, **settings: Any) -> Any:
        """An aggregator.

        Args:
            method: name; None takes the default.
            seed: passed on where the method takes one and `settings` do not have it.
            **settings: settings of the method.

        Raises:
            ConfigError: an unknown method or setting, or a value out of range.
        """
        from crowdzoo.aggregation.registry import check_settings_of_default, create

        method = method or self.aggregation
        if method == self.aggregation:  # it may not have been named
            check_settings_of_default(self.name, method, settings)
        chosen = self.aggregator_class(method)
        if seed is not None and chosen is not None and "seed" in signature(chosen).parameters:
            settings = {"seed": seed, **settings}
        return create(method, kind=self.name, **settings)

    def noted(self, result: Any, crowd: Any, gold: Any = None) -> Any:
        """The result with notes on what about the crowd makes it doubtful.

        Args:
            result: see `result_rows`.
            crowd: likewise.
            gold: what the result was fitted or calibrated with; None without gold.
        """
        return result

    @abstractmethod
    def result_rows(self, result: Any, crowd: Any, gold: Any, used_gold: bool) -> Rows:
        """Rows of a table: what an aggregation found, and how it compares with gold.

        Args:
            result: result of the aggregator.
            crowd: what it was fitted to.
            gold: result of `gold_of`.
            used_gold: whether the aggregator was told the gold.
        """

    def write_result(self, result: Any, crowd: Any, path: Path, file_format: str = "parquet") -> None:
        """Writes what an aggregation found; see `crowdzoo.aggregation.base.Result.write`."""
        result.write(path, file_format)

    # === Training ===

    def targets(self, result: Any, annotations: Annotations) -> Any:
        """What a base is trained on by method "aggregated", one row a task; None for a kind without deep methods."""
        return None

    def class_names(self, annotations: Annotations) -> Any:
        """Names of what a model's outputs stand for; None of ratings."""
        return annotations.classes

    @property
    def instance_kinds(self) -> tuple[InstanceKind, ...]:
        """Kinds of instances that have a base model for these labels, the default first."""
        return tuple(instances for instances in INSTANCE_KINDS if self.name in instances.bases)

    @property
    def bases(self) -> tuple[str, ...]:
        """Names of base models, the default first."""
        return tuple(instances.bases[self.name] for instances in self.instance_kinds)

    def instances_of(
        self,
        instances: Path | None,
        inputs: Mapping[str, str] | None = None,
        layout: Layout | None = None,
        base: str | None = None,
    ) -> InstanceKind:
        """The kind of instances that a file is read as.

        Args:
            instances: file; None where the kind needs no such file.
            inputs: types of some columns; see `crowdzoo.instances.recognised`.
            layout: of the file.
            base: name of the base model, or `module:function` of the user's own. None, and one of the user's own: the
                file decides.

        Raises:
            ConfigError: the file is missing, the base is unknown, or there is no base model for these labels of such
                instances.
            DataError: a file that cannot be used.
        """
        if instances is None:
            raise ConfigError("the file of instances is missing: crowdzoo train ANNOTATIONS INSTANCES --out FILE.keras")
        if base is not None and not is_own(base):
            found = self.taken_by(base)
            return tables(inputs) if found == TABLES else found
        found = recognised(instances, inputs, layout)
        if self.name not in found.bases:
            raise ConfigError(f"{instances}: holds {found.name}, for which there is no model of {self.title}.")
        return found

    def taken_by(self, base: str) -> InstanceKind:
        """The kind of instances that one of crowdzoo's own base models takes.

        Raises:
            ConfigError: no base of that name is for these labels.
        """
        found = next((kind for kind in self.instance_kinds if kind.bases[self.name] == base), None)
        if found is None:
            text = unknown("base", base, [*self.bases, *ADDED])
            raise ConfigError(f"{text} Or name a function of your own, FILE.py:FUNCTION.")
        return found

    @property
    def method(self) -> str:
        """Name of the default deep method."""
        return default_method(self.name)

    def methods(self) -> Table:
        """The deep methods; see `methods_of`."""
        return methods_of(self.name)

    def split_method(self, method: str) -> tuple[str, str | None]:
        """Which deep method a name stands for, and which aggregation comes before it.

        Args:
            method: a deep method, or a method of aggregation, whose result the base is trained on.

        Returns:
            The deep method, and None; or "aggregated" and the method of aggregation.

        Raises:
            ConfigError: an unknown name, or no method learns from such labels.
        """
        if not self.labels.trained:
            return default_method(self.name), None  # which raises
        if method == AGGREGATED:
            return AGGREGATED, self.aggregation
        if method in self.methods():
            return method, None
        if method in self.aggregators():
            return AGGREGATED, method
        known = list(dict.fromkeys([*(name for name in self.methods() if name != AGGREGATED), *self.aggregators()]))
        raise ConfigError(unknown("method", method, known))

    def settings(self, base: str, **given: Any) -> Any:
        """Settings of a training.

        Args:
            base: name of the base model.
            **given: fields of `settings_class(base)`; `method` is the kind's own where it is not given.

        Raises:
            ConfigError: a setting that the base does not have, or a value out of its range.
        """
        known = {field.name for field in fields(self.settings_class(base))}
        for name in given:
            if name not in known and not is_own(base):  # which says itself what it takes
                own = sorted(known - {field.name for field in fields(InstanceSettings)} | {"dropout"})
                raise ConfigError(f"{name}: is not for base {base}, which has {', '.join(own)}.")
        return BASES[base].make_settings(**{"kind": self.name, **given})

    def settings_class(self, base: str) -> type[Settings]:
        """The class of the settings that a base model is trained with."""
        return BASES[base].settings

    def training_set(
        self,
        annotations: Path,
        instances: Path | None,
        inputs: Mapping[str, str] | None = None,
        layout: Layout | None = None,
        base: str | None = None,
        **options: Any,
    ) -> TrainingSet:
        """Reads what a model is trained on.

        Args:
            annotations: file.
            instances: file; None for sentences, which are in the file of annotations.
            inputs: types of some columns; see `crowdzoo.instances.recognised`.
            layout: of the file of instances.
            base: see `instances_of`.
            **options: any of `reading` and `training_reading`.

        Raises:
            ConfigError: a file is missing that the kind needs, or is given in vain.
            DataError: a file that cannot be used.
        """
        kind = self.instances_of(instances, inputs, layout, base)
        assert instances is not None
        table = read_instances(instances, kind, layout)
        options = named_by_image(options, instances)
        if table.kind == IMAGES:
            plain = {name: value for name, value in options.items() if name != "rejects"}
            with warnings.catch_warnings():  # the second reading warns, and writes the rejects
                warnings.simplefilter("ignore")
                table = table.named_like(self.read(annotations, **plain).tasks)
        try:
            crowd = self.read(annotations, tasks=table.tasks, **options)  # so task codes are rows of the instances
        except DataError as error:
            if table.kind == IMAGES and "is not one of the tasks" in str(error):
                missing = "The tasks are its images: copy those that are missing, or leave their annotations out."
                error.args = (f"{error}\n  {instances}: {missing}",)
            raise
        gold = self.gold_column(table, crowd, instances)
        training = table.training & (crowd.redundancy > 0)
        if not training.any():
            raise DataError(f"{instances}: every annotated task is of the split 'eval', so nothing is trained on.")
        held_out = None if table.training.all() else ~table.training
        return TrainingSet(crowd, table.values, crowd, training, gold, table.names, held_out)

    def gold_column(self, table: Instances, crowd: Annotations, path: Path) -> Any:
        """What a table of instances knows of the tasks, in the kind's own form.

        Args:
            table: of the instances.
            crowd: what `read` gave.
            path: of the table, for messages.
        """
        raise NotImplementedError(f"{self.title} have no table of instances")

    def train(
        self, settings: Any, x: Any, annotations: Annotations, *, targets: Any = None, crowd: Any = None, **how: Any
    ) -> tuple[Any, Any]:
        """Trains a model from arrays.

        Args:
            settings: of `settings`.
            x: instances, row i is task code i.
            annotations: labels.
            targets: for method "aggregated"; see the method `targets`.
            crowd: what `read` gave.
            **how: Keras' `callbacks` and `verbose`.

        Returns:
            The model, and the encoder from instances to its input (None where they are the input).

        Raises:
            DataError: labels that do not fit the instances, or a training whose numbers became infinite.
        """
        from crowdzoo.training.instance_training import train

        if targets is None or self.labels.has_pairs:  # of pairs these say which
            how |= {"annotations": annotations, "tasks": annotations.tasks}
        if targets is not None:
            how["label_distribution" if self.labels.has_classes else "ratings"] = targets
        return train(settings, x, **how)

    # === Evaluation ===

    def gold_rows(self, gold: NDArray[Any], answers: NDArray[Any]) -> Rows:
        """Rows of a table: how answers to all tasks compare with gold."""
        known = self.scoring.known(gold)
        return self.scoring.rows(gold[known], answers[known])

    def training_rows(self, model: Any, encoder: Any, data: TrainingSet) -> Rows:
        """Rows of a table: how a trained model compares with gold of its training tasks, and of the others."""
        rows: Rows = []
        for split, tasks in (("training", data.training), ("held-out", ~data.training)):
            if data.gold is not None and (known := tasks & self.scoring.known(data.gold)).any():
                gold = data.gold[known]
                answers = self.model_answers(model, encode_rows(data.x, known, encoder), data.annotations, gold)
                rows += self.scoring.rows(gold, answers, split)
        return rows

    def model_answers(self, model: Any, x: Any, annotations: Annotations, gold: NDArray[Any]) -> NDArray[Any]:
        """Answers of a trained model, as `scoring` takes them.

        Args:
            model: the model.
            x: its input, of n tasks.
            annotations: what it was trained on.
            gold: of these tasks, [n].
        """
        return np.asarray(model.predict(x, verbose=0))

    # === Prediction ===

    def prediction_lines(self, tasks: Iterable[Any], outputs: Mapping[str, np.ndarray]) -> list[str]:
        """Lines of a CSV file of predictions, without the header; of numbers in their own unit.

        Args:
            tasks: names.
            outputs: of the kind's signature.
        """
        pairs = zip(tasks, outputs[self.answer].tolist(), strict=True)
        return [f"{csv_cell(task)},{number:.6g}" for task, number in pairs]

    def write_predictions(self, path: Path | None, instances: Any, outputs: Mapping[str, np.ndarray]) -> None:
        """Writes a file of predictions; None prints it."""
        text = "\n".join([",".join(self.header), *self.prediction_lines(instances.tasks, outputs)]) + "\n"
        if path is None:
            sys.stdout.write(text)
        else:
            write_numbers(path, text)
