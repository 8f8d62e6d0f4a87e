"""From the words of a text to one number."""

from dataclasses import replace
from typing import Any

import keras

from crowdzoo.checks.constraints import FLAG, Choice, checked
from crowdzoo.layers.label_unit import LabelUnit
from crowdzoo.layers.ranges import BATCH, CENTER, DROPOUT, NETWORKS, UNIT, UNITS
from crowdzoo.networks.text_network import TextNetwork

__all__ = ["TextRegressor"]


@keras.saving.register_keras_serializable(package="crowdzoo")
class TextRegressor(TextNetwork):
    """A rating of a text, from its word ids (`crowdzoo.networks.text_ids` makes them).

    | form | network |
    |------|---------|
    | bag-of-words | TF-IDF (`adapt` takes its weights from the training texts), Dense 64, dropout, Dense 1 |
    | convolutional | embedding, 128 x 3, maximum of 5, dropout, 128 x 5, maximum of 5, maximum of all, Dense 32, 1 |

    Estimates do not depend on how far a text is padded; see `TextNetwork`. Weights and dropout follow
    `keras.utils.set_random_seed`.

    Args:
        num_words: V, number of ids, padding (0) and the unknown word (1) included; at least 3.
        form: "bag-of-words" or "convolutional".
        embedding: numbers for each word (convolutional).
        filters: number of filters of each convolution.
        hidden: units of the last hidden layer; None is 32, for the bag of words 64.
        dropout: share dropped in training, 0 <= dropout < 1.
        center: mean of the ratings; see `crowdzoo.models.rating_unit`.
        unit: their standard deviation, above 0.
        head: False leaves out the last layer, for crowd layers that stand on a hidden layer (`RatingDoctorNet`).
        **kwargs: `keras.Model`'s `name`, `trainable`.

    Call arguments:
        inputs: word ids int `[B, T]`.

    Returns:
        Estimates `[B, 1]` in the labels' unit, float32 under mixed precision too; without a head the last hidden
        layer's output `[B, H]`.

    Raises:
        ValueError: impossible values.

    Source:
        The convolutional one is the network of F. Rodrigues, F. Pereira: Deep Learning from Crowds. AAAI 2018, section
        5 (MovieReviews), there on fixed GloVe vectors.
    """

    @checked(
        form=Choice(NETWORKS),
        num_words=replace(BATCH, least=3),
        embedding=UNITS,
        filters=UNITS,
        hidden=replace(UNITS, optional=True),
        dropout=DROPOUT,
        head=FLAG,
        center=CENTER,
        unit=UNIT,
    )
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
        def layers() -> list[Any]:
            if not head:
                return []
            return [keras.layers.Dense(1, name="value"), LabelUnit(center, unit, name="label_unit")]

        super().__init__(num_words, form, embedding, filters, hidden, dropout, layers, **kwargs)
        self.settings |= {"center": float(center), "unit": float(unit), "head": head}
