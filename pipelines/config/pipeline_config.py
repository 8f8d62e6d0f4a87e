"""The whole configuration, and rules that involve several sections."""

from collections.abc import Mapping
from dataclasses import fields
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator

from crowdzoo import datasets
from crowdzoo.data.instance_kinds import InstanceKind
from crowdzoo.data.label_kinds import LABEL_KINDS
from crowdzoo.errors import DataError
from crowdzoo.kinds import Kind, kind_of
from crowdzoo.pipelines.config import sections
from crowdzoo.pipelines.config.kubeflow import KubeflowConfig
from crowdzoo.pipelines.config.values import Seed
from crowdzoo.reading.instances.readers import recognised
from crowdzoo.training.bases import is_own


class PipelineConfig(sections.Section):
    """The configuration of a run of the pipeline. Paths are absolute once loaded.

    Attributes:
        name: name of the pipeline in metadata, and of the served model.
        kind: kind of label: `classification`, `sequence` for tagged sentences, `regression` for ratings, `preference`
            for comparisons of two tasks, or `region` for regions of images.
        seed: seed of everything random.
    """

    model_config = ConfigDict(populate_by_name=True)

    name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,62}$")]
    kind: Literal[tuple(LABEL_KINDS)] = "classification"  # type: ignore[valid-type]
    seed: Seed = 0
    data: sections.DataConfig
    aggregation: sections.AggregationConfig
    model: sections.ModelConfig = sections.ModelConfig()
    method: sections.MethodConfig
    training: sections.TrainingConfig = sections.TrainingConfig()
    evaluation: sections.EvaluationConfig = sections.EvaluationConfig()
    drift: sections.DriftConfig = sections.DriftConfig()
    report: sections.ReportConfig = sections.ReportConfig()
    output: sections.OutputConfig
    beam: sections.BeamConfig = sections.BeamConfig()
    kubeflow: KubeflowConfig = KubeflowConfig()

    @model_validator(mode="before")
    @classmethod
    def _default_methods(cls, values: Any) -> Any:
        """Fills in the methods of aggregation and training, whose defaults depend on the kind of label."""
        if not isinstance(values, Mapping):
            return values
        name = values.get("kind", "classification")
        kind = kind_of(name) if isinstance(name, str) and name in LABEL_KINDS else None  # others are rejected later
        filled, learned = dict(values), kind and kind.training.split_method(kind.training.default)[1]
        for section, key, default in (
            ("aggregation", "method", "" if kind is None else learned or kind.aggregation.default),
            ("method", "name", "" if kind is None else kind.training.default),
        ):
            section_values = values.get(section)
            if section_values is None or isinstance(section_values, Mapping):  # anything else is rejected later
                filled[section] = {key: default, **(section_values or {})}
        return filled

    @model_validator(mode="after")
    def _fits_together(self) -> "PipelineConfig":
        kind = self.label_kind
        if is_own(self.base):
            if "instances" not in kind.options.inputs:
                raise ValueError(f"model.base '{self.model.base}': sentences are tagged by {kind.training.bases[0]}")
        elif self.base not in kind.training.bases:
            raise ValueError(
                f"model.base '{self.base}' is not for kind {kind.name}; it is {' or '.join(kind.training.bases)}"
            )
        second = ("instance_columns", "outside_images") if "instances" in kind.options.inputs else ()
        owner = f"kind {kind.name}" if self.base == kind.training.bases[0] else f"base {self.base}"
        owner = "a base of your own" if is_own(self.base) else owner
        keys = (*kind.options.inputs, *kind.options.reading, *second)
        reading = (key for key in keys if key in sections.DataConfig.model_fields)
        minimum = f"minimum_{kind.scoring.metric}"
        by_annotations = ("compare", "annotation_tolerance") if kind.scoring.by_annotations else ()
        for section, allowed in {
            "data": dict.fromkeys(("dataset", *reading, "eval_fraction")),
            "evaluation": ("tolerance", "undecided", *by_annotations, minimum, "new_signatures"),
            "model": ("base", *self._base_keys),
        }.items():
            strange = sorted(getattr(self, section).model_fields_set - set(allowed))
            if strange:
                raise ValueError(f"{section}.{strange[0]} is not for {owner}, where {section} has {', '.join(allowed)}")
        if self.training.warm_start and not kind.training.starts_warm:
            raise ValueError(f"training.warm_start is for classes and ratings, not for kind {kind.name}; remove it")
        needed = kind.options.needed
        missing = [key for key in needed if getattr(self.data, key) is None]
        if self.data.dataset is None and missing:
            raise ValueError(f"data needs {' and '.join(map(repr, needed))}, or 'dataset' (the name of a shipped set)")
        return self

    @property
    def has_page(self) -> bool:
        """Whether the run writes a page about the crowd and the model: if the file has the section report."""
        return "report" in self.model_fields_set and self.report.page

    @property
    def label_kind(self) -> Kind:
        """The kind of label."""
        return kind_of(self.kind)

    @property
    def base(self) -> str:
        """The base's name; by default that of the kind of instances."""
        return self.model.base or self.instances.bases[self.kind]

    @cached_property
    def instances(self) -> InstanceKind:
        """The kind of instance of the base; without a named base, that of the file according to its columns."""
        kinds = self.label_kind.training.instance_kinds
        if self.model.base is not None and not is_own(self.model.base):
            return self.label_kind.training.instances_for(self.model.base)
        if self.data.dataset is not None and datasets.has(self.data.dataset, self.kind):
            return datasets.instances_of(self.data.dataset)
        if self.data.instances is None or isinstance(self.data.instances, str):  # URIs are not read here
            return kinds[0]
        try:
            kind = recognised(self.data.instances, self.model.inputs, self.data.instance_layout)
        except DataError:  # the file cannot be read, which `outside_problems` reports
            kind = kinds[0]
        return kind if kind in kinds else kinds[0]

    @property
    def _base_keys(self) -> list[str]:
        """Settings of the model that the base has."""
        if is_own(self.base):
            return ["arguments", "encoder", "inputs"]
        known = {field.name for field in fields(self.label_kind.training.settings_class(self.base))}
        known -= {"arguments"}  # belongs to the method
        return [name for name in sections.ModelConfig.model_fields if name in known]

    @property
    def settings(self) -> Any:
        """Settings of the training.

        Raises:
            ConfigError: they do not go together.
        """
        model = self.model.model_dump(mode="json", include=set(self._base_keys), exclude_none=True)
        if is_own(self.base):
            model = _own_settings(self.instances, model)
        model |= {key: getattr(self.data, key) for key in self.label_kind.options.scale if hasattr(self.data, key)}
        method = {"method": self.method.name, "arguments": self.method.arguments, "seed": self.seed}
        return self.label_kind.training.settings(self.base, **method, **model, **self.training_arguments)

    @property
    def training_arguments(self) -> dict[str, Any]:
        """The section training, without keys that are not settings of a training."""
        return self.training.model_dump(mode="json", exclude={"checkpoint", "warm_start"})

    @property
    def base_arguments(self) -> dict[str, Any]:
        """The base and its settings from the section model."""
        if is_own(self.base):
            arguments = self.model.model_dump(mode="json", include={*self._base_keys}, exclude_none=True)
            return {"base": self.base, **_own_settings(self.instances, arguments)}
        values = {name: getattr(self.settings, name) for name in self._base_keys}
        return {"base": self.base} | {
            name: list(value) if isinstance(value, tuple) else value for name, value in values.items()
        }

    @property
    def model_files(self) -> dict[str, str]:
        """Paths of files of networks that the model uses, by the key that names them."""
        files = {f"model.{key}": path for key, path in backbone_files(self.model.model_dump()).items()}
        return files | {f"model.images.{key}": path for key, path in backbone_files(self.model.images).items()}

    @property
    def minimum(self) -> float:
        """The smallest value of the kind's metric for a pushed model."""
        return getattr(self.evaluation, f"minimum_{self.label_kind.scoring.metric}")


def _own_settings(instances: InstanceKind, model: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a custom base from the section model."""
    settings = {"instance_kind": instances.name, "base_arguments": model.get("arguments", {})}
    encoder = {**({"inputs": model["inputs"]} if "inputs" in model else {}), **model.get("encoder", {})}
    return settings | ({"encoder": encoder} if encoder else {})


def backbone_files(section: Any) -> dict[str, str]:
    """The files that settings of images name, by key, without names of networks of `keras.applications`."""
    if not isinstance(section, Mapping):
        return {}
    named = {key: section.get(key) for key in ("backbone", "backbone_weights")}
    paths = {key: path.strip() for key, path in named.items() if isinstance(path, str) and path.strip()}
    return {key: path for key, path in paths.items() if key != "backbone" or path.endswith(".keras")}
