"""What is true of all layers of a class: what they take and return, and how they are trained."""

from dataclasses import dataclass


@dataclass(frozen=True)
class LayerTraits:
    """Facts about a `CrowdLayer` that training, export and comparison look up; its class attribute `traits`.

    A layer of your own sets those that differ from the defaults; a subclass of another layer changes its parent's by
    `dataclasses.replace(Parent.traits, ...)`.

    Attributes:
        kinds: kinds of labels that the layer is for; the first is the default.
        uses_features: whether `call` and `log_confusions` take features of the instances `[B, D]` in addition to the
            class probabilities.
        needs_hidden_layer: whether the layer takes the last hidden layer's output `[B, D]` in place of class
            probabilities.
        returns_logits: whether answers are logits, whose probabilities need not sum to one; other layers return
            log-probabilities.
        starts_from_votes: whether the base may be trained on the votes first, so that the layer takes
            `majority_epochs`.
        accepts_sample_weight: whether tasks can be weighted, `CrowdModel.fit(..., sample_weight=...)`.
        accepts_confidence: whether training can count annotations by their confidence (`confidence=True`).
        unseen_are_average: whether an annotator without training labels answers like the average: weights other than
            the common ones are zero at first.
        initial_accuracy: P(right label) that annotators start with by default (benchmarks/reproduce/starts.py).
        extra_training: what training does beyond gradient descent on the layer's answers, as a clause for messages;
            None: nothing that matters.
        why_no_confusions: why there are no confusion matrices, and what to use instead, for messages; None: there are.

    Example:
        >>> from dataclasses import replace
        >>> from crowdzoo.layers import ConfusionMatrices, LayerTraits
        >>> LayerTraits(kinds=("regression",), why_no_confusions="ratings have no confusion matrices").returns_logits
        False
        >>> replace(ConfusionMatrices.traits, kinds=("classification",)).starts_from_votes
        True
    """

    kinds: tuple[str, ...] = ("classification",)
    uses_features: bool = False
    needs_hidden_layer: bool = False
    returns_logits: bool = False
    starts_from_votes: bool = False
    accepts_sample_weight: bool = True
    accepts_confidence: bool = False
    unseen_are_average: bool = False
    initial_accuracy: float = 0.5
    extra_training: str | None = None
    why_no_confusions: str | None = None
