import re

import keras
import numpy as np
import pytest

from crowdzoo import layers, models
from crowdzoo.commands import main as cli
from crowdzoo.data.annotations import Annotations
from crowdzoo.datasets import generated_ner
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.layers import ConfusionMatrices, CrowdsourcedLayer, DeepEM, LayerTraits
from crowdzoo.metrics import lost_classes, span_scores
from crowdzoo.models import CrowdModel, SequenceTagger, TaggerSettings, TrainingSettings, train
from crowdzoo.training.faults import NotLearnedWarning, check_weights, warn_if_classes_are_lost
from crowdzoo.training.methods import METHODS, create_crowd_layer, crowd_layer_class, hyperparameters_of

QUICK = {"epochs": 1, "batch_size": 8, "learning_rate": 1e-9, "dropout": 0.0}
X = np.zeros((8, 2), "float32")  # the same features for all: one answer for all


def test_settings_that_are_none_and_a_base_of_keras_are_told_what_to_write():
    with pytest.raises(ConfigError, match=r"an object, such as TrainingSettings\(epochs=10\)"):
        train({"epochs": 1}, X)
    with pytest.raises(ConfigError, match=r"CrowdClassifier\(base=model\)\.fit\(x, annotations\)"):
        train(TrainingSettings(), X, base=keras.Sequential())


@pytest.mark.slow
@pytest.mark.usefixtures("eager")
def test_a_classifier_that_knows_one_class_says_so():
    annotations = Annotations.from_dense([[0], [1], [0], [1], [0], [1], [1], [0]])
    with pytest.warns(NotLearnedWarning, match=r"class '[01]' for all 8 .*50.0% .* smaller batch_size"):
        train(TrainingSettings(hidden=(2,), **QUICK), X, annotations=annotations)


@pytest.mark.slow
@pytest.mark.usefixtures("eager")
def test_regressors_that_know_one_value_say_so():
    annotations = Annotations.from_dense(np.arange(8.0)[:, None], kind="regression")
    with pytest.warns(NotLearnedWarning, match="nearly one value"):
        train(TrainingSettings(kind="regression", hidden=(2,), **QUICK), X, annotations=annotations)


@pytest.mark.slow
@pytest.mark.usefixtures("eager")
def test_a_tagger_that_knows_one_tag_says_so():
    pytest.importorskip("tensorflow")
    tags = Annotations(
        "sequence", np.arange(8), np.zeros(8, int), np.array([0, 1] * 4), np.arange(8), np.arange(1),
        np.array(["O", "B-PER"]), positions=np.zeros(8, int),
    )  # fmt: skip
    settings = TaggerSettings("aggregated", embedding=2, filters=2, units=2, **QUICK)
    shares = [np.array([[1.0, 0]]), np.array([[0.0, 1]])] * 4  # sentences of one and the same word
    with pytest.warns(NotLearnedWarning, match=r"class '(O|B-PER)' for all 8 training tokens"):
        models.train_tagger(settings, [["x"]] * 8, tags, tag_distribution=shares)


def without_a_class(crowd, bias=-50.0):
    """A model that does not learn, and gives the third of three classes to nothing if its bias is low."""
    base = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3, "softmax")])
    base.set_weights([np.array([[3.0, -3, 0], [0, 0, 3]]), np.array([0, 0, bias])])
    model = CrowdModel(base, crowd)
    model.compile(keras.optimizers.SGD(0.0))
    return model


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize(
    ("layer", "advice"),
    [
        (CrowdsourcedLayer, r"CrowdsourcedLayer\(\.\.\., majority_epochs=5\).*--set majority_epochs=5.*method: {maj"),
        pytest.param(DeepEM, "smaller batch_size, more epochs", marks=pytest.mark.slow),
    ],
)
def test_a_model_that_never_gives_a_class_says_so_and_what_to_write(layer, advice):
    x = np.random.default_rng(0).normal(size=(60, 2))
    annotations = Annotations.from_dense(np.arange(60)[:, None] % 3, classes=["ant", "bee", "cat"])
    with pytest.warns(
        NotLearnedWarning, match=rf"predicts 'cat' for none of the 60 .* 33\.3% of their votes .*{advice}"
    ):
        without_a_class(layer(1)).fit(x, annotations, epochs=5, batch_size=60, tasks=np.arange(60), verbose=0)
    if layer is CrowdsourcedLayer:
        without_a_class(layer(1)).fit(x, annotations, epochs=4, batch_size=60, verbose=0)  # a beginner
        without_a_class(layer(1), bias=0.0).fit(x, annotations, epochs=5, batch_size=60, verbose=0)


