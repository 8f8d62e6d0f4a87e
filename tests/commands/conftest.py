"""Fixtures of the tests of several commands."""

from unittest.mock import Mock

import pytest


@pytest.fixture
def training_call(monkeypatch):
    """What instances are trained with, as a mock that ends the command with exit code 130."""
    train = Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr("crowdzoo.training.instance_training.train", train)
    return train
