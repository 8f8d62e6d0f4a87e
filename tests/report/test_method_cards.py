"""Every registered method has a card, and a card says what is true of the code and the saved results."""

import json
from importlib import resources

import numpy as np
import pytest

import crowdzoo
from crowdzoo import aggregation, layers, models
from crowdzoo.aggregation.registry import METHODS_OF
from crowdzoo.commands.main import main
from crowdzoo.report.cards import made_cards, method_cards
from crowdzoo.testing.aggregators import simulated_crowd
from crowdzoo.training.methods import methods_of

CARDS = method_cards()


def test_every_registered_method_has_a_card():
    registered = {("aggregation", kind, name) for kind, methods in METHODS_OF.items() for name in methods}
    registered |= {("deep", kind, name) for kind in METHODS_OF for name in methods_of(kind)}
    assert {(card.sort, card.kind, card.name) for card in CARDS} == registered
    assert len(CARDS) == len(registered)


def test_saved_cards_are_what_the_classes_say():
    saved = json.loads(resources.files("crowdzoo.report").joinpath("method_cards.json").read_text("utf-8"))
    assert made_cards() == saved, "run python benchmarks/method_figures.py"


@pytest.mark.parametrize("card", CARDS, ids=[f"{card.sort}-{card.kind}-{card.name}" for card in CARDS])
def test_a_card_is_whole(card):
    for text in (card.summary, card.source, card.needs):
        assert text.strip()
        assert text != "Not said."  # as of methods of packages
        assert "\n" not in text
    assert f"--method {card.name}" in card.command
    if card.class_name is not None:
        place, _, name = card.class_name.rpartition(".")
        assert hasattr({"crowdzoo.layers": layers, "crowdzoo.aggregation": aggregation}[place], name)


@pytest.mark.parametrize("card", CARDS, ids=[f"{card.sort}-{card.kind}-{card.name}" for card in CARDS])
def test_the_command_of_a_card_parses(card):
    from crowdzoo.commands.main import _parser

    arguments = _parser().parse_args(card.command.split()[1:])
    assert arguments.method == card.name
    assert arguments.kind == card.kind


LINES = [card for card in CARDS if card.sort == "aggregation" and card.kind == "classification"]


@pytest.mark.parametrize("card", LINES, ids=[card.name for card in LINES])
@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.ConvergenceWarning")
def test_the_line_of_an_aggregation_runs(card):
    crowd, _ = simulated_crowd(num_classes=2)
    result = eval(
        card.python, {**{name: getattr(aggregation, name) for name in aggregation.__all__}, "annotations": crowd}
    )
    assert result.method == card.name


TRAINED = [card for card in CARDS if card.sort == "deep" and card.kind in ("classification", "regression")]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::crowdzoo.training.faults.NotLearnedWarning")  # forty tasks are few
@pytest.mark.parametrize("card", TRAINED, ids=[f"{card.kind}-{card.name}" for card in TRAINED])
def test_the_line_of_a_deep_method_runs(card, eager):
    crowd, truth = simulated_crowd(num_tasks=40)
    x = np.eye(3, dtype="float32")[truth]
    if card.kind == "regression":
        columns = (crowd.task_ids, crowd.annotator_ids, crowd.labels.astype(float))
        crowd = crowdzoo.Annotations.from_arrays(*columns, kind="regression")
        base, result = models.FeatureRegressor(3), aggregation.RatingMean().fit(crowd)
    else:
        base = models.FeatureClassifier(3, None if card.name == "doctor-net" else 3)
        result = aggregation.MajorityVote().fit(crowd)
    names = {name: getattr(place, name) for place in (layers, models) for name in place.__all__}
    given = {"base": base, "x": x, "annotations": crowd, "ids": crowd.tasks, "result": result}
    assert eval(card.python, {**names, **given}).history["loss"]


def test_the_first_figure_of_a_method_is_that_of_its_defaults():
    [ccem] = method_cards("classification", "ccem")
    assert ccem.figures[0]["variant"] == ""
    [vote] = (card for card in method_cards("classification", "majority-vote"))
    assert vote.figures[0]["accuracy"] == 0.766


def test_the_list_has_a_line_a_name(capsys):
    assert main(["methods"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name in {card.name for card in CARDS}:
        assert any(line.split()[:1] == [name] for line in lines), name
    assert any(line.split()[0] == "majority-vote" and "0.766" in line for line in lines if line)
    assert main(["methods", "--kind", "preference"]) == 0
    shown = capsys.readouterr().out
    assert "crowd-bt" in shown
    assert "deep-em" not in shown


def test_a_name_shows_its_cards(capsys):
    assert main(["methods", "rating-em"]) == 0
    shown = capsys.readouterr().out
    assert "rating-em (deep)" in shown
    assert "rating-em (aggregation)" in shown
    assert "Raykar" in shown
    assert "instances.parquet --kind regression --method rating-em" in shown