def test_the_advice_of_a_lost_class_is_a_setting_of_every_method_that_it_names():
    for method in METHODS:
        advised = getattr(crowd_layer_class(method), "traits", LayerTraits()).starts_from_votes
        assert ("majority_epochs" in hyperparameters_of(method)) == advised
        if advised:
            assert create_crowd_layer(method, 2, 3, {"majority_epochs": 5}).num_majority_epochs == 5
    with pytest.raises(ConfigError, match=r"does not take majority_epochs, as it does not start from votes\. Leave"):
        DeepEM(3, majority_epochs=5)


def advised(method, pattern):
    """What the warning of a lost class says to write."""
    layer = create_crowd_layer(method, 1, 3)
    layer.build((None, 3))
    with pytest.warns(NotLearnedWarning) as caught:
        warn_if_classes_are_lost(np.arange(60) % 2, np.arange(60)[:, None] % 3, layer)
    return re.search(pattern, str(caught[0].message))[1]


@pytest.mark.parametrize(
    ("layer", "epochs", "advice"),
    [
        (ConfusionMatrices, 0, r"votes first: ConfusionMatrices\(\.\.\., majority_epochs=5\).*Or train with a smaller"),
        (ConfusionMatrices, None, r"votes for longer: ConfusionMatrices\(\.\.\., majority_epochs=20\); .*=20; .*: 20}"),
        (DeepEM, None, "nothing else. Train with a smaller batch_size"),
    ],
)
def test_a_tagger_that_says_one_tag_is_told_to_begin_with_the_votes(layer, epochs, advice):
    crowd = layer(1, kind="sequence", majority_epochs=epochs)
    crowd.build((None, None, 3))
    votes = np.arange(60)[:, None] % 3
    with pytest.warns(NotLearnedWarning, match=rf"class 'O' for all 60 training tokens.* 66\.7% .*{advice}"):
        warn_if_classes_are_lost(np.zeros(60, int), votes, crowd, ["O", "B-PER", "I-PER"])


@pytest.mark.usefixtures("eager")
def test_fit_of_a_tagger_that_says_one_tag_warns():
    base = keras.Sequential([keras.Input((None, 2)), keras.layers.Dense(3, "softmax")])
    base.set_weights([np.zeros((2, 3)), np.array([5.0, 0, 0])])
    model = CrowdModel(base, ConfusionMatrices(1, kind="sequence"))
    model.compile(keras.optimizers.SGD(0.0))
    said = np.arange(24).reshape(4, 6, 1) % 3
    with pytest.warns(NotLearnedWarning, match=r"class '0' for all 24 training tokens.*majority_epochs=20"):
        model.fit(np.zeros((4, 6, 2)), said, epochs=5, verbose=0)


@pytest.mark.slow
def test_a_tagger_learns_with_confusion_matrices_and_without_the_votes_it_says_how(recwarn):
    pytest.importorskip("tensorflow")
    crowd = generated_ner(300)
    encoder = models.TokenEncoder.fit(crowd.tokens)
    x, annotators = encoder(crowd.tokens), crowd.annotations.num_annotators

    def f1(**arguments):
        keras.utils.set_random_seed(0)
        base = SequenceTagger(**encoder.sizes, num_classes=len(crowd.classes), embedding=32, filters=64, units=32)
        model = CrowdModel(base, ConfusionMatrices(annotators, kind="sequence", **arguments))
        model.compile(keras.optimizers.Adam(0.01))
        model.fit(x, crowd.annotations, tasks=crowd.annotations.tasks, epochs=25, verbose=0)
        return span_scores(crowd.gold_tags(), [crowd.tag_set.tags(codes) for codes in base.tag(x)]).f1

    with pytest.warns(NotLearnedWarning, match="one class 'O'") as caught:
        assert f1(majority_epochs=0) < 0.1
    advised = int(re.search(r"majority_epochs=(\d+)", str(caught[0].message))[1])
    assert f1(majority_epochs=advised) > 0.9
    recwarn.clear()
    assert f1() > 0.9
    assert not [each for each in recwarn if each.category is NotLearnedWarning]


@pytest.fixture
def phases(monkeypatch):
    """Epochs and loss of each phase of the trainings that follow."""
    found, fit = [], CrowdModel.fit_batches

    def fit_batches(model, data, **given):
        found.append((given["epochs"], type(model.loss).__name__))
        return fit(model, data, **given)

    monkeypatch.setattr(CrowdModel, "fit_batches", fit_batches)
    return found


