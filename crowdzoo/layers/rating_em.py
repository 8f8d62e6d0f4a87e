"""Deep EM for ratings: the network learns from posterior means, biases and precisions have a closed form."""

from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops
from scipy.special import gammaln

from crowdzoo.backend import Config, Tensor
from crowdzoo.checks.constraints import CENTER, FLAG, LEVEL, UNIT, Number, checked
from crowdzoo.layers.crowd_layer import CrowdLayer, LayerTraits
from crowdzoo.layers.ranges import EPOCHS, PHASE, PSEUDO_COUNT
from crowdzoo.losses import RatingSquaredError

# Lower bound of variances, in squared units of the ratings; else a network that fits exactly would be trusted for ever
SMALLEST_VARIANCE = 1e-4
BIAS_VARIANCE = 0.1  # initial variance of the biases
WORTH = 0.1  # weight, in ratings, of the prior on mean and precision of unrelated ratings
RESOLUTION = 1e-3  # resolution of ratings, as a standard deviation
MOST_ODDS = 30.0  # largest absolute log-odds that an annotator's ratings follow the truth


class Ratings(NamedTuple):
    """All ratings, in columns.

    Attributes:
        tasks: int `[A]`.
        annotators: int `[A]`.
        ratings: `[A]`, in the labels' unit.
        weights: how often each rating counts in the M-step, `[A]`, one weight per task; None: once.
    """

    tasks: np.ndarray
    annotators: np.ndarray
    ratings: np.ndarray
    weights: np.ndarray | None = None


