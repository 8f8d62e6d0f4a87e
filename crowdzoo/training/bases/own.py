"""Custom base models: a function that makes one, or a Keras model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdzoo.data.instance_kinds import TEXTS, instance_kind
from crowdzoo.data.label_kinds import label_kind
from crowdzoo.errors import ConfigError, Setting, bad_setting, unknown
from crowdzoo.training.bases.base import Base, BaseContext, Batches, Sizes, fields_of
from crowdzoo.training.bases.own_source import call_own, own_function
from crowdzoo.training.settings import OwnSettings, Settings

if TYPE_CHECKING:
    import keras

    from crowdzoo.networks.instance_encoder import InstanceEncoder


class OwnBase(Base):
    """The base that `module:function` or `file.py:function` returns for a `BaseContext` and the settings' arguments.

    Feature vectors reach the model unchanged, and layers `Standardization` and `keras.layers.Normalization` are adapted
    to the training features. Other instances are encoded as for crowdzoo's own base of their kind; a model with inputs
    of type "string" gets raw texts.

    Args:
        reference: `package.module:function` or `path/to/file.py:function`.
        standard: crowdzoo's own bases by name, which encode instances.
    """

    settings = OwnSettings

    def __init__(self, reference: str, standard: Any):
        self.reference = reference
        self._standard = standard

    def make_settings(self, **values: Any) -> Settings:
        """See `Base.make_settings`; encoder settings are those of crowdzoo's base for these instances."""
        for name in values:
            if name == "dropout" or name not in {field.name for field in fields(OwnSettings)}:
                raise ConfigError(
                    f"{Setting(name)}: is not for a base of your own. Give it to the function, as an argument: "
                    f"--base-set {name}=…, or in a configuration model.arguments."
                )
        settings: Any = super().make_settings(reference=self.reference, **values)
        standard = self._standard[settings.instances.bases[settings.kind]]
        for name in settings.encoder:
            if not standard.settings.encoder_fields:
                reason = f"is not for {settings.instance_kind}, which reach your base as they are"
                raise ConfigError(f"{Setting(name)}: {reason}.", setting=name)
            if name not in standard.settings.encoder_fields:
                raise ConfigError(f"encoder: {unknown('setting', name, standard.settings.encoder_fields)}")
        standard.make_settings(kind=settings.kind, method=settings.method, **settings.encoder)
        return settings

    def encoder(self, settings: Any, batches: Batches) -> InstanceEncoder | None:
        """The encoder of crowdzoo's own base for such instances; for texts none if the model takes strings."""
        kind = instance_kind(settings.instance_kind)
        base = self._standard[kind.bases[settings.kind]]
        encoder_settings = base.make_settings(kind=settings.kind, method=settings.method, **settings.encoder)
        encoder = base.encoder(encoder_settings, batches)
        if kind == TEXTS:
            inputs = getattr(self._build_model(settings, Sizes(num_classes=2), encoder), "inputs", None)
            if inputs and all(tensor.dtype == "string" for tensor in inputs):
                from crowdzoo.networks.text_ids import RawTexts

                return RawTexts()
        return encoder

    def build(self, settings: Any, sizes: Sizes, encoder: Any) -> keras.Model:
        """Calls the function, and tries its model on a batch.

        Raises:
            ConfigError: the function raises an exception, or its model does not fit.
        """
        model = self._build_model(settings, sizes, encoder)
        try_on_batch(model, self.reference, own_context(settings, sizes, encoder))
        return model

    def adapt(self, model: keras.Model, encoder: Any, batches: Batches) -> None:
        """Adapts layers that standardise features."""
        import keras

        from crowdzoo.backend import flattened_layers
        from crowdzoo.layers.standardization import Standardization

        if encoder is not None:
            return
        for layer in flattened_layers(model):
            if isinstance(layer, Standardization):
                layer.adapt_batches(batches())
            elif isinstance(layer, keras.layers.Normalization) and layer.input_mean is None:
                import tensorflow as tf

                spec = tf.TensorSpec([None, model.inputs[0].shape[-1]], tf.float32)
                # in parts, so that features of all tasks need no memory
                parts = tf.data.Dataset.from_generator(
                    lambda: (np.asarray(part, "float32") for part in batches()), output_signature=spec
                )
                layer.adapt(parts)

    def features(self, model: keras.Model) -> str | None:
        """The layer named "features", else the last but one; for feature vectors the input itself."""
        names = [layer.name for layer in model.layers]
        if "features" in names:
            return "features"
        inputs: Any = getattr(model, "inputs", None) or ()
        takes_vectors = len(inputs) == 1 and len(inputs[0].shape) == 2 and inputs[0].dtype.startswith("float")
        return None if takes_vectors or len(names) < 2 or not inputs else names[-2]

    def _build_model(self, settings: Any, sizes: Sizes, encoder: InstanceEncoder | None) -> Any:
        import keras

        context = own_context(settings, sizes, encoder)
        model = call_own(self.reference, own_function(self.reference), context, **settings.base_arguments)
        if not isinstance(model, keras.Model):
            raise ConfigError(
                f"base {self.reference}: returns {type(model).__name__} instead of a keras.Model (of the package "
                "`keras`, version 3)."
            )
        return model


