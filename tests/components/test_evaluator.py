import json
import re

import numpy as np
import pytest
from known_models import write_extra
from slow_cases import quick

from crowdzoo.comparison.intervals import loss_bounds, tasks_needed
from crowdzoo.components.evaluator import _not_inferior, _verdict
from crowdzoo.kinds import kind_of

GOOD, BAD = np.eye(3), -np.eye(3)


@pytest.fixture(scope="module")
def crowd(tmp_path_factory, new_folder, write_crowd):
    """A crowd, aggregated by a vote, in which the truth of six of the ten tasks of eval is not known."""
    folder = write_crowd(new_folder(tmp_path_factory.mktemp("crowd")))
    columns = folder.instances()
    columns["gold"][34:] = [None] * 6
    folder.write_instances(columns)
    folder.examples, _ = folder.aggregate(*folder.generate())
    return folder


@pytest.fixture
def evaluate(crowd, tmp_path, linear_model):
    """A function that evaluates a model of given weights; it returns summary, blessing and its files."""

    def evaluate(weights, card=None, **limits):
        crowd.count += 1

        def write(folder):
            model = linear_model(folder, weights)
            if card:
                write_extra(model, model_card=card)

        base, serving = tmp_path / f"evaluator{crowd.count}", str(tmp_path / "serving")
        return crowd.evaluate(crowd.examples, base, write, **{"serving": serving, **limits})

    evaluate.records = [one for one in crowd.records(crowd.examples, "eval") if one["evaluation_weight"] == [1.0]]
    evaluate.serving = tmp_path / "serving"
    return evaluate


def expected(records, weights):
    logits = np.float32([record["instances"] for record in records]) @ weights
    labels = np.array([record["evaluation_label"][0] for record in records])
    log_probabilities = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return np.mean(logits.argmax(axis=1) == labels), -np.mean(log_probabilities[np.arange(len(labels)), labels])


def test_scores_are_those_of_numpy_on_tasks_with_truth_and_a_first_model_is_blessed(evaluate):
    summary, blessing, files = evaluate(GOOD)
    assert len(evaluate.records) == 4
    accuracy, cross_entropy = expected(evaluate.records, GOOD)
    assert summary["candidate"]["accuracy"] == pytest.approx(accuracy, abs=1e-6)
    assert summary["candidate"]["cross_entropy"] == pytest.approx(cross_entropy, abs=1e-5)
    assert summary["candidate"]["tasks"] == 4
    assert summary["truth"] == "gold"
    assert summary["metric"] == "accuracy"
    assert summary["baseline"] is None
    assert summary["blessed"] is True
    assert files == ["BLESSED"]
    assert blessing.get_int_custom_property("blessed") == 1


@pytest.mark.parametrize(
    ("changed", "said"),
    quick(
        ({"classes": ["y", "x"]}, "the order differs: class 0 is 'y', was 'x'"),
        ({"features": ["b", "a"]}, "the order differs: column 0 is 'b', was 'a'"),
        slow=[({"signatures": {"serving_default": {"inputs": {"instances": [4]}}}}, "inputs have another form")],
    ),
)
def test_a_model_of_other_classes_or_columns_is_pushed_only_where_that_is_asked_for(
    evaluate, linear_model, changed, said
):
    card = {"classes": ["x", "y"], "signatures": {"serving_default": {"inputs": {"instances": [3]}}}}
    write_extra(linear_model(evaluate.serving / "7", GOOD), model_card={**card, "features": ["a", "b"]})
    card = {**card, "features": ["a", "b"], **changed}
    summary, _, files = evaluate(BAD, card=card)
    assert summary["baseline"] is None
    assert files == ["NOT_BLESSED"]
    assert f"not those of version 7, the last one pushed: {said}" in summary["reason"]
    assert summary["reason"].endswith(". To push it anyway, set evaluation.new_signatures: true")
    summary, _, files = evaluate(BAD, card=card, new_signatures=True)
    assert files == ["BLESSED"]
    assert said in summary["reason"]
    summary, _, files = evaluate(BAD, card=card, new_signatures=True, minimum=0.5)
    assert files == ["NOT_BLESSED"]


def test_the_baseline_of_a_serving_folder_in_a_store_is_measured_by_its_copy_and_named_by_its_uri(
    evaluate, linear_model
):
    linear_model(evaluate.serving / "7", GOOD)
    place = f"store:/{evaluate.serving}"
    summary, blessing, files = evaluate(BAD, serving=f"{place}/")
    new, old = (expected(evaluate.records, weights)[0] for weights in (BAD, GOOD))
    assert summary["baseline"]["model"] == f"{place}/7"
    assert summary["baseline"]["accuracy"] == pytest.approx(old, abs=1e-6)
    assert re.match(rf"its accuracy {new:.4f} .* {old:.4f} .* on 4 tasks: a loss of {old - new:.4f}", summary["reason"])
    assert summary["outcome"] == "undecided"
    figures = json.loads(blessing.get_string_custom_property("evaluated"))
    assert (figures["reason"], figures["loss"]) == (summary["reason"], summary["loss"])
    assert blessing.get_string_custom_property("baseline_model") == f"{place}/7"
    assert files == ["NOT_BLESSED"]


