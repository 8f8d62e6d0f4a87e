"""What the zoo's networks on texts have in common."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops

from crowdzoo.layers.masked_convolution import MaskedConvolution
from crowdzoo.layers.tf_idf import TfIdf

__all__ = ["TextNetwork"]


class TextNetwork(keras.Model):
    """Parent of `TextClassifier` and `TextRegressor`, which have layers of their own after the last hidden one.

    | form | network |
    |------|---------|
    | bag-of-words | TF-IDF (`adapt` takes its weights from the training texts), Dense 64, dropout |
    | convolutional | embedding, 128 x 3, maximum of 5, dropout, 128 x 5, maximum of 5, maximum of all, Dense 32 |

    Outputs do not depend on how far a text is padded. The paper flattens where here a maximum over the text stands:
    a flattened text has a fixed length, and its padding counts.

    Args:
        num_words: V, number of ids, padding (0) and the unknown word (1) included; at least 3.
        form: "bag-of-words" or "convolutional".
        embedding: numbers for each word (convolutional).
        filters: number of filters of each convolution.
        hidden: units of the last hidden layer; None is 32, for the bag of words 64.
        dropout: share dropped in training.
        head: makes the child's own layers, once the hidden ones are made.
        **kwargs: `keras.Model`'s `name`, `trainable`.

    Source:
        The convolutional one is the network of F. Rodrigues, F. Pereira: Deep Learning from Crowds. AAAI 2018, section
        5 (MovieReviews), there on fixed GloVe vectors.
    """

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
        self.settings = {
            "num_words": num_words, "form": form, "embedding": embedding, "filters": filters, "hidden": hidden,
            "dropout": float(dropout),
        }  # fmt: skip

    def adapt(self, ids: np.ndarray) -> None:
        """Takes the words' weights from the training texts; the convolutional form has none.

        Args:
            ids: int `[N, T]`.

        Raises:
            DataError: another shape, no texts, or ids that there are not.
        """
        if self.weigh is not None:
            self.weigh.adapt(ids)

    def get_config(self) -> dict[str, Any]:
        """Arguments of the constructor that all children have."""
        return {**self.settings, "name": self.name, "trainable": self.trainable}
