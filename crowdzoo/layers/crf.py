"""A linear-chain conditional random field: tag probabilities that depend on neighbouring tags."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from crowdzoo.backend import Config, Tensor

# Log-weight of a forbidden transition: e^-1e4 is 0, and sums of a few stay finite in float32
FORBIDDEN = -1e4


def crf_log_norm(scores: Tensor, mask: Tensor, transitions: Tensor) -> Tensor:
    """Logarithm of the sum over all paths of tags, `log sum_z exp(sum_t scores[t, z_t] + transitions[z_(t-1), z_t])`.

    Args:
        scores: `[B, T, K]`, log-weight of each tag at each token.
        mask: bool `[B, T]`, True for tokens, False for padding, which is at the end.
        transitions: `[K, K]`, log-weight of `[tag, next tag]`.

    Returns:
        `[B]`; 0 for a sentence without tokens.
    """
    scores, mask, transitions = _tensors(scores, mask, transitions)
    last = _forward(scores, mask, transitions, ops.logsumexp)[-1]
    return ops.where(mask[:, 0], ops.logsumexp(last, axis=-1), ops.zeros_like(last[:, 0]))


def crf_log_likelihood(scores: Tensor, tags: Tensor, mask: Tensor, transitions: Tensor) -> Tensor:
    """Log-probability of a path of tags.

    Args:
        scores: `[B, T, K]`, log-weight of each tag at each token.
        tags: int `[B, T]`, 0 to K - 1; ignored at padding.
        mask: bool `[B, T]`, True for tokens, False for padding, which is at the end.
        transitions: `[K, K]`, log-weight of `[tag, next tag]`.

    Returns:
        `[B]`, nats; 0 for a sentence without tokens.

    Source:
        J. Lafferty, A. McCallum, F. Pereira: Conditional Random Fields. ICML 2001.
    """
    scores, mask, transitions = _tensors(scores, mask, transitions)
    weights = ops.cast(mask, scores.dtype)
    tags = ops.where(mask, ops.cast(tags, "int32"), 0)
    tag_scores = ops.take_along_axis(scores, tags[..., None], axis=-1)[..., 0]
    places = tags[:, :-1] * transitions.shape[0] + tags[:, 1:]
    steps = ops.take(ops.reshape(transitions, (-1,)), places)
    path = ops.sum(tag_scores * weights, axis=1) + ops.sum(steps * weights[:, 1:], axis=1)
    return path - crf_log_norm(scores, mask, transitions)


def crf_marginals(scores: Tensor, mask: Tensor, transitions: Tensor) -> Tensor:
    """Probability of every tag at every token, over all paths (forward and backward sums, in log-space).

    Args:
        scores: `[B, T, K]`, log-weight of each tag at each token.
        mask: bool `[B, T]`, True for tokens, False for padding, which is at the end.
        transitions: `[K, K]`, log-weight of `[tag, next tag]`.

    Returns:
        `[B, T, K]`, rows sum to one; meaningless at padding.
    """
    scores, mask, transitions = _tensors(scores, mask, transitions)
    forward = _forward(scores, mask, transitions, ops.logsumexp)
    steps, classes = _time_major(scores, mask), scores.shape[-1]

    def step(after: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        """Computes what follows token t from what follows token t + 1; x is the input of token t + 1."""
        following = ops.logsumexp(transitions[None] + (x[:, :classes] + after)[:, None, :], axis=2)
        following = ops.where(x[:, classes:] > 0, following, after)
        return following, following

    # the additional masked step is what follows the last token
    _, backward = ops.scan(step, ops.zeros_like(scores[:, 0]), steps[1:], reverse=True)
    return ops.softmax(ops.transpose(forward + backward, (1, 0, 2)), axis=-1)


def crf_decode(scores: Tensor, mask: Tensor, transitions: Tensor) -> Tensor:
    """The most probable path of tags (Viterbi).

    Args:
        scores: `[B, T, K]`, log-weight of each tag at each token.
        mask: bool `[B, T]`, True for tokens, False for padding, which is at the end.
        transitions: `[K, K]`, log-weight of `[tag, next tag]`.

    Returns:
        int32 `[B, T]`; padding repeats the last token's tag.
    """
    scores, mask, transitions = _tensors(scores, mask, transitions)
    steps, classes = _time_major(scores, mask), scores.shape[-1]
    reached = _forward(scores, mask, transitions, ops.max)
    # for each tag of token t + 1, the best tag of token t; padding keeps the tag
    come_from = ops.argmax(reached[:-1, :, :, None] + transitions[None, None], axis=2)
    stay = ops.broadcast_to(ops.arange(classes, dtype=come_from.dtype), ops.shape(come_from))
    come_from = ops.cast(ops.where(steps[1:-1, :, classes:] > 0, come_from, stay), "int32")
    last = ops.cast(ops.argmax(reached[-1], axis=-1), "int32")
    no_step = ops.cast(ops.zeros_like(reached[:1]), "int32") + ops.arange(classes, dtype="int32")

    def back(tag: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
        tag = ops.take_along_axis(before, tag[:, None], axis=1)[:, 0]
        return tag, tag

    _, tags = ops.scan(back, last, ops.concatenate([come_from, no_step]), reverse=True)
    return ops.transpose(tags)


def _tensors(scores: Tensor, mask: Tensor, transitions: Tensor) -> Tensor:
    scores = ops.convert_to_tensor(scores)
    return scores, ops.convert_to_tensor(mask, "bool"), ops.convert_to_tensor(transitions, scores.dtype)


def _time_major(scores: Tensor, mask: Tensor) -> Tensor:
    """Joins scores and mask into one array `[T + 1, B, K + 1]`, whose last step is masked.

    TensorFlow's scan accepts only one array, and needs at least one step.
    """
    steps = ops.concatenate([scores, ops.cast(mask, scores.dtype)[..., None]], axis=-1)
    return ops.pad(ops.transpose(steps, (1, 0, 2)), ((0, 1), (0, 0), (0, 0)))


def _forward(scores: Tensor, mask: Tensor, transitions: Tensor, over_paths: Callable[..., Any]) -> Tensor:
    """Log-weight of all paths, or of the best one, that end in each tag, `[T, B, K]`; padding repeats the last."""
    steps, classes = _time_major(scores, mask), scores.shape[-1]

    def step(before: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        paths = over_paths(before[:, :, None] + transitions[None], axis=1) + x[:, :classes]
        paths = ops.where(x[:, classes:] > 0, paths, before)
        return paths, paths

    first = scores[:, 0]
    _, rest = ops.scan(step, first, steps[1:])
    return ops.concatenate([first[None], rest[:-1]])


@keras.saving.register_keras_serializable(package="crowdzoo")
class CRF(keras.layers.Layer):
    """Turns scores of tokens into tag probabilities that take neighbouring tags into account.

    `P(z | x) ~ exp(sum_t scores[t, z_t] + transitions[z_(t-1), z_t])`. The layer returns the tokens' marginals
    `P(z_t = k | x)`, which any crowd layer can use like a softmax; without learnt transitions they are the softmax.
    `decode` returns the best path, `log_likelihood` the log-probability of a given path. They do what
    `tfa.text.crf_log_likelihood` and `tfa.text.crf_decode` of TensorFlow Addons did, which cannot be imported together
    with Keras 3.

    Args:
        allowed: K + 1 rows of K booleans: row k says which tags may follow tag k, the last row which may come first.
            `crowdzoo.sequences` makes them for BIO and IOBES. None allows everything.
        **kwargs: arguments of `keras.layers.Layer` (`name`, `dtype`, `trainable`).

    Call arguments:
        inputs: scores `[B, T, K]`, unbounded.
        mask: bool `[B, T]`, True for tokens, False for padding, which is at the end; None: no padding.

    Returns:
        `[B, T, K]`, rows sum to one, float32 or wider; meaningless at padding.

    Raises:
        ValueError: `allowed` has the wrong shape, or a row that forbids every tag.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.layers import CRF
        >>> scores = np.array([[[2.0, 0.0, 0.0], [0.5, 0.0, 1.0]]], "float32")  # two tokens; tags O, B, I
        >>> allowed = [[True, True, False], [True, True, True], [True, True, True], [True, True, False]]  # no I after O
        >>> layer = CRF(allowed)
        >>> tuple(layer(scores).shape)  # probabilities of the tags of each token
        (1, 2, 3)
        >>> np.asarray(layer.decode(scores)).tolist()
        [[0, 0]]

    Source:
        J. Lafferty, A. McCallum, F. Pereira: Conditional Random Fields. ICML 2001.
    """

    def __init__(self, allowed: Sequence[Sequence[bool]] | None = None, **kwargs: Any):
        super().__init__(autocast=False, **kwargs)
        self.supports_masking = True
        self.allowed = None if allowed is None else [[bool(cell) for cell in row] for row in allowed]
        if self.allowed is not None and not all(any(row) for row in self.allowed):
            raise ValueError("CRF: a row of `allowed` forbids every tag, so that no path can continue")
        self.transitions: Any = None

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Creates the transitions; input_shape is `[B, T, K]`, K known."""
        if len(input_shape) != 3 or input_shape[-1] is None:
            raise ValueError(f"CRF: scores must have shape [batch, tokens, tags], tags known, got {tuple(input_shape)}")
        classes = int(input_shape[-1])
        if self.allowed is not None and np.shape(self.allowed) != (classes + 1, classes):
            raise ValueError(
                f"CRF: `allowed` must have {classes + 1} rows of {classes} (one per tag, and one for what may come "
                f"first), got shape {np.shape(self.allowed)}"
            )
        self.transitions = self.add_weight(
            shape=(classes, classes), initializer="zeros", name="transitions", autocast=False
        )
        super().build(input_shape)

    def call(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        """Marginals; see the class."""
        return crf_marginals(*self._parts(inputs, mask))

    def decode(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        """The most probable path of tags, int32 `[B, T]`; arguments as for a call."""
        return crf_decode(*self._parts(inputs, mask))

    def log_likelihood(self, inputs: Tensor, tags: Tensor, mask: Tensor | None = None) -> Tensor:
        """Log-probability of paths of tags int `[B, T]`, in nats, `[B]`; other arguments as for a call."""
        scores, mask, transitions = self._parts(inputs, mask)
        return crf_log_likelihood(scores, tags, mask, transitions)

    def _parts(self, inputs: Tensor, mask: Tensor) -> Tensor:
        """Scores and transitions, with very low weights for forbidden ones, and a mask."""
        dtype = keras.backend.result_type(self.variable_dtype, "float32")
        scores = ops.cast(ops.convert_to_tensor(inputs), dtype)
        transitions = ops.cast(self.transitions, dtype)
        mask = ops.ones(ops.shape(scores)[:2], "bool") if mask is None else ops.cast(mask, "bool")
        if self.allowed is not None:
            forbidden = np.where(self.allowed, 0.0, FORBIDDEN).astype("float32")
            transitions = transitions + ops.cast(forbidden[:-1], dtype)
            first = ops.cast(forbidden[-1], dtype) + scores[:, :1]
            scores = ops.concatenate([first, scores[:, 1:]], axis=1)
        return scores, mask, transitions

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """The shape of the input."""
        return tuple(input_shape)

    def get_config(self) -> Config:
        """Every argument of the constructor."""
        return {**super().get_config(), "allowed": self.allowed}
