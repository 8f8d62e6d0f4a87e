"""RatingDoctors: Doctor Net for ratings, one linear head per annotator."""

import keras
import numpy as np
from keras import ops
from scipy.optimize import minimize
from scipy.special import softmax

from crowdzoo import register
from crowdzoo.backend import take_rows
from crowdzoo.layers import CrowdLayer, LayerTraits
from crowdzoo.losses import RatingSquaredError
from crowdzoo.training import descend, register_recipe


@register("layer", "doctor-net-of-ratings")
@keras.saving.register_keras_serializable(package="crowd_baselines")
class RatingDoctors(CrowdLayer):
    """A head per annotator on a shared hidden layer: `center + unit * (h W_r + b_r)`; the truth is the heads' mean.

    The mean is over annotators with ratings in training. With `weighted` (WDN) the heads have weights, a softmax of one
    number each. After the last epoch they are fitted so that the weighted mean of all heads is close to the mean rating
    of each training task, in squared error.

    Args:
        num_annotators: R.
        weighted: whether weights are learnt.
        center: mean of the ratings.
        unit: standard deviation of the ratings.
        **kwargs: those of `CrowdLayer`.

    Source:
        M. Guan, V. Gulshan, A. Dai, G. Hinton: Who Said What. AAAI 2018, which is about classes; for ratings a baseline
        in F. Rodrigues, F. Pereira: Deep Learning from Crowds. AAAI 2018.

    Needs:
        Instances, and a base without an output layer; annotators with many ratings each.
    """

    traits = LayerTraits(
        kinds=("regression",),
        needs_hidden_layer=True,
        extra_training="fit notes who gave ratings, and learns the weights after the last epoch",
        why_no_confusions="ratings have no confusion matrices; see `weight`",
    )

    def __init__(self, num_annotators, weighted=False, center=0.0, unit=1.0, **kwargs):
        super().__init__(num_annotators, **kwargs)
        self.weighted, self.center, self.unit = weighted, center, unit

    def build(self, inputs_shape):
        """Makes the heads [R, D] and [R], and their weights [R]."""
        limit = (6 / (inputs_shape[-1] + 1)) ** 0.5  # Glorot's, of one head
        people, start = (self.num_annotators,), keras.initializers.RandomUniform(-limit, limit)
        own = {"autocast": False}  # float32 under mixed precision too
        self.kernel = self.add_weight(shape=(*people, inputs_shape[-1]), initializer=start, name="kernel", **own)
        self.bias = self.add_weight(shape=people, initializer="zeros", name="bias", **own)
        equal = keras.initializers.Constant(1 / self.num_annotators)
        self.weight = self.add_weight(shape=people, initializer=equal, name="weight", trainable=False, **own)
        super().build(inputs_shape)

    def call(self, inputs, annotators=None, training=None):
        """Ratings `[B, M]` of the given annotators (-1 is padding), or `[B, R]` of all, on hidden layers `[B, D]`."""
        self.check_training(training)
        hidden = ops.cast(inputs, self.kernel.dtype)
        if annotators is None:
            return self.center + self.unit * (ops.matmul(hidden, ops.transpose(self.kernel)) + self.bias)
        codes = ops.maximum(ops.cast(annotators, "int32"), 0)
        heads = ops.sum(hidden[:, None] * take_rows(self.kernel, codes), axis=-1) + take_rows(self.bias, codes)
        return self.center + self.unit * heads

    def truth(self, bottleneck):
        """The weighted mean of the heads, `[B, 1]`."""
        return ops.matmul(self(bottleneck), self.weight[:, None])

    def default_loss(self):
        """The squared error of the ratings in their unit."""
        return RatingSquaredError(self.unit)

    def get_config(self):
        """The arguments; `CrowdLayer` adds its own."""
        own = {"weighted": self.weighted, "center": self.center, "unit": self.unit}
        return {**super().get_config(), **own}


def fit(model, data, order, **kwargs):
    """Trains a compiled `CrowdModel` with `RatingDoctors`, then fits the weights: the recipe."""
    layer = model.crowd
    history = descend(model, data, order, **kwargs)
    heads, means, counts = [], [], np.zeros(layer.num_annotators)
    for x, ratings in data.batches(256, 0, shuffle=False, inputs=("annotators",)):
        said = ~np.isnan(np.asarray(ratings))
        counts += np.bincount(np.asarray(x["annotators"])[said], minlength=layer.num_annotators)
        means.append(np.nanmean(np.asarray(ratings), axis=1))
        heads.append(ops.convert_to_numpy(layer(model.base(x["instances"], training=False))))
    rated = counts > 0
    weight = rated / rated.sum()
    if layer.weighted:
        heads, means = np.concatenate(heads)[:, rated], np.concatenate(means)

        def cost(logits):
            share = softmax(logits)
            error = (heads @ share - means) / layer.unit
            slope = 2 * heads.T @ error / layer.unit / len(means)
            return np.mean(error**2), share * (slope - share @ slope)

        weight[rated] = softmax(minimize(cost, np.zeros(rated.sum()), jac=True, method="L-BFGS-B").x)
    layer.weight.assign(weight)
    return history


register_recipe(RatingDoctors, fit)