@pytest.mark.parametrize(("value", "minimum", "blessed", "said"), [
    (0.4, 0.0, True, "no model was pushed before it"), (0.4, 0.5, False, "0.4000 is below the minimum 0.5"),
])  # fmt: skip
@pytest.mark.parametrize("kind", ["classification", "sequence"])
def test_a_first_model_is_judged_by_the_minimum(kind, value, minimum, blessed, said):
    kind = kind_of(kind)
    found, reason = _verdict({"candidate": {kind.scoring.metric: value}, "baseline": None}, kind, 0.0, minimum)
    assert (found, said in reason) == (blessed, True)


PAIRED = {
    # tasks, right only in the old model, only in the new one, tolerance, undecided: outcome, blessed, what is said
    "issue 42": (533, 20, 12, 0.01, "keep", "undecided", False, r"487.* loss of 0.0150, with 95 % confidence -0.00"),
    "pushed though undecided": (533, 20, 12, 0.01, "push", "undecided", True, r"Pushed by evaluation.undecided$"),
    "too few tasks, no difference": (100, 0, 0, 0.02, "keep", "undecided", False, "about 150 tasks are needed. A"),
    "no difference": (200, 0, 0, 0.02, "keep", "pushed", True, r"loss of 0.0000, .* at most 0.0149, within the tol"),
    "worse": (533, 60, 12, 0.01, "push", "not pushed", False, r"at least 0.06\d\d, above the tolerance 0.01$"),
    "better": (533, 5, 38, 0.0, "keep", "pushed", True, r"a loss of -0.0619, with 95 % confidence at most -0.0"),
    "no tolerance": (533, 9, 9, 0.0, "keep", "undecided", False, r"at the tolerance 0. A higher evaluation.tolerance"),
}  # fmt: skip


@pytest.mark.parametrize("case", PAIRED)
def test_compared_by_labels_a_model_is_pushed_if_its_loss_is_surely_within_the_tolerance(case):
    tasks, lost, won, tolerance, undecided, outcome, blessed, said = PAIRED[case]
    old = np.arange(tasks) >= 38
    new = old.copy()
    new[:won], new[-lost or tasks :] = True, False
    names = {"candidate": {"accuracy": new.mean(), "model": ""}, "baseline": {"accuracy": old.mean(), "model": "x/7"}}
    by_task = {"candidate": new, "baseline": old}
    found, reason = _not_inferior(names, kind_of("classification"), tolerance, by_task, undecided)
    assert (found, names["outcome"]) == (blessed, outcome)
    assert re.search(said.replace("487", f"{487 / 533:.4f} against the {495 / 533:.4f}"), reason), reason


@pytest.mark.slow
@pytest.mark.parametrize(("tolerance", "disagree"), [(0.05, 0.1), (0.02, 0.02), (0.02, 0.05), (0.1, 0.3)])
def test_in_simulation_few_worse_models_are_pushed_and_few_equal_ones_held_back(tolerance, disagree):
    generator = np.random.default_rng(0)

    def rate(tasks, loss, runs=400):
        """How often a model is pushed that loses on (disagree + loss) / 2 of the tasks and wins on the other half."""
        pushed = 0
        for _ in range(runs):
            place = generator.random(tasks)
            old, new = place >= (disagree - loss) / 2, (place < (disagree - loss) / 2) | (place >= disagree)
            pushed += loss_bounds(new, old)[2] <= tolerance
        return pushed / runs

    half = np.repeat([1.0, -1.0, 0.0], [round(500 * disagree)] * 2 + [1000 - 2 * round(500 * disagree)])
    enough = tasks_needed(half, np.zeros(1000), tolerance)
    assert rate(enough, 0.0) >= 0.9
    for tasks in (enough // 4, enough):
        worse = min(1.25 * tolerance, disagree)
        assert rate(tasks, worse) <= 0.05
        assert (
            rate(tasks, min(tolerance, disagree)) <= 0.08
        )  # at the tolerance itself, 5 % up to chance and whole tasks


@pytest.mark.parametrize(("value", "tolerance", "blessed"), [
    (-0.9, 0.0, True), (-1.0, 0.0, True), (-1.01, 0.0, False), (-1.01, 0.02, True), (-1.03, 0.02, False),
])  # fmt: skip
def test_compared_by_annotations_their_likelihood_decides_and_accuracy_only_about_the_minimum(
    value, tolerance, blessed
):
    old = {"model": "/serving/7", "accuracy": float(blessed), "annotation_log_likelihood": -1.0}
    summary = {"candidate": {"accuracy": 0.5, "annotation_log_likelihood": value}, "baseline": old}
    found, reason = _verdict(summary, kind_of("classification"), tolerance, 0.5, "annotations")
    assert found is blessed
    assert reason.startswith(f"its log-likelihood of held-out annotations {value:.4f} ")
    assert _verdict(summary, kind_of("classification"), 9.0, 0.6, "annotations")[1].startswith("its accuracy 0.5000 is")
