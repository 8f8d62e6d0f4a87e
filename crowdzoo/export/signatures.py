"""Signatures of an exported model, for each kind of label."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from crowdzoo.data.tags import spans_of, tag_problem
from crowdzoo.errors import ConfigError
from crowdzoo.export.warmup import instance_specs
from crowdzoo.networks.encoders import Encoder
from crowdzoo.networks.preprocessed import Preprocessed
from crowdzoo.networks.reward_model import SIDES, input_name
from crowdzoo.networks.token_encoder import TokenEncoder

if TYPE_CHECKING:
    from crowdzoo.training.crowd_model import CrowdModel


def build_pair_signatures(
    model: CrowdModel,
    specs: dict[str, tf.TensorSpec],
    classes: Sequence[str] | None,
    annotators: list[str],
    encoder: Encoder | None = None,
) -> tuple[tf.Module, dict[str, tf.types.experimental.ConcreteFunction]]:
    """Builds the module and signatures of a model on a `RewardModel`, for single instances and for pairs.

    Args:
        model: a built `CrowdModel`.
        specs: specs of single instances; see `build_signatures`, as for the following arguments.
        classes: names of left, right and equal.
        annotators: names of the annotators.
        encoder: encoder of single instances, or None.

    Returns:
        The module, and its functions: "serving_default" returns scores of single instances, "pairs" and "annotators"
        answers about pairs.

    Raises:
        ConfigError: `classes` does not fit the model.
    """
    pair_encoder = None if encoder is None else PairEncoder(encoder)
    of_pairs = instance_specs(model.base, None) if pair_encoder is None else pair_encoder.inputs
    module, functions = build_signatures(model, of_pairs, classes, annotators, pair_encoder)
    scorer = type(model)(model.base.scorer)  # a `CrowdModel`, whose file imports the exporter
    module.scorer, single = build_signatures(scorer, specs, None, [], encoder, number="score")
    return module, {**single, "pairs": functions.pop("serving_default"), **functions}


def build_signatures(
    model: CrowdModel,
    specs: dict[str, tf.TensorSpec],
    classes: Sequence[str] | None,
    annotators: list[str],
    encoder: Encoder | PairEncoder | None = None,
    number: str = "value",
) -> tuple[tf.Module, dict[str, tf.types.experimental.ConcreteFunction]]:
    """Builds a `tf.Module` that holds each variable once, and its signatures as concrete functions.

    Args:
        model: a built `CrowdModel`.
        specs: `tf.TensorSpec` of each input by its name.
        classes: names of the K classes or tags; None for ratings.
        annotators: names of the R annotators, if there is a crowd layer.
        encoder: converts requests to the base's input, such as an `InstanceEncoder`, a `PairEncoder` or a
            `TokenEncoder`; None passes requests unchanged.
        number: name of the output of a model with one number.

    Returns:
        The module, and its functions by the names of their signatures. Its `serve` is not a signature but Keras' usual
        endpoint, from the inputs (a single tensor, or several by name) to the result of `predict`.

    Raises:
        ConfigError: the model's output is not of a supported kind, or `classes` does not fit it.
    """
    module = tf.Module(name="crowdzoo")
    if encoder is not None:
        module.resources = encoder.resources  # a reference keeps the graph's tables alive

    def serve(inputs: tf.Tensor | dict[str, tf.Tensor]) -> tf.Tensor:
        values = inputs if isinstance(inputs, dict) else {"instances": inputs}
        x, _ = _read(model, encoder, _at_least_one(values, encoder))
        return model(x, training=False)[: _num_rows(values)]

    only = specs["instances"] if [*specs] == ["instances"] else specs
    module.serve = tf.function(serve, input_signature=[only])
    shape = module.serve.get_concrete_function().output_shapes.as_list()
    answers = _answers(model, shape, classes, encoder, number)

    def predict(
        answer: Callable[..., dict[str, tf.Tensor]], inputs: dict[str, tf.Tensor], annotator: tf.Tensor | None = None
    ) -> dict[str, tf.Tensor]:
        """The answer for instances, or a named annotator's answer for each."""
        size = _num_rows(inputs)
        padded = _at_least_one(inputs, encoder)
        x, tokens = _read(model, encoder, padded)
        if annotator is None:
            outputs = answer(x, model(x, training=False), tokens)
        else:
            codes = _known_codes(module.codes.lookup(annotator), annotator, size, len(annotators))
            codes = tf.pad(codes, [[0, _num_rows(padded) - size]])
            probabilities = model({"instances": x, "annotators": codes[:, None]}, training=False)
            if shape[-1] > 1:
                probabilities = tf.nn.softmax(tf.cast(probabilities, tf.float32)[..., 0, :])
            outputs = answer(None, probabilities, tokens)
        return {name: value[:size] for name, value in outputs.items()}

    def signature(answer: Callable[..., dict[str, tf.Tensor]]) -> tf.types.experimental.ConcreteFunction:
        return tf.function(lambda inputs: predict(answer, inputs)).get_concrete_function(specs)

    functions = {name: signature(answer) for name, answer in answers.items()}
    if model.crowd is not None:
        module.codes = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(annotators, tf.range(len(annotators), dtype=tf.int64)), default_value=-1
        )
        annotator_function = tf.function(
            lambda inputs, annotator: predict(answers["serving_default"], inputs, annotator)
        )
        name_spec = tf.TensorSpec([None], tf.string, name="annotator")
        functions["annotators"] = annotator_function.get_concrete_function(specs, name_spec)

    # Only what the graphs read: no optimizer, no seed states of dropout, and no duplicates.
    used = {id(variable): variable for graph in functions.values() for variable in graph.variables}
    layers = [model.base] + ([model.crowd] if model.crowd is not None else [])
    variables = [variable.value for layer in layers for variable in layer.variables]  # in the same order in every run
    module.held = [variable for variable in variables if id(variable) in used]
    module.held += [variable for key, variable in used.items() if key not in {id(held) for held in module.held}]
    # tables of layers such as TextVectorization and StringLookup are resources of the graphs as well
    parts = tf.train.TrackableView(model.base).descendants()
    module.lookups = [part for part in parts if isinstance(part, tf.saved_model.experimental.TrackableResource)]
    return module, functions


