"""A base network as users write one."""

import keras


class OwnBase(keras.Model):
    """Not registered with Keras; has no weights before it sees data, and an argument to be remembered."""

    def __init__(self, units=3, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.dense = keras.layers.Dense(units, activation="softmax")

    def call(self, inputs):
        return self.dense(inputs)

    def get_config(self):
        return {**super().get_config(), "units": self.units}