VOTES_FIRST = [(5, "MaskedCrossentropy"), (1, "MaskedCrowdCrossentropy")]


@pytest.mark.slow
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("method", [pytest.param("ccem", marks=pytest.mark.slow), "crowdsourced-layer"])
def test_the_line_that_a_lost_class_advises_in_python_trains_on_the_votes_first(method, phases):
    line = advised(method, r"first: (\w+\(\.\.\., .*?\));").replace("...", "1")
    model = without_a_class(eval(line, {name: getattr(layers, name) for name in layers.__all__}), bias=0.0)
    model.fit(np.zeros((6, 2)), np.arange(6)[:, None] % 3, epochs=1, verbose=0)
    assert phases == VOTES_FIRST


@pytest.mark.slow
@pytest.mark.usefixtures("eager")
def test_the_option_that_a_lost_class_advises_trains_on_the_votes_first(phases, tmp_path):
    pytest.importorskip("tensorflow")
    option = advised("ccem", "with crowdzoo train (.*?);").split()
    (tmp_path / "a.csv").write_text("task,annotator,label\n" + "".join(f"{n},a,{n % 3}\n" for n in range(6)))
    (tmp_path / "i.csv").write_text("task,x\n" + "".join(f"{n},{n % 3}\n" for n in range(6)))
    words = ["train", tmp_path / "a.csv", tmp_path / "i.csv", "--out", tmp_path / "m.keras", "--epochs", 1, *option]
    assert cli.main([str(word) for word in words]) == 0
    assert phases == VOTES_FIRST
    assert keras.saving.load_model(tmp_path / "m.keras").crowd.majority_epochs == 5


def test_a_fair_share_of_the_votes_is_a_twentieth_or_half_of_an_equal_share():
    votes = np.repeat([0, 1, 2, -1], [90, 6, 4, 50])
    assert lost_classes(np.zeros(100, int), votes, 3).tolist() == [1]
    assert lost_classes(np.zeros(50, int), votes, 3).tolist() == []  # three votes in fifty may be chance
    assert lost_classes(np.array([0, 1] * 50), votes, 3).tolist() == []
    assert lost_classes(np.zeros(200, int), votes, 20).tolist() == [1, 2]


@pytest.mark.usefixtures("eager")
def test_training_that_reaches_nan_stops():
    class Spoil(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 1:
                weight = self.model.base.trainable_weights[-1]  # the last bias: a ReLU may hide NaN
                weight.assign(np.full(weight.shape, np.nan))

    rng = np.random.default_rng(0)
    annotations = Annotations.from_dense(rng.normal(size=(8, 1)), kind="regression")
    settings = TrainingSettings(kind="regression", hidden=(2,), epochs=9, batch_size=4, dropout=0.0)
    with pytest.raises(DataError, match=r"the loss of epoch 2 is nan\. Lower learning_rate"):
        train(settings, rng.normal(size=(8, 2)), annotations=annotations, callbacks=[Spoil()])


@pytest.mark.parametrize("form", ["array", "annotations", "masks"])
def test_instances_that_are_no_numbers_are_refused_unless_the_base_makes_numbers_of_them(form):
    y = np.zeros((4, 2, 2, 1) if form == "masks" else (4, 1), int)
    x = np.zeros((4, 2, 2, 1) if form == "masks" else (4, 2), "float32")
    x[3] = np.nan
    head = keras.layers.Conv2D(2, 1, activation="softmax") if form == "masks" else keras.layers.Dense(2, "softmax")
    layer = layers.ConfusionMatrices(1, kind="segmentation" if form == "masks" else "classification")
    model = CrowdModel(keras.Sequential([keras.Input(x.shape[1:]), head]), layer)
    with pytest.raises(DataError, match=r"^x\[3(, 0)+\] is nan, .* drop these rows"):
        model.fit(x, Annotations.from_dense(y) if form == "annotations" else y, epochs=1, verbose=0)
    if form == "array":
        filled = keras.layers.Lambda(keras.ops.nan_to_num)
        model = CrowdModel(keras.Sequential([keras.Input((2,)), filled, head]), layer)
        model.fit(x, y, epochs=1, verbose=0)


def test_weights_that_are_no_numbers_are_named():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3, name="good"), keras.layers.Dense(1, name="bad")])
    check_weights(model)
    kernel = model.get_layer("bad").kernel
    kernel.assign(np.array([[1.0], [np.nan], [np.inf]]))
    with pytest.raises(DataError, match=r"2 of the 3 numbers of weight '.*bad/kernel' are NaN"):
        check_weights(model)
