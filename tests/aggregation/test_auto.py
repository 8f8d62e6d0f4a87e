import pytest

from crowdzoo.aggregation import Auto
from crowdzoo.testing.aggregators import AGGREGATOR_CHECKS


@pytest.mark.parametrize("check", AGGREGATOR_CHECKS.values(), ids=AGGREGATOR_CHECKS)
def test_battery(check):
    check(Auto())
