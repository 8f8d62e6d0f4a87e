"""CRFMA: a conditional random field of which one annotator per sentence tells the truth."""

import keras
import numpy as np
from keras import ops

from crowdzoo import register
from crowdzoo.layers import CRF, CrowdLayer, LayerTraits
from crowdzoo.training import register_recipe

SMALLEST = 1e-30


@keras.saving.register_keras_serializable(package="crowd_baselines")
class ResponsibleLikelihood(keras.losses.Loss):
    """Minus the log-likelihoods of the annotators' tags, weighted by who is responsible, both [B, 1, R]."""

    def call(self, y_true, y_pred):
        """A number per sentence."""
        return -ops.sum(ops.cast(y_true, y_pred.dtype) * y_pred, axis=(1, 2))


@register("layer", "crf-ma")
@keras.saving.register_keras_serializable(package="crowd_baselines")
class CRFMA(CrowdLayer):
    """A CRF whose sequence one unknown annotator of each sentence gives; the others' tags are random and uniform.

    With `p(y | x)` the probability of a sequence by the CRF, on a base without a softmax:

    - E-step: annotator r is responsible for sentence i with probability `g_ir ~ pi_r p(y_ir | x_i)`, over the
      annotators of the sentence;
    - M-step: the base and the CRF descend on `-sum_ir g_ir log p(y_ir | x_i)` for an epoch; `pi_r` is the mean of
      `g_ir` over the annotator's sentences.

    In the first epochs all annotators of a sentence are equally responsible. Padding is where all of a token's inputs
    are 0: see `masked`.

    Args:
        num_annotators: R.
        num_classes: K, number of tags.
        first_epochs: epochs before the first E-step.
        **kwargs: those of `CrowdLayer`.

    Source:
        F. Rodrigues, F. Pereira, B. Ribeiro: Sequence Labeling with Multiple Annotators. Machine Learning 95, 2014.
        There the CRF has features by hand and is trained to the end in each M-step.

    Needs:
        Sentences whose annotators tagged every token.
    """

    traits = LayerTraits(
        kinds=("sequence",),
        needs_hidden_layer=True,
        extra_training="EM estimates who is responsible for a sentence between the epochs",
        why_no_confusions="an annotator is responsible for a sentence or not; see `reliability`",
    )

    def __init__(self, num_annotators, num_classes, first_epochs=5, **kwargs):
        super().__init__(num_annotators, **kwargs)
        self._num_classes, self.first_epochs = num_classes, first_epochs
        self.scores = keras.layers.Dense(num_classes, dtype="float32", name="scores")
        self.crf = CRF(name="crf")

    def build(self, inputs_shape):
        """Makes the scores of the tags, the CRF, and `reliability` [R], of which the E-step is in charge."""
        self.scores.build(inputs_shape)
        self.crf.build((*inputs_shape[:-1], self._num_classes))
        self.reliability = self.add_weight(
            shape=(self.num_annotators,), initializer="ones", name="reliability", trainable=False
        )
        super().build(inputs_shape)

    def truth(self, bottleneck):
        """Marginals of the CRF, `[B, T, K]`."""
        return self.crf(self.scores(bottleneck), mask=ops.any(ops.not_equal(bottleneck, 0), axis=-1))

    def call(self, inputs, annotators=None, training=None):
        """Log-probabilities of tags `[B, T, M, K]`: the CRF's with the annotator's reliability, uniform otherwise."""
        self.check_training(training)
        share = self.reliability + 0
        if annotators is not None:
            share = ops.take(share, ops.maximum(ops.cast(annotators, "int32"), 0), axis=0)[:, None]
        share = ops.cast(share, "float32")[..., None]
        mixed = share * self.truth(inputs)[:, :, None] + (1 - share) / self._num_classes
        return ops.log(ops.maximum(mixed, SMALLEST))

    def with_labels(self, inputs, annotators, labels, features=None):
        """Log-likelihood of each annotator's tags by the CRF, `[B, 1, R]`; 0 for those who gave none.

        The axis in the middle is that of the tokens, to which targets are cut.
        """
        tags = ops.reshape(ops.transpose(labels, (0, 2, 1)), (-1, labels.shape[1] or ops.shape(labels)[1]))
        scores = ops.repeat(self.scores(inputs), ops.shape(labels)[2], axis=0)
        logs = self.crf.log_likelihood(scores, ops.maximum(tags, 0), mask=tags >= 0)
        people = ops.one_hot(ops.cast(annotators, "int32"), self.num_annotators, dtype=logs.dtype)
        return ops.einsum("bm,bmr->br", ops.reshape(logs, ops.shape(annotators)), people)[:, None]

    def default_loss(self):
        """That of the M-step."""
        return ResponsibleLikelihood()

    def get_config(self):
        """The arguments; `CrowdLayer` adds its own."""
        return {**super().get_config(), "num_classes": self._num_classes, "first_epochs": self.first_epochs}


def masked(base):
    """A base whose outputs are 0 where the input "words" is 0, so that `CRFMA` knows where a sentence ends."""
    there = ops.cast(ops.not_equal(base.input["words"], 0), base.output.dtype)
    return keras.Model(base.input, base.output * there[..., None])


def fit(model, data, order, *, callbacks=None, **kwargs):
    """Trains a compiled `CrowdModel` with a `CRFMA`: the recipe."""
    layer, gave = model.crowd, np.zeros((data.num_tasks, model.crowd.num_annotators), bool)
    inputs = ("annotators", "labels", "tasks")
    for x, _ in data.batches(256, 0, shuffle=False, inputs=inputs):
        codes = np.where((np.asarray(x["labels"]) >= 0).any(axis=1), x["annotators"], -1)
        rows, places = np.nonzero(codes >= 0)
        gave[np.asarray(x["tasks"])[rows], codes[rows, places]] = True
    responsible = (gave / np.maximum(gave.sum(axis=1, keepdims=True), 1)).astype("float32")

    def e_step(epoch, logs=None):
        if epoch < layer.first_epochs:
            return
        joint = np.full(gave.shape, -np.inf)
        for x, _ in data.batches(256, 0, shuffle=False, inputs=inputs):
            joint[np.asarray(x["tasks"])] = np.asarray(model.predict_on_batch(x))[: len(x["tasks"]), 0]
        joint = np.where(gave, joint + np.log(np.maximum(np.asarray(layer.reliability), SMALLEST)), -np.inf)
        odds = np.exp(joint - np.where(gave.any(axis=1), joint.max(axis=1), 0)[:, None])
        responsible[:] = odds / np.maximum(odds.sum(axis=1, keepdims=True), SMALLEST)
        layer.reliability.assign(responsible.sum(axis=0) / np.maximum(gave.sum(axis=0), 1))

    renew = keras.callbacks.LambdaCallback(on_epoch_begin=e_step)
    batches = data.batches(**order, inputs=("annotators", "labels"), targets=responsible[:, None])
    return model.fit_batches(batches, callbacks=[renew, *keras.tree.flatten(callbacks or [])], **kwargs)


register_recipe(CRFMA, fit)
