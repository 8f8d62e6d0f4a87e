"""BaseContext: what a function of the user's is told when it makes a base model. Loads no Keras."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class BaseContext:
    """What is known when a base model is made.

    Attributes:
        kind: of label, a key of `LABEL_KINDS`.
        instances: kind of instances: "feature vectors", "texts" and so on.
        shapes: shape of one instance as the model gets it, such as `(20,)`; None for an open axis. Of several inputs a
            dictionary by their names.
        dtypes: their types, such as "float32", in the same form.
        encoder: what makes the model's input out of instances as files hold them; None for feature vectors. Of texts
            `encoder.num_words` is the number of word ids.
        num_classes: K; 0 for ratings and pairs.
        num_annotators: R; None where no annotations are learned from.
        head: whether the model ends in the estimate: probabilities `[B, K]`, a rating `[B, 1]`, or of
            pairs the score of one instance `[B, 1]`. False: in its last
            hidden layer, `[B, D]`, for methods that stand on one (`doctor-net`).
        center: mean of the ratings that are learned from, in their unit.
        unit: their standard deviation.
    """

    kind: str
    instances: str
    shapes: Any
    dtypes: Any
    encoder: Any = None
    num_classes: int = 0
    num_annotators: int | None = None
    head: bool = True
    center: float = 0.0
    unit: float = 1.0

    def inputs(self) -> Any:
        """`keras.Input`s of the shapes; of several inputs a dictionary of them."""
        import keras

        if isinstance(self.shapes, dict):
            return {name: keras.Input(shape, dtype=self.dtypes[name], name=name) for name, shape in self.shapes.items()}
        return keras.Input(self.shapes, dtype=self.dtypes, name="instances")
