import pytest

from crowdzoo.testing.aggregators import check_aggregator

pytestmark = pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")


@pytest.fixture(scope="module")
def script(reproduce):
    return reproduce("label_model")


def test_it_is_a_sound_aggregator(script):
    check_aggregator(script.LabelModel())


# === Against the model in loops ===


# === Recovery ===
