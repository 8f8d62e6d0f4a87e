"""The table of `crowdzoo demo images`: what the results render to."""

import pytest


@pytest.fixture(scope="module")
def script(reproduce):
    return reproduce("demo_images")


def test_the_table_has_paired_differences(script):
    from stack import PAGES

    def row(*accuracies):
        runs = [{"seed": seed, "accuracy": one, "seconds": 30.0} for seed, one in enumerate(accuracies)]
        return {"runs": runs, "stack": PAGES}

    saved = {
        "accuracy": {"majority vote": row(0.6, 0.7, 0.8), "the true labels": row(0.7, 0.8, 0.9)},
        "time": {"crowdzoo demo images": {"runs": [{"minutes": 12.34}], "stack": PAGES}},
    }
    found = script.table(saved)
    # by hand: Student's 4.303 times 0.1 / sqrt(3); each difference is 0.1
    assert (
        "| majority vote | 0.700 ± 0.248 |  | 30 |\n| the true labels | 0.800 ± 0.248 | +0.100 ± 0.000 | 30 |" in found
    )
    assert "took 12.3 minutes" in found