class ObjectBase(OwnBase):
    """A Keras model, copied with new weights for each training, or a function that makes one.

    Args:
        made_by: the model; or a function of a `BaseContext`, as for `crowdzoo train --base`.
    """

    def __init__(self, made_by: Any | Callable[[BaseContext], Any]):
        super().__init__("the base", {})
        self.made_by = made_by

    def encoder(self, settings: Any, batches: Batches) -> None:
        """None: feature vectors are the input."""

    def build(self, settings: Any, sizes: Sizes, encoder: Any) -> keras.Model:
        """Copies the model, or calls the function.

        Raises:
            ConfigError: not a Keras model, or its input or output does not fit the instances and labels.
        """
        import keras

        if isinstance(self.made_by, keras.Model):
            model = keras.models.clone_model(self.made_by)
        else:
            model = self.made_by(own_context(settings, sizes))
        if not isinstance(model, keras.Model):
            raise bad_setting("base", "must be a keras.Model, or a function that makes one", model)
        try_on_batch(model, "given", own_context(settings, sizes), str(sizes.num_classes))
        return model


def own_context(settings: OwnSettings, sizes: Sizes, encoder: InstanceEncoder | None = None) -> BaseContext:
    """The context for the function."""
    shapes: Any = (sizes.num_features,)
    dtypes: Any = "float32"
    if encoder is not None:
        shapes, dtypes = _encoded_spec(encoder)
    of_data = fields_of(sizes, "num_classes", "num_annotators", "head", "center", "unit")
    return BaseContext(settings.kind, settings.instances.name, shapes, dtypes, encoder, **of_data)


def _encoded_spec(encoder: Any) -> tuple[Any, Any]:
    """Shapes and types of one encoded instance."""
    import tensorflow as tf

    specs = encoder.inputs
    input_spec = specs["instances"] if {*specs} == {"instances"} else specs
    outputs = tf.function(lambda values: encoder(values)).get_concrete_function(input_spec).structured_outputs
    shapes = tf.nest.map_structure(lambda spec: tuple(spec.shape.as_list()[1:]), outputs)
    return shapes, tf.nest.map_structure(lambda spec: spec.dtype.name, outputs)


def try_on_batch(
    model: keras.Model, reference: str, context: BaseContext, size_name: str = "context.num_classes"
) -> None:
    """Rejects a model that does not accept a batch of instances, or whose output does not fit."""
    x = _batch(context)
    answers = np.asarray(call_own(reference, lambda: _answers(model, x, reference, context)), dtype="float64")
    has_classes = context.num_classes > 0
    if not context.head:
        if answers.ndim != 2:
            raise ConfigError(
                f"base {reference}: gives shape {list(answers.shape)} for {len(answers)} instances; the method uses "
                "the last hidden layer, [batch, units] (context.head is False)."
            )
        return
    size = context.num_classes if has_classes else 1
    axes = label_kind(context.kind).learned.axes + 1
    if answers.ndim != axes or answers.shape[-1] != size:
        needed = f"{size} classes: end it in Dense({size_name}, activation='softmax')"
        needed = needed if has_classes else "one number: end it in Dense(1)"
        raise ConfigError(f"base {reference}: gives shape {list(answers.shape)} for 2 instances, not {needed}.")
    if not np.isfinite(answers).all():
        raise ConfigError(f"base {reference}: gives NaN or infinity for a batch of zeros.")
    if has_classes and (np.abs(answers.sum(axis=-1) - 1) > 0.01).any():
        raise ConfigError(
            f"base {reference}: its outputs sum to {answers.sum(axis=-1).flat[0]:.3g} for an instance, and "
            f"probabilities sum to 1: end it in Dense({size_name}, activation='softmax')."
        )


def _answers(model: keras.Model, x: Any, reference: str, context: BaseContext) -> Any:
    import keras

    try:
        return keras.ops.convert_to_numpy(model(x, training=False))
    except Exception as error:
        reason = str(error).strip().splitlines()
        raise ConfigError(
            f"base {reference}: does not take a batch of {context.instances}, of shape {context.shapes} and type "
            f"{context.dtypes} an instance: {reason[0] if reason else type(error).__name__}"
        ) from error


def _batch(context: BaseContext) -> Any:
    """Two instances of zeros, or of empty texts, as tensors."""
    import tensorflow as tf

    def part(shape: tuple[int | None, ...], dtype: str) -> Any:
        # axes of any length, such as the words of a text, get a size that suits a few convolutions
        return tf.zeros([2, *(size or 16 for size in shape)], dtype) if dtype != "string" else tf.fill([2, *shape], "a")

    if isinstance(context.shapes, dict):
        return {name: part(shape, context.dtypes[name]) for name, shape in context.shapes.items()}
    return part(context.shapes, context.dtypes)