def _answers(
    model: CrowdModel,
    shape: list[int | None],
    classes: Sequence[str] | None,
    encoder: Encoder | PairEncoder | None,
    number: str,
) -> dict[str, Callable[..., dict[str, tf.Tensor]]]:
    """Output of each signature as a function of the model's input, its estimate and the tokens."""
    sequence = len(shape) == 3 and hasattr(encoder, "tokenize")
    if len(shape) == 3 and not sequence:
        raise ConfigError(
            f"export: the model's output is {shape}, tags of tokens; a tagger takes raw strings when it is served: "
            "give its encoder, export(..., encoder=TokenEncoder.fit(tokens)), or where the base is Preprocessed one "
            "that only cuts, encoder=crowdzoo.models.TokenEncoder([], tokenizer='whitespace')"
        )
    if len(shape) not in (2, 3, 4):
        raise ConfigError(
            f"export: the model's output is {shape}; classes [batch, classes], ratings [batch, 1], tags "
            "[batch, tokens, tags] and masks [batch, rows, columns, classes] are exported"
        )
    if shape[-1] == 1:
        if classes is not None:
            raise ConfigError(f"export: {len(classes)} classes are named, but the model predicts ratings, one per task")
        return {"serving_default": lambda _, estimate, __: {number: tf.cast(estimate, tf.float32)[:, 0]}}
    if classes is None or shape[-1] != len(classes):
        subject = "no classes are" if classes is None else f"{len(classes)} classes are"
        raise ConfigError(f"export: {subject} named, the model has {shape[-1]} outputs: give classes=[...] with all.")
    if not sequence:
        return {"serving_default": _class_answer(list(classes), of_pixels=len(shape) == 4)}
    answers = {"serving_default": _tags_answer(model, list(classes))}
    if not any(tag_problem(name, "BIO") and tag_problem(name, "IOBES") for name in classes):
        answers["spans"] = _spans_answer(model, list(classes))
    return answers


# === Instances ===


def _read(
    model: CrowdModel, encoder: Encoder | PairEncoder | None, inputs: dict[str, tf.Tensor]
) -> tuple[tf.Tensor, tuple[tf.Tensor, ...] | None]:
    """The model's input; and for a tagger the text, its tokens, their starts and ends."""
    if encoder is None and len(inputs) > 1:
        return keras.tree.map_structure(lambda tensor: inputs[tensor.name], model.base.input), None
    instances = inputs["instances"] if [*inputs] == ["instances"] else inputs
    if encoder is None:
        return instances, None
    if not isinstance(encoder, TokenEncoder):
        return encoder(instances), None
    tokens, starts, ends = encoder.tokenize(instances)
    if isinstance(model.base, Preprocessed):  # which encodes tokens separated by spaces itself
        joined = tf.strings.reduce_join(tokens, axis=1, separator=" ")
        # at least one token: a convolution over none fails
        return tf.where(joined == "", ".", joined), (instances, tokens, starts, ends)
    return encoder.encode(tokens), (instances, tokens, starts, ends)


