import pytest

from crowdzoo.testing.aggregators import check_aggregator


@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")
def test_it_is_a_sound_aggregator(reproduce):
    check_aggregator(reproduce("label_model").LabelModel())
