"""Which epoch a data set is in, counted in Python, where a checkpoint and several devices can reach it."""

import keras

from crowdzoo.backend import KerasBatches


class EpochCount:
    """Counts the epochs of a data set, each of which has an order of its own.

    An iteration is an epoch. On several devices Keras begins iterations that it gives up, and TensorFlow reads ahead in
    them, so that Keras' epochs have to count; see `epoch_callbacks`.

    Attributes:
        number: of the epoch; -1 before the first one.
        pinned: whether epochs are counted from outside, and not by iterations.
    """

    def __init__(self) -> None:
        self.number = -1
        self.pinned = False

    def on_epoch_begin(self) -> None:
        """Counts an epoch."""
        self.number += 1

    def next(self) -> int:
        """Number of the epoch that an iteration goes through, called when it begins."""
        if not self.pinned:
            self.on_epoch_begin()
        return max(self.number, 0)  # Keras looks at a first batch before the first epoch


def epoch_callbacks(model: keras.Model, batches: KerasBatches) -> list[keras.callbacks.Callback]:
    """Callbacks that let Keras' epochs count where several devices train; none are needed elsewhere.

    Args:
        model: is trained.
        batches: what it is trained on; of `TrainingData` they have an `EpochCount` as `epochs`.
    """
    strategy, epochs = getattr(model, "distribute_strategy", None), getattr(batches, "epochs", None)
    if strategy is None or epochs is None or strategy.num_replicas_in_sync == 1:
        return []
    epochs.pinned = True
    return [
        keras.callbacks.LambdaCallback(
            on_epoch_begin=lambda *_: epochs.on_epoch_begin(), on_train_end=lambda *_: setattr(epochs, "pinned", False)
        )
    ]
