"""benchmarks/reproduce/text_forms.py: the default form of texts is the one that its rule names."""

import json

import pytest


@pytest.fixture(scope="module")
def script(reproduce):
    return reproduce("text_forms")


def test_the_default_is_the_form_that_is_higher_by_the_crowd_on_more_pairs(script):
    from crowdzoo.models import BASES, TextSettings
    from crowdzoo.training.bases.base import Sizes

    saved = json.loads(script.RESULTS.read_text(encoding="utf-8"))
    form, won = script.verdict(saved)
    assert won > 4
    base, settings = BASES["text-classifier"], TextSettings()
    model = base.build(settings, Sizes(num_classes=2), base.encoder(settings, lambda: [["some words"]]))
    assert model.get_config()["form"] == form
    reverse = {
        name: {row: rows[other] for row, other in zip(rows, [*rows][2:] + [*rows][:2], strict=True)}
        for name, rows in saved.items()
    }
    assert script.verdict(reverse) == (next(each for each in script.FORMS if each != form), won)
