"""Networks on texts: `TextClassifier`, `TextRegressor` and their parent."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import keras
import numpy as np
from keras import ops

from crowdzoo.checks.constraints import CENTER, FLAG, UNIT, Choice, checked
from crowdzoo.layers.masked_convolution import MaskedConvolution
from crowdzoo.layers.ranges import BATCH, CLASSES, DROPOUT, NETWORKS, UNITS
from crowdzoo.layers.tf_idf import TfIdf
from crowdzoo.networks.network import Network, class_head, rating_head


class TextNetwork(Network):
    """Parent of `TextClassifier` and `TextRegressor`, which add their own layers after the last hidden one.

    | form | network |
    |------|---------|
    | bag-of-words | TF-IDF (`adapt` takes its weights from the training texts), Dense 64, dropout |
    | convolutional | embedding, 128 x 3, maximum of 5, dropout, 128 x 5, maximum of 5, maximum of all, Dense 32 |

    Outputs do not depend on padding. The paper flattens instead of taking a maximum over the text, so that texts have a
    fixed length and padding matters.

    Args:
        num_words: V, number of ids, padding (0) and the unknown word (1) included; at least 3.
        form: "bag-of-words" or "convolutional".
        embedding: length of a word's vector (convolutional).
        filters: number of filters of each convolution.
        hidden: units of the last hidden layer; None is 32, for the bag of words 64.
        dropout: share dropped in training.
        head: function that makes the subclass' own layers after the hidden ones.
        **kwargs: `name` and `trainable` of `keras.Model`.

    Source:
        The convolutional one is the network of F. Rodrigues, F. Pereira: Deep Learning from Crowds. AAAI 2018, section
        5 (MovieReviews), there on fixed GloVe vectors.
    """

    @checked(
        num_words=replace(BATCH, least=3),
        form=Choice(NETWORKS),
        embedding=UNITS,
        filters=UNITS,
        hidden=replace(UNITS, optional=True),
        dropout=DROPOUT,
    )
    def __init__(
        self,
        num_words: int,
        form: str,
        embedding: int,
        filters: int,
        hidden: int | None,
        dropout: float,
        head: Callable[[], list[Any]],
        **kwargs: Any,
    ):
        units = (32 if form == "convolutional" else 64) if hidden is None else hidden
        drop = keras.layers.Dropout(dropout, name="dropout")
        inputs = keras.Input((None,), dtype="int32", name="instances")
        weigh = None
        if form == "convolutional":
            places = ops.cast(ops.not_equal(inputs, 0), "float32")
            outputs = keras.layers.Embedding(num_words, embedding, name="embedding")(inputs)
            outputs, places = MaskedConvolution(filters, 3, pool=5, name="convolution_0")(outputs, places)
            outputs, places = MaskedConvolution(filters, 5, pool=5, name="convolution_1")(drop(outputs), places)
            outputs = ops.max(outputs, axis=1)
            outputs = keras.layers.Dense(units, activation="relu", name="hidden")(outputs)
        else:
            weigh = TfIdf(num_words, name="tf_idf")
            outputs = drop(keras.layers.Dense(units, activation="relu", name="hidden")(weigh(inputs)))
        for layer in head():
            outputs = layer(outputs)
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)
        self.weigh = weigh

    def adapt(self, ids: np.ndarray) -> None:
        """Computes the words' weights from the training texts; the convolutional form has none.

        Args:
            ids: int `[N, T]`.

        Raises:
            DataError: the wrong shape, no texts, or ids out of range.
        """
        if self.weigh is not None:
            self.weigh.adapt(ids)


@keras.saving.register_keras_serializable(package="crowdzoo")
class TextClassifier(TextNetwork):
    """Predicts the class of a text from its word ids (see `crowdzoo.networks.text_ids`).

    The networks are those of `TextRegressor`, with a softmax over the classes at the end. Weights and dropout depend on
    `keras.utils.set_random_seed`.

    Args:
        num_words: V, number of ids, padding (0) and the unknown word (1) included; at least 3.
        num_classes: K, number of classes; None leaves out the softmax, for crowd layers that use a hidden layer.
        form: "bag-of-words" or "convolutional".
        embedding: length of a word's vector (convolutional).
        filters: number of filters of each convolution.
        hidden: units of the last hidden layer; None is 32, for the bag of words 64.
        dropout: share dropped in training, 0 <= dropout < 1.
        **kwargs: `name` and `trainable` of `keras.Model`.

    Call arguments:
        inputs: word ids int `[B, T]`.

    Returns:
        Class probabilities `[B, K]`, rows sum to one, float32, also under mixed precision; without classes the last
        hidden layer's output `[B, H]`.

    Raises:
        ValueError: invalid values.

    Example:
        >>> from crowdzoo.models import TextClassifier, TextIds
        >>> encoder = TextIds(["good", "bad"])
        >>> base = TextClassifier(encoder.num_words, num_classes=4)
        >>> ids = encoder.to_numpy(["a good film", "bad"])
        >>> base.adapt(ids)  # weights of the words
        >>> tuple(base(ids).shape)  # probabilities
        (2, 4)
    """

    @checked(num_classes=replace(CLASSES, optional=True))
    def __init__(
        self,
        num_words: int,
        num_classes: int | None,
        form: str = "bag-of-words",
        embedding: int = 64,
        filters: int = 128,
        hidden: int | None = None,
        dropout: float = 0.5,
        **kwargs: Any,
    ):
        last_layers = partial(class_head, num_classes)
        super().__init__(num_words, form, embedding, filters, hidden, dropout, last_layers, **kwargs)
        self.num_classes = num_classes


@keras.saving.register_keras_serializable(package="crowdzoo")
class TextRegressor(TextNetwork):
    """Predicts a rating of a text from its word ids (see `crowdzoo.networks.text_ids`).

    | form | network |
    |------|---------|
    | bag-of-words | TF-IDF (`adapt` takes its weights from the training texts), Dense 64, dropout, Dense 1 |
    | convolutional | embedding, 128 x 3, maximum of 5, dropout, 128 x 5, maximum of 5, maximum of all, Dense 32, 1 |

    Estimates do not depend on padding; see `TextNetwork`. Weights and dropout depend on `keras.utils.set_random_seed`.

    Args:
        num_words: V, number of ids, padding (0) and the unknown word (1) included; at least 3.
        form: "bag-of-words" or "convolutional".
        embedding: length of a word's vector (convolutional).
        filters: number of filters of each convolution.
        hidden: units of the last hidden layer; None is 32, for the bag of words 64.
        dropout: share dropped in training, 0 <= dropout < 1.
        center: mean of the ratings; see `crowdzoo.models.rating_unit`.
        unit: their standard deviation, above 0.
        head: False leaves out the last layer, for crowd layers that use a hidden layer.
        **kwargs: `name` and `trainable` of `keras.Model`.

    Call arguments:
        inputs: word ids int `[B, T]`.

    Returns:
        Estimates `[B, 1]` in the labels' unit, float32, also under mixed precision; without a head the last hidden
        layer's output `[B, H]`.

    Raises:
        ValueError: invalid values.

    Example:
        >>> from crowdzoo.models import TextIds, TextRegressor
        >>> encoder = TextIds(["good", "bad"])
        >>> base = TextRegressor(encoder.num_words, center=3.0, unit=1.2)  # mean and deviation of the ratings
        >>> ids = encoder.to_numpy(["a good film", "bad"])
        >>> base.adapt(ids)  # weights of the words
        >>> tuple(base(ids).shape)
        (2, 1)

    Source:
        The convolutional one is the network of F. Rodrigues, F. Pereira: Deep Learning from Crowds. AAAI 2018, section
        5 (MovieReviews), there on fixed GloVe vectors.
    """

    @checked(head=FLAG, center=CENTER, unit=UNIT)
    def __init__(
        self,
        num_words: int,
        form: str = "bag-of-words",
        embedding: int = 64,
        filters: int = 128,
        hidden: int | None = None,
        dropout: float = 0.5,
        center: float = 0.0,
        unit: float = 1.0,
        head: bool = True,
        **kwargs: Any,
    ):
        last_layers = partial(rating_head, center, unit, head)
        super().__init__(num_words, form, embedding, filters, hidden, dropout, last_layers, **kwargs)
