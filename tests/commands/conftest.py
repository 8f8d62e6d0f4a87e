"""Fixtures of the tests of several commands."""

from unittest.mock import Mock

import pytest


@pytest.fixture
def training_call(monkeypatch):
    """What instances are trained with, as a mock that ends the command with exit code 130."""
    train = Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr("crowdzoo.training.instance_training.train", train)
    return train


@pytest.fixture
def stop_before(monkeypatch):
    """Has a command raise an error in the place of its work; without one of its own it ends with exit code 1."""

    def stop(command, error=NotImplementedError):
        monkeypatch.setattr(f"crowdzoo.commands.{command}.run", Mock(side_effect=error))

    return stop
