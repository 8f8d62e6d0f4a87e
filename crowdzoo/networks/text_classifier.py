"""From the words of a text to the probabilities of its class."""

from dataclasses import replace
from typing import Any

import keras

from crowdzoo.checks.constraints import Choice, checked
from crowdzoo.layers.ranges import BATCH, CLASSES, DROPOUT, NETWORKS, UNITS
from crowdzoo.networks.text_network import TextNetwork

__all__ = ["TextClassifier"]


@keras.saving.register_keras_serializable(package="crowdzoo")
class TextClassifier(TextNetwork):
    """The class of a text, from its word ids (`crowdzoo.networks.text_ids` makes them).

    The networks are those of `TextRegressor`, with a softmax over the classes at the end. Weights and dropout follow
    `keras.utils.set_random_seed`.

    Args:
        num_words: V, number of ids, padding (0) and the unknown word (1) included; at least 3.
        num_classes: K, number of classes; None leaves out the softmax, for crowd layers that stand on a hidden layer.
        form: "bag-of-words" or "convolutional".
        embedding: numbers for each word (convolutional).
        filters: number of filters of each convolution.
        hidden: units of the last hidden layer; None is 32, for the bag of words 64.
        dropout: share dropped in training, 0 <= dropout < 1.
        **kwargs: `keras.Model`'s `name`, `trainable`.

    Call arguments:
        inputs: word ids int `[B, T]`.

    Returns:
        Class probabilities `[B, K]`, rows sum to one, float32 under mixed precision too; without classes the last
        hidden layer's output `[B, H]`.

    Raises:
        ValueError: impossible values.
    """

    @checked(
        form=Choice(NETWORKS),
        num_words=replace(BATCH, least=3),
        num_classes=replace(CLASSES, optional=True),
        embedding=UNITS,
        filters=UNITS,
        hidden=replace(UNITS, optional=True),
        dropout=DROPOUT,
    )
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
        def head() -> list[Any]:
            if num_classes is None:
                return []
            softmax = keras.layers.Softmax(dtype=keras.backend.result_type(keras.config.floatx(), "float32"))
            return [keras.layers.Dense(num_classes, name="logits"), softmax]

        super().__init__(num_words, form, embedding, filters, hidden, dropout, head, **kwargs)
        self.num_classes = num_classes

    def get_config(self) -> dict[str, Any]:
        """Every argument of the constructor."""
        return {**super().get_config(), "num_classes": self.num_classes}