@keras.saving.register_keras_serializable(package="crowdzoo")
class RatingEM(CrowdLayer):
    """A bias and a precision per annotator, by expectation maximisation with a network inside.

    A rating of task i by annotator r is `y_ir ~ N(z_i + b_r, 1 / lambda_r)`, the true rating `z_i ~ N(f(x_i), 1 / tau)`
    with f the base, the bias `b_r ~ N(0, 1 / omega)`, and `lambda_r` has a Gamma prior of shape `prior` whose
    mean variance is that of all errors.

    With prior probability `unrelated`, an annotator's ratings do not depend on the truth: then
    `y_ir ~ N(c_r, 1 / kappa_r)`, with a prior on c and kappa that is worth a tenth of a rating. Without this, an
    annotator who always gives the same rating would be the most precise, and the network would learn that rating.
    Ratings are weighted by `w_r = p_r lambda_r`, with p_r the probability that r's ratings follow the truth, estimated
    in the M-step. Where it is 0, the bias is the mean error.

    | step | what happens |
    |------|--------------|
    | first | `start_rounds` rounds of the same with the ratings' mean in place of the network |
    | E | `z_i ~ N(m_i, v_i)`, `1 / v_i = tau + sum_r w_r`, `m_i = v_i (tau f_i + sum_r w_r (y_ir - b_r))` |
    | M | biases (drawn to zero by omega), precisions, tau and omega, in closed form; f descends on `(m_i - f(x_i))^2` |

    There is one E-step every `epochs_per_round` epochs. Biases and precisions are not trained by gradient descent, and
    the cost grows with the number of annotations.

    Adding a constant to all z and subtracting it from all b changes no rating, so biases are anchored in every round:
    they sum to zero over all annotations. With `level="following"` each annotation is weighted by the probability that
    it follows the truth.

    Args:
        num_annotators: R, number of annotators.
        bias: whether annotators have biases; False fixes them at zero.
        prior: shape of the Gamma prior on precisions, in halves of ratings, above 0.
        epochs_per_round: epochs between two E-steps.
        start_rounds: rounds before the first epoch, at least 1.
        center: mean of the ratings, in their unit; see `crowdzoo.models.rating_unit`.
        unit: standard deviation of the ratings, above 0.
        unrelated: prior probability that an annotator's ratings do not depend on the truth, from 0 to 0.5. With 0 all
            follow the truth.
        level: the ratings whose biases sum to zero: "all", or "following", those that follow the truth.
        **kwargs: arguments of `keras.layers.Layer` (`name`, `dtype`).

    Call arguments:
        inputs: estimates of the true rating `[B, 1]`, in the labels' unit.
        annotators: int `[B, M]`, annotator codes, -1 for padding; None means all annotators.

    Returns:
        Expected rating of each annotator, `[B, M]` (`[B, R]`), in the labels' unit.

    Raises:
        ValueError: invalid values, or an input of the wrong shape.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.layers import RatingEM
        >>> from crowdzoo.models import CrowdModel, FeatureRegressor
        >>> base = FeatureRegressor(num_features=20, center=3.0, unit=1.2)  # mean and deviation of the ratings
        >>> model = CrowdModel(base, RatingEM(num_annotators=5, center=3.0, unit=1.2))
        >>> x, annotators = np.zeros((4, 20), "float32"), np.array([[0, 2]] * 4)  # 4 tasks, labelled by 0 and 2
        >>> tuple(model({"instances": x, "annotators": annotators}).shape)
        (4, 2)

    Source:
        F. Rodrigues, F. Pereira: Deep Learning from Crowds. AAAI 2018, section 3 (EM for regression, there with
        precisions only), after V. Raykar et al.: Learning from Crowds. JMLR 2010, section 4. Biases, priors and the
        anchor are this project's.

    Needs:
        Instances and annotators with several ratings each.
    """

    traits = LayerTraits(
        kinds=("regression",),
        extra_training="EM estimates the truth, biases and precisions between the epochs",
        why_no_confusions="ratings have no confusion matrices; use annotator_biases() and annotator_precisions()",
    )

    @checked(
        bias=FLAG,
        prior=PSEUDO_COUNT,
        unrelated=Number(0.0, 0.5),
        level=LEVEL,
        epochs_per_round=EPOCHS,
        start_rounds=PHASE,
        center=CENTER,
        unit=UNIT,
    )
    def __init__(
        self,
        num_annotators: int,
        bias: bool = True,
        prior: float = 1.0,
        epochs_per_round: int = 1,
        start_rounds: int = 30,
        center: float = 0.0,
        unit: float = 1.0,
        unrelated: float = 0.1,
        level: str = "all",
        **kwargs: Any,
    ):
        super().__init__(num_annotators, **kwargs)
        self.has_bias = bias
        self.prior = prior
        self.unrelated = float(unrelated)
        self.level = level
        self.epochs_per_round = epochs_per_round
        self.start_rounds = start_rounds
        self.center, self.unit = float(center), float(unit)
        self.bias: Any = None

    def build(self, inputs_shape: tuple[int | None, ...]) -> None:
        """Creates the annotators' parameters, in units of the ratings' deviation; none is trained by gradients.

        Args:
            inputs_shape: `[B, 1]`.
        """
        self._num_classes = self._check_shape(inputs_shape)
        self.bias = self._weight("bias", (self.num_annotators,), trainable=False)
        self.precision = self._weight("precision", (self.num_annotators,), "ones", trainable=False)
        # 1 / tau: variance of the truth around the network's estimate; 1 / omega: variance of biases around zero
        self.variance = self._weight("variance", (), "ones", trainable=False)
        start = keras.initializers.Constant(BIAS_VARIANCE)
        self.bias_variance = self._weight("bias_variance", (), start, trainable=False)
        # last, because files of earlier models have all others
        self.follows = self._weight("follows", (self.num_annotators,), "ones", trainable=False)
        super().build(inputs_shape)

    # === Answers ===

    def call(self, inputs: Tensor, annotators: Tensor | None = None, training: bool = False) -> Tensor:
        """Expected ratings; see the class."""
        self._check_call(inputs, training)
        return self._cast(inputs) + self.unit * self.rows_of(self.bias, annotators)

    def annotator_biases(self) -> np.ndarray:
        """Anchored bias of every annotator, in the labels' unit, float64 `[R]`; zero before training.

        Raises:
            ValueError: the layer has no weights yet.
        """
        self._check_built()
        return ops.convert_to_numpy(self.bias).astype("float64") * self.unit

    def annotator_scales(self) -> np.ndarray:
        """Ones, float64 `[R]`: this model has no factors."""
        return np.ones(self.num_annotators)

    def annotator_precisions(self) -> np.ndarray:
        """Inverse variance of each annotator's errors around the bias, in one over the labels' unit squared, `[R]`.

        Raises:
            ValueError: the layer has no weights yet.
        """
        self._check_built()
        return ops.convert_to_numpy(self.precision).astype("float64") / self.unit**2

    # === How a model is trained ===

    def default_loss(self) -> keras.losses.Loss:
        """The loss of the base in the M-step; in validation the squared error of the answers."""
        return RatingSquaredError(self.unit)

    def start_from(self, num_tasks: int, columns: Ratings) -> np.ndarray:
        """Runs rounds with the mean corrected rating of each task in place of the network.

        Args:
            num_tasks: N.
            columns: the ratings.

        Returns:
            The first targets of the network, float32 `[N, 1]`, in the labels' unit.
        """
        self.precision.assign(np.ones(self.num_annotators))
        self.variance.assign(1.0)
        self.bias_variance.assign(BIAS_VARIANCE)
        self.bias.assign(np.zeros(self.num_annotators))
        self.follows.assign(np.full(self.num_annotators, 1 - self.unrelated))
        rated = np.zeros(num_tasks)
        rated[columns.tasks] = 1 if columns.weights is None else columns.weights
        estimates = np.full(num_tasks, self.center)
        for _ in range(self.start_rounds):
            targets, _ = self.update(estimates, columns)
            estimates[:] = np.average(targets[:, 0].astype("float64"), weights=rated)
        return targets

    def update(self, estimates: np.ndarray, columns: Ratings) -> tuple[np.ndarray, float]:
        """Runs the E-step, and the M-step of the annotators.

        Args:
            estimates: estimates of the network, `[N]`, in the labels' unit.
            columns: the ratings.

        Returns:
            The network's next targets, float32 `[N, 1]`, in the labels' unit; and the log-likelihood of the ratings
            before the M-step, in nats of standardised ratings, expected over whether each follows the truth.
        """
        tasks, annotators, ratings, weights = columns
        estimates, ratings = self._standardize(estimates), self._standardize(ratings)
        counts = np.ones(len(tasks)) if weights is None else weights
        number = np.bincount(annotators, counts, self.num_annotators)
        bias, precision, spread_of_truth, follows = (
            ops.convert_to_numpy(weight).astype("float64")
            for weight in (self.bias, self.precision, self.variance, self.follows)
        )
        variance = float(spread_of_truth)
        means, variances, likelihood = posterior(
            estimates, variance, tasks, annotators, ratings, bias, precision, follows
        )
        unrelated = _unrelated_log_evidence(annotators, ratings, self.num_annotators, counts)
        likelihood += float((1 - follows) @ unrelated)
        errors = ratings - means[tasks]
        spread = np.zeros(self.num_annotators)
        divergence = np.zeros(self.num_annotators)
        if self.has_bias:
            spread = 1 / (1 / float(ops.convert_to_numpy(self.bias_variance)) + number * precision)
            bias = precision * np.bincount(annotators, counts * errors, self.num_annotators) * spread
            among = float(np.average(np.square(bias) + spread, weights=follows * (number > 0)))
            self.bias_variance.assign(max(among, SMALLEST_VARIANCE))
            ratio = spread / max(among, SMALLEST_VARIANCE)
            divergence = (np.square(bias) / max(among, SMALLEST_VARIANCE) + ratio - 1 - np.log(ratio)) / 2
            above = np.bincount(annotators, counts * errors, self.num_annotators) / (number + WORTH)
            errors = errors - bias[annotators]
        squares = counts * (np.square(errors) + variances[tasks])
        squares = np.bincount(annotators, squares, self.num_annotators) + number * spread
        pooled = max(float(follows @ squares) / float(follows @ number), SMALLEST_VARIANCE)
        shapes, rates = self.prior + number / 2, self.prior * pooled + squares / 2
        precision = shapes / rates
        if self.unrelated > 0:
            evidence = gammaln(shapes) - gammaln(self.prior) + self.prior * np.log(self.prior * pooled)
            evidence = evidence - shapes * np.log(rates) - number / 2 * np.log(2 * np.pi) - divergence
            odds = np.log(1 / self.unrelated - 1) + evidence - unrelated
            follows = 1 / (1 + np.exp(-np.clip(odds, -MOST_ODDS, MOST_ODDS)))
            self.follows.assign(follows)
        if self.has_bias:
            # the bias of annotators who do not follow the truth is their mean error
            bias = follows * bias + (1 - follows) * above
            anchor = number if self.level == "all" else follows * number
            common = float(bias @ anchor / anchor.sum())
            bias, means = bias - common, means + common
        rated = np.zeros(len(means))
        rated[tasks] = counts
        variance = float(np.average(np.square(means - estimates) + variances, weights=rated))
        self.bias.assign(bias)
        self.precision.assign(precision)
        self.variance.assign(max(variance, SMALLEST_VARIANCE))
        return (self.center + self.unit * means[:, None]).astype("float32"), likelihood

    def _standardize(self, values: np.ndarray) -> np.ndarray:
        return (np.asarray(values, dtype="float64") - self.center) / self.unit

    # === Keras and helpers ===

    def get_config(self) -> Config:
        """Every argument of the constructor."""
        return {**super().get_config(), "bias": self.has_bias}