def _num_rows(inputs: dict[str, tf.Tensor]) -> tf.Tensor:
    return tf.shape(next(iter(inputs.values())))[0]


def _at_least_one(inputs: dict[str, tf.Tensor], encoder: Encoder | PairEncoder | None) -> dict[str, tf.Tensor]:
    """The inputs with at least one instance: a convolution over an empty batch fails."""
    if encoder is None:
        return inputs
    missing = tf.maximum(1 - _num_rows(inputs), 0)
    examples = {
        name: tf.repeat(tf.constant(encoder.example[name], inputs[name].dtype)[None], missing, axis=0)
        for name in inputs
    }
    return {name: tf.concat([values, examples[name]], axis=0) for name, values in inputs.items()}


def _known_codes(codes: tf.Tensor, annotator: tf.Tensor, size: tf.Tensor, num_annotators: int) -> tf.Tensor:
    """Annotators' codes, after checking that there is one known name per instance."""
    same_size = tf.debugging.Assert(
        tf.equal(size, tf.shape(annotator)[0]),
        ["annotator: as many names as instances are needed; names, instances:", tf.shape(annotator)[0], size],
    )
    known = tf.debugging.Assert(
        tf.reduce_all(codes >= 0),
        [
            f"annotator: not among the {num_annotators} annotators of this model:",
            tf.unique(tf.boolean_mask(annotator, codes < 0)).y,
        ],
        summarize=3,
    )
    with tf.control_dependencies([same_size, known]):
        return tf.identity(codes)


