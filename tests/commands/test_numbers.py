"""Numbers on the command line: with and without a zero before their point."""

import argparse

import pytest
from command_line import actions_of

from crowdzoo.checks.constraints import setting_value
from crowdzoo.commands import main as cli
from crowdzoo.commands.options import settings_of
from crowdzoo.comparison.setup import _parse_method
from crowdzoo.pipelines.yaml_files import read_value
from crowdzoo.report.page import Condition

TEXTS = {".3": 0.3, "-.3": -0.3, "3.": 3.0, "1e-3": 0.001, ".5e1": 5.0, "[.3, -.5, 1.]": [0.3, -0.5, 1.0], "7": 7}


@pytest.mark.parametrize("text", TEXTS)
def test_a_setting_may_leave_out_the_zero_of_a_number(text):
    assert setting_value(text) == TEXTS[text]
    assert settings_of([f"least={text}"]) == {"least": TEXTS[text]}
    assert read_value(text, "x") == TEXTS[text]
    if " " not in text:
        assert _parse_method(f"dawid-skene prior={text}") == ("dawid-skene", {"prior": TEXTS[text]})


@pytest.mark.parametrize("text", ["mean", "a.b", "v.5", "..", "1.2.3", "x=.5", "", "5.x"])
def test_other_values_of_a_setting_stay_text(text):
    assert setting_value(text) == text


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_option_that_takes_a_number_takes_it_without_the_zero(command):
    for action in actions_of(command):
        if action.type is None:
            continue
        try:
            number = action.type("0.5")
        except argparse.ArgumentTypeError:  # an integer, a date
            continue
        if isinstance(number, float):
            assert action.type(".5") == number == 0.5, action.option_strings


def test_a_command_takes_a_setting_without_the_zero(tmp_path, here, capsys):
    (tmp_path / "a.csv").write_text("task,annotator,label\n1,a,x\n1,b,y\n2,a,x\n2,b,x\n")
    words = ["aggregate", "a.csv", "--method", "dawid-skene", "--out"]
    assert cli.main([*words, "one.csv", "--set", "prior=.5"]) == 0
    assert cli.main([*words, "two.csv", "--set", "prior=0.5"]) == 0
    assert (tmp_path / "one.csv").read_text() == (tmp_path / "two.csv").read_text()
    assert Condition.parse("alpha<.6").limit == 0.6
