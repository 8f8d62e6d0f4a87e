"""A convolutional and recurrent network that tags every token of a sentence."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import keras
import numpy as np
from keras import ops

from crowdzoo.backend import Tensor
from crowdzoo.checks.constraints import FLAG, checked
from crowdzoo.layers.crf import CRF
from crowdzoo.layers.ranges import BATCH, CLASSES, DROPOUT, UNITS
from crowdzoo.networks.network import Network


@keras.saving.register_keras_serializable(package="crowdzoo")
class SequenceTagger(Network):
    """Word embeddings, a convolution over five words, a GRU over the sentence, and a softmax (or CRF) at every token.

    A token's tag depends on its sentence only, not on padding or on other sentences of the batch: values at padding are
    set to zero before the convolution and skipped by the GRU.

    Args:
        num_words: V, number of word ids: 0 is padding, 1 an unknown word.
        num_classes: K, number of tags; None leaves out the softmax, for crowd layers on a hidden layer (DoctorNet).
        embedding: length of a word's vector.
        num_shapes: number of ids of word shapes (such as capitalised, all digits), 0 being padding; 0 leaves them out.
        num_characters: number of character ids, 0 being padding; 0 leaves characters out.
        filters: number of filters of the convolution.
        kernel_size: window of the convolution in words, odd.
        units: number of units of the GRU (in each direction).
        dropout: share of the convolution's outputs dropped in training, 0 <= dropout < 1.
        bidirectional: whether a second GRU reads backwards.
        crf: whether the probabilities are marginals of a linear-chain CRF (`crowdzoo.layers.CRF`) and `decode` returns
            the best path; else a softmax.
        allowed: for the CRF, which tags may follow which; see `CRF`.
        **kwargs: `name` and `trainable` of `keras.Model`.

    Call arguments:
        inputs: a dictionary, as `crowdzoo.models.TokenEncoder` makes it: "words" int `[B, T]`; with shapes "shapes" int
            `[B, T]`; with characters "characters" int `[B, T, C]`, C at least 1. Padding is 0 and at the end.

    Returns:
        Tag probabilities `[B, T, K]`, rows sum to one, float32, also under mixed precision; without classes the GRU's
        output `[B, T, H]`. Meaningless at padding.

    Raises:
        ValueError: invalid sizes.

    Example:
        >>> from crowdzoo.layers import CrowdsourcedLayer
        >>> from crowdzoo.models import CrowdModel, SequenceTagger, TokenEncoder
        >>> sentences = [["Ann", "sleeps"], ["Bob", "saw", "Cem"]]
        >>> encoder = TokenEncoder.fit(sentences)
        >>> base = SequenceTagger(**encoder.sizes, num_classes=3, embedding=8, filters=8, units=8)
        >>> model = CrowdModel(base, CrowdsourcedLayer(num_annotators=5, kind="sequence"))
        >>> tuple(model(encoder(sentences)).shape)  # sentences, tokens, tags
        (2, 3, 3)

    Source:
        The network of F. Rodrigues, F. Pereira: Deep Learning from Crowds. AAAI 2018, section 5 (CoNLL-2003):
        Conv1D 512 x 5, dropout 0.5, GRU 50. Shapes, characters, second direction and CRF are additions.
    """

    @checked(
        num_words=replace(BATCH, least=2),
        num_classes=replace(CLASSES, optional=True),
        embedding=UNITS,
        num_shapes=replace(BATCH, least=0),
        num_characters=replace(BATCH, least=0),
        filters=UNITS,
        kernel_size=UNITS,
        units=UNITS,
        dropout=DROPOUT,
        bidirectional=FLAG,
        crf=FLAG,
    )
    def __init__(
        self,
        num_words: int,
        num_classes: int | None,
        embedding: int = 100,
        num_shapes: int = 0,
        num_characters: int = 0,
        filters: int = 512,
        kernel_size: int = 5,
        units: int = 50,
        dropout: float = 0.5,
        bidirectional: bool = False,
        crf: bool = False,
        allowed: Sequence[Sequence[bool]] | None = None,
        **kwargs: Any,
    ):
        if kernel_size % 2 == 0:
            raise ValueError(f"SequenceTagger: kernel_size must be odd, got {kernel_size}")
        if crf and num_classes is None:
            raise ValueError("SequenceTagger: a CRF needs num_classes")
        if allowed is not None and not crf:
            raise ValueError("SequenceTagger: allowed is for the CRF; set crf=True")

        # === Inputs ===
        inputs = {"words": keras.Input((None,), dtype="int32", name="words")}
        if num_shapes:
            inputs["shapes"] = keras.Input((None,), dtype="int32", name="shapes")
        if num_characters:
            inputs["characters"] = keras.Input((None, None), dtype="int32", name="characters")
        mask = ops.not_equal(inputs["words"], 0)
        is_token = ops.expand_dims(ops.cast(mask, keras.config.floatx()), axis=-1)

        # === Token vectors ===
        words = keras.layers.Embedding(num_words, embedding, name="embedding")
        vectors = [words(inputs["words"])]
        if num_shapes:
            vectors.append(keras.layers.Embedding(num_shapes, 16, name="shape_embedding")(inputs["shapes"]))
        if num_characters:
            vectors.append(_characters(inputs["characters"], num_characters))
        tokens = keras.layers.Concatenate(name="tokens")(vectors) if len(vectors) > 1 else vectors[0]
        tokens = tokens * is_token

        # === Context ===
        convolution = keras.layers.Conv1D(filters, kernel_size, padding="same", activation="relu", name="convolution")
        hidden = convolution(tokens)
        if dropout:
            hidden = keras.layers.Dropout(dropout, name="dropout")(hidden)
        # padding is at the end, after a forward GRU has read the sentence: only the backward one needs the mask
        gru = keras.layers.GRU(units, return_sequences=True, name="gru")
        hidden = keras.layers.Bidirectional(gru, name="grus")(hidden, mask=mask) if bidirectional else gru(hidden)

        # === Tags ===
        outputs, scores, head = hidden, None, None
        if num_classes is not None:
            scores = keras.layers.Dense(num_classes, name="logits")(hidden)
            if crf:
                head = CRF(allowed, name="crf")
                outputs = head(scores, mask=mask)
            else:
                dtype = keras.backend.result_type(keras.config.floatx(), "float32")
                outputs = keras.layers.Activation("softmax", dtype=dtype, name="probabilities")(scores)
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)

        # a function, because the model must not track its layers twice
        self._scores_model = _hide_model(keras.Model(inputs, scores)) if crf else None
        self.head: Any = head

    def decode(self, x: Mapping[str, Tensor]) -> Tensor:
        """Returns the best tags: with a CRF the best path, else each token's most probable tag.

        Args:
            x: as for a call.

        Returns:
            int32 `[B, T]`; meaningless at padding.
        """
        if self._scores_model is None:
            return ops.cast(ops.argmax(self(x, training=False), axis=-1), "int32")
        return self.head.decode(self._scores_model()(x, training=False), mask=ops.not_equal(x["words"], 0))

    def tag(self, x: dict[str, np.ndarray], batch_size: int = 128) -> list[np.ndarray]:
        """Returns the best tags of many sentences, see `decode`; sentences of similar length are batched together.

        Args:
            x: as for a call, arrays of N sentences.
            batch_size: sentences in a batch.

        Returns:
            N arrays int64 `[T_i]`, without padding.
        """
        lengths = (x["words"] != 0).sum(axis=1)
        best_tags: list[np.ndarray] = [np.zeros(0, "int64")] * len(lengths)
        order = np.argsort(lengths, kind="stable")
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            # padded to multiples of eight, so that few shapes are traced; padding does not affect results
            width = -(-max(int(lengths[rows].max()), 1) // 8) * 8
            batch = {name: np.asarray(array)[rows, :width] for name, array in x.items()}
            model = self if self._scores_model is None else self._scores_model()
            answers = np.asarray(model.predict_on_batch(batch))
            if self._scores_model is None:
                tags = answers.argmax(axis=-1)
            else:
                tags = ops.convert_to_numpy(self.head.decode(answers, mask=batch["words"] != 0))
            for row, sentence in zip(rows, tags, strict=True):
                best_tags[row] = sentence[: lengths[row]].astype("int64")
        return best_tags

    def set_word_vectors(self, vectors: np.ndarray, trainable: bool = True) -> None:
        """Initializes word vectors with given ones, such as GloVe's; see `crowdzoo.sequences.read_word_vectors`.

        Args:
            vectors: `[V, embedding]`, row i for word id i; rows of NaN keep their random values.
            trainable: whether they are trained further.

        Raises:
            ValueError: the wrong shape.
        """
        layer = self.get_layer("embedding")
        old = ops.convert_to_numpy(layer.embeddings)
        if np.shape(vectors) != old.shape:
            raise ValueError(
                f"SequenceTagger: word vectors must have shape {list(old.shape)}, got {list(np.shape(vectors))}"
            )
        layer.embeddings.assign(np.where(np.isnan(vectors), old, vectors).astype(old.dtype))
        layer.trainable = trainable


def _hide_model(model: keras.Model) -> Callable[[], keras.Model]:
    return lambda: model


def _characters(codes: Any, num_characters: int) -> Any:
    """A vector per token from its characters: a convolution over three characters, and max pooling."""
    is_character = ops.expand_dims(ops.not_equal(codes, 0), axis=-1)
    vectors = keras.layers.Embedding(num_characters, 25, name="character_embedding")(codes)
    vectors = vectors * ops.cast(is_character, vectors.dtype)
    answers = keras.layers.Conv2D(30, (1, 3), padding="same", name="character_convolution")(vectors)
    # every token has characters; only padding has none, where any value will do
    return ops.maximum(ops.max(ops.where(is_character, answers, -1e4), axis=2), -1e4) * ops.cast(
        ops.any(is_character, axis=2), answers.dtype
    )