class PairEncoder:
    """Encodes both sides of pairs for a `RewardModel`, inside the graph of a served model.

    Args:
        encoder: encoder of single instances.

    Attributes:
        resources: see `InstanceEncoder`.
        inputs: see `InstanceEncoder`; an input of single instances `x` is `left_x` and `right_x`, and `instances` is
            `left` and `right`.
        example: by the same names.
    """

    def __init__(self, encoder: Encoder):
        self.encoder: Callable[..., dict[str, tf.Tensor]] = encoder
        self.resources = encoder.resources
        self.names = {side: {name: input_name(side, name) for name in encoder.inputs} for side in SIDES}
        pairs = [(name, pair_name) for names in self.names.values() for name, pair_name in names.items()]
        specs = {pair_name: encoder.inputs[name] for name, pair_name in pairs}
        self.inputs = {name: tf.TensorSpec(spec.shape, spec.dtype, name=name) for name, spec in specs.items()}
        self.example = {pair_name: encoder.example[name] for name, pair_name in pairs}

    def __call__(self, values: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Encodes a batch.

        Args:
            values: tensors `[B]` by the names of `inputs`.

        Returns:
            The scorer's inputs for "left" and "right".
        """
        encodings = {}
        for side, names in self.names.items():
            part = {name: values[pair_name] for name, pair_name in names.items()}
            encodings[side] = self.encoder(part["instances"] if {*part} == {"instances"} else part)
        return encodings


# === Classes and masks ===


def _class_answer(classes: list[str], of_pixels: bool) -> Callable[..., dict[str, tf.Tensor]]:
    names = tf.constant(classes)

    def answer(_: tf.Tensor, probabilities: tf.Tensor, __: tf.Tensor) -> dict[str, tf.Tensor]:
        probabilities = tf.cast(probabilities, tf.float32)  # mixed precision computes in float16
        label = tf.argmax(probabilities, axis=-1, output_type=tf.int64)
        if of_pixels:
            class_names = {"classes": tf.repeat(names[None], tf.shape(label)[0], axis=0)}
        else:
            class_names = {"class": tf.gather(names, label)}
        return {"probabilities": probabilities, "label": label, **class_names}

    return answer


# === Tagged sentences ===


def _best_tags(model: CrowdModel, x: Any, probabilities: Any, tokens: Any) -> tuple[Any, Any, Any]:
    """The best tag of every token (of a CRF, its best path), its probability, and a mask of tokens.

    All are `[B, T]`, as wide as the longest text, or as the base pads it; the probability is 0 at padding.
    """
    probabilities = tf.cast(probabilities, tf.float32)
    if x is not None and getattr(model.base, "head", None) is not None:
        codes = tf.cast(model.base.decode(x), tf.int64)
    else:
        codes = tf.argmax(probabilities, axis=-1, output_type=tf.int64)
    is_token = tf.sequence_mask(tokens.row_lengths(), tf.shape(codes, tf.int64)[1])
    return codes, tf.where(is_token, tf.gather(probabilities, codes, axis=-1, batch_dims=2), 0.0), is_token


def _padded(ragged: Any, codes: Any, default: Any = 0) -> Any:
    """Pads ragged `[B, T]` to the width of the codes `[B, T']`, which have one token even if no text has any."""
    dense = ragged.to_tensor(default)
    return tf.pad(dense, [[0, 0], [0, tf.shape(codes)[1] - tf.shape(dense)[1]]], constant_values=default)


def _tags_answer(model: CrowdModel, classes: list[str]) -> Callable[..., dict[str, tf.Tensor]]:
    names = tf.constant(classes)

    def answer(x: tf.Tensor, probabilities: tf.Tensor, texts: tuple[tf.Tensor, ...]) -> dict[str, tf.Tensor]:
        _, tokens, starts, ends = texts
        codes, scores, is_token = _best_tags(model, x, probabilities, tokens)
        return {
            "tokens": _padded(tokens, codes, ""),
            "tags": tf.where(is_token, tf.gather(names, codes), ""),
            "scores": scores,
            "starts": _padded(starts, codes),
            "ends": _padded(ends, codes),
            "lengths": tokens.row_lengths(),
        }

    return answer


def _spans_answer(model: CrowdModel, classes: list[str]) -> Callable[..., dict[str, tf.Tensor]]:
    inside = tf.constant([name != "O" for name in classes])
    types = tf.constant([name[2:] for name in classes])
    # whether two neighbouring tags belong to one span, by the rules of conlleval as in `spans_of`; the rules of IOBES
    # include those of BIO
    pairs = [[spans_of([tag, next_tag], "IOBES") for next_tag in classes] for tag in classes]
    joined = tf.constant([[any(span.end - span.start == 2 for span in spans) for spans in row] for row in pairs])

    def answer(x: tf.Tensor, probabilities: tf.Tensor, texts: tuple[tf.Tensor, ...]) -> dict[str, tf.Tensor]:
        instances, tokens, starts, ends = texts
        codes, scores, is_token = _best_tags(model, x, probabilities, tokens)
        is_inside = tf.gather(inside, codes) & is_token
        goes_on = tf.gather_nd(joined, tf.stack([codes[:, :-1], codes[:, 1:]], axis=-1)) & is_inside[:, 1:]
        no_token = tf.zeros_like(is_inside[:, :1])
        first = tf.where(is_inside & ~tf.concat([no_token, goes_on], axis=1))  # [S, 2]: sentence, token
        last = tf.where(is_inside & ~tf.concat([goes_on, no_token], axis=1))
        start = tf.gather_nd(_padded(starts, codes), first)
        end = tf.gather_nd(_padded(ends, codes), last)
        # a span's score is the mean score of its tokens
        sums = tf.pad(tf.cumsum(scores, axis=1), [[0, 0], [1, 0]])
        next_column = tf.constant([[0, 1]], tf.int64)
        total = tf.gather_nd(sums, last + next_column) - tf.gather_nd(sums, first)
        score = total / tf.cast(last[:, 1] - first[:, 1] + 1, tf.float32)
        rows = tf.cast(tf.shape(codes)[0], tf.int64)

        def dense(values: tf.Tensor, default: tf.Tensor | str | float) -> tf.Tensor:
            return tf.RaggedTensor.from_value_rowids(values, first[:, 0], nrows=rows).to_tensor(default)

        starts, ends = dense(start, tf.constant(0, tf.int64)), dense(end, tf.constant(0, tf.int64))
        return {
            "types": dense(tf.gather(types, tf.gather_nd(codes, first)), ""),
            # not gathered first: that would copy the whole text for each span
            "texts": tf.strings.substr(instances[:, None], starts, ends - starts),
            "scores": dense(score, 0.0),
            "starts": starts,
            "ends": ends,
            "lengths": tf.RaggedTensor.from_value_rowids(first[:, 0], first[:, 0], nrows=rows).row_lengths(),
        }

    return answer