def posterior(
    estimates: np.ndarray,
    variance: float,
    tasks: np.ndarray,
    annotators: np.ndarray,
    ratings: np.ndarray,
    bias: np.ndarray,
    precision: np.ndarray,
    follows: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, float]:
    """Posterior of the true ratings given estimates and ratings, all in one unit.

    Args:
        estimates: `[N]`, prior mean of each truth.
        variance: variance of the truths around the estimates.
        tasks: int `[A]`.
        annotators: int `[A]`.
        ratings: `[A]`.
        bias: `[R]`.
        precision: `[R]`.
        follows: `[R]`, probability that the annotator's ratings follow the truth, which weights them.

    Returns:
        Means `[N]`, variances `[N]`, and the log-likelihood of all ratings in nats,
        `sum_i log N(y_i; f_i + b, diag(1 / lambda) + variance)` where all follow the truth.
    """
    share = follows[annotators]
    weights = share * precision[annotators]
    errors = ratings - estimates[tasks] - bias[annotators]
    total = 1 / variance + np.bincount(tasks, weights, len(estimates))
    pull = np.bincount(tasks, weights * errors, len(estimates))
    logs = np.log(precision[annotators] / (2 * np.pi))
    likelihood = (share * logs - weights * np.square(errors)).sum()
    # a task without ratings adds log 1 and 0
    likelihood += (-np.log(variance * total) + np.square(pull) / total).sum()
    return estimates + pull / total, 1 / total, float(likelihood / 2)


def _unrelated_log_evidence(
    annotators: np.ndarray, ratings: np.ndarray, num_annotators: int, counts: np.ndarray
) -> np.ndarray:
    """Log-probability of each annotator's standardised ratings if they do not depend on the truth, nats `[R]`.

    As in `crowdzoo.aggregation.RatingEM`: normal, with a normal-gamma prior of mean 0 and variance 1, integrated out.
    """
    number = np.bincount(annotators, counts, num_annotators)
    sums = np.bincount(annotators, counts * ratings, num_annotators)
    squares = np.bincount(annotators, counts * (np.square(ratings) + RESOLUTION**2), num_annotators)
    shapes = WORTH + number / 2
    rates = WORTH + (squares - np.square(sums) / (WORTH + number)) / 2
    log_evidence = gammaln(shapes) - gammaln(WORTH) + WORTH * np.log(WORTH) - shapes * np.log(rates)
    return log_evidence + (np.log(WORTH / (WORTH + number)) - number * np.log(2 * np.pi)) / 2
