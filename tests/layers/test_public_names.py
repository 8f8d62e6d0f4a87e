"""What `dir` of a layer shows beyond Keras' names: what users call, and what authors of layers override."""

import inspect
from dataclasses import FrozenInstanceError, fields, replace

import keras
import pytest

from crowdzoo import layers
from crowdzoo.layers import ConfusionMatrices, CrowdLayer, CrowdsourcedLayer, DeepEM, LayerTraits

OF_EVERY_LAYER = (
    "annotator_confusions check_probabilities check_training default_loss log_confusions log_joint num_classes "
    "num_majority_epochs rows_of traits truth with_labels"
)
# a name that is removed or renamed here needs a deprecation first, see CONTRIBUTING.md
OF_ONE_LAYER = {
    "CRF": "decode log_likelihood",
    "CoNAL": "common_confusion common_shares",
    "ConfusionMatrices": "set_confusions",
    "CrossFittedEM": "set_confusions update",
    "CrowdLayer": "",
    "CrowdsourcedLayer": "anchor_biases annotator_biases annotator_scales",
    "DeepEM": "set_confusions update",
    "DoctorNet": "annotator_weights confusions_on count_labels log_weight",
    "GeoCrowdNet": "set_confusions",
    "LIA": "confusions_of difficulties weigh_penalties",
    "LabelUnit": "",
    "MaxMIG": "set_confusions start_from",
    "PairAnnotators": "biases slopes tie_biases",
    "PairProbabilities": "",
    "PooledConfusions": "annotator_accuracies set_counts",
    "RatingEM": "annotator_biases annotator_precisions annotator_scales start_from update",
    "SpatialConfusions": "set_confusions",
    "Standardization": "adapt adapt_batches",
    "TraceRegularization": "set_confusions",
    "UnionNet": "set_confusions",
    "WAUM": "set_confusions",
}
CLASSES = [name for name in layers.__all__ if inspect.isclass(getattr(layers, name)) and name != "LayerTraits"]


def public_names(layer):
    return {name for name in dir(layer) if name[0] != "_"} - set(dir(keras.layers.Layer))


def test_every_layer_has_a_line_in_the_list():
    assert sorted(CLASSES) == sorted(OF_ONE_LAYER)


@pytest.mark.parametrize("name", CLASSES)
def test_a_layer_shows_the_names_of_the_list(name):
    layer = getattr(layers, name)
    shared = OF_EVERY_LAYER if issubclass(layer, CrowdLayer) else ""
    assert public_names(layer) == {*shared.split(), *OF_ONE_LAYER[name].split()}


def test_the_traits_of_a_class_cannot_be_changed_in_place():
    with pytest.raises(FrozenInstanceError):
        ConfusionMatrices.traits.uses_features = True


def test_every_trait_is_documented():
    described = inspect.getdoc(LayerTraits).split("Attributes:")[1].split("Example:")[0]
    assert [field.name for field in fields(LayerTraits) if f"\n    {field.name}: " not in described] == []


def test_an_argument_changes_the_traits_of_its_layer_only():
    assert ConfusionMatrices(2, confidence=True).traits.extra_training.startswith("annotations count by")
    assert ConfusionMatrices(2).traits is ConfusionMatrices.traits
    assert ConfusionMatrices.traits.extra_training is None
    assert DeepEM(2, confidence=True).traits is DeepEM.traits  # EM says it all
    ratings = CrowdsourcedLayer(2, connection="B", kind="regression", anchor=True).traits
    assert (ratings.extra_training[:13], ratings.why_no_confusions[:12]) == ("the annotator", "a regression")
    free = CrowdsourcedLayer(2, connection="B", kind="regression").traits
    assert free == replace(ratings, extra_training=None)
    assert CrowdsourcedLayer(2).traits == replace(free, why_no_confusions=None)
