import json
from types import SimpleNamespace

import pytest

from crowdzoo.errors import ConfigError
from crowdzoo.pipelines.config.load import load_config
from crowdzoo.pipelines.local import run
from crowdzoo.pipelines.pipeline import create_pipeline


def components(path, **overrides):
    return {each.id: each for each in create_pipeline(load_config(path, overrides)).components}


def test_the_section_report_puts_a_page_between_evaluator_and_pusher(inputs):
    found = components(inputs / "tiny.yaml", report={"fail_if": ["alpha<0.6"]})
    assert [*found][-3:] == ["Evaluator", "CrowdReport", "Pusher"]
    assert found["Pusher"].inputs["model_blessing"] is found["CrowdReport"].outputs["blessing"]
    settings = json.loads(found["CrowdReport"].exec_properties["settings"])
    assert settings["fail_if"] == ["alpha<0.6"]
    assert settings["method"] == "dawid-skene"


@pytest.mark.parametrize("section", [{}, {"report": {"page": False}}, {"report": None}])
def test_without_it_there_is_none(inputs, section):
    found = components(inputs / "tiny.yaml", **section)
    assert "CrowdReport" not in found
    assert found["Pusher"].inputs["model_blessing"] is found["Evaluator"].outputs["blessing"]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"report.fail_if": ["alpah<0.6"]}, "report.fail_if: unknown value 'alpah': choose one of alpha,"),
        ({"report.fail_if": ["alpha"]}, "report.fail_if: 'alpha' is not a condition"),
        ({"report.fail_if": ["alpha<0.6"], "report.page": False}, "report.fail_if: needs the page"),
        ({"report.title": "x"}, "report: unknown key 'title'"),
    ],
)
def test_what_the_section_cannot_mean_is_refused(inputs, overrides, message):
    with pytest.raises(ConfigError, match=message):
        load_config(inputs / "tiny.yaml", overrides)


@pytest.fixture(scope="module")
def story(tmp_path_factory, make_inputs):
    """Runs in one folder: with a page, the same again, with a condition that holds, and with another model."""
    folder = make_inputs(tmp_path_factory.mktemp("report"))

    def go(**overrides):
        # whether a model of so few tasks is better differs between processors
        always = {"output.root": str(folder / "out"), "report.page": True, "evaluation.undecided": "push"}
        overrides = {**always, **overrides}
        result = run(load_config(folder / "tiny.yaml", overrides), quiet=True)
        return SimpleNamespace(result=result, numbers=json.loads(result.page.with_suffix(".json").read_text()))

    conditions = {"report.fail_if": ["alpha<0.99"]}
    return SimpleNamespace(
        first=go(), again=go(), failed=go(**conditions, **{"training.epochs": 9}), other=go(**{"training.epochs": 10})
    )


@pytest.mark.slow
def test_a_run_with_a_page_pushes_the_model_and_says_where_the_page_is(story):
    result, numbers = story.first.result, story.first.numbers
    assert result.pushed
    assert f"Page:        {result.page}" in result.summary()
    assert numbers["title"] == "tiny"
    assert numbers["model"]["tasks"] == 15, "those of eval"
    assert numbers["changes"] is None
    assert story.again.result.cached == tuple(result.seconds)
    assert story.again.result.page == result.page


@pytest.mark.slow
def test_a_condition_that_holds_stops_the_push_and_the_run_says_which(story):
    result = story.failed.result
    assert result.evaluation["blessed"]
    assert not result.blessed
    assert result.pushed is None
    assert result.reason.startswith("alpha<0.99 holds: alpha is 0.")
    assert "not pushed: alpha<0.99 holds" in result.summary()


@pytest.mark.slow
def test_the_page_says_what_changed_since_that_of_the_last_model_that_was_pushed(story):
    assert story.other.result.pushed
    changes = story.other.numbers["changes"]
    assert changes["title"] == "tiny"
    assert {name for name, *_ in changes["values"]} <= {"model_agreement", "model_accuracy", "model_ece"}
    assert changes["tasks"]["both"] == 60
