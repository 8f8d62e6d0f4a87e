"""Which aggregators for classes run on blocks that lie somewhere else (on Beam, or on disk), and in which form."""

from __future__ import annotations

from typing import Any

from crowdzoo.aggregation.classes.dawid_skene import DawidSkene
from crowdzoo.aggregation.classes.glad import GLAD
from crowdzoo.aggregation.classes.ibcc import IBCC
from crowdzoo.aggregation.classes.majority_vote import MajorityVote
from crowdzoo.aggregation.classes.one_coin import OneCoinDawidSkene
from crowdzoo.errors import ConfigError
from crowdzoo.large.forms.base import Method
from crowdzoo.large.forms.dawid_skene import DawidSkeneForm
from crowdzoo.large.forms.glad import GLADForm
from crowdzoo.large.forms.ibcc import IBCCForm
from crowdzoo.large.forms.majority_vote import MajorityVoteForm
from crowdzoo.large.forms.one_coin import OneCoinForm

__all__ = ["FORMS", "method_of", "runs_on_blocks"]

FORMS: dict[type, type[Method]] = {
    MajorityVote: MajorityVoteForm,
    DawidSkene: DawidSkeneForm,
    OneCoinDawidSkene: OneCoinForm,
    GLAD: GLADForm,
    IBCC: IBCCForm,
}


def runs_on_blocks(aggregator: Any) -> bool:
    """Whether an aggregator has a form."""
    return type(aggregator) in FORMS and not _in_memory(aggregator)


def _in_memory(aggregator: Any) -> str:
    """A setting that no form has, and what to do about it; empty as a rule."""
    if getattr(aggregator, "confidence", False):
        return "confidence=True; set it to False"
    if getattr(aggregator, "start", "votes") != "votes":
        return f"start={aggregator.start!r}; set it to 'votes', or give the result of OneCoinDawidSkene as initial"
    return ""


def method_of(aggregator: Any, num_annotators: int, num_classes: int, where: str = "on Beam") -> Method:
    """The form of an aggregator.

    Args:
        aggregator: the settings.
        num_annotators: R.
        num_classes: K.
        where: it is to run, for messages.

    Raises:
        ConfigError: there is none.
    """
    kind = FORMS.get(type(aggregator))
    if kind is None:
        known = ", ".join(sorted(known.__name__ for known in FORMS))
        raise ConfigError(f"{type(aggregator).__name__} does not run {where}: use one of {known}.")
    if setting := _in_memory(aggregator):
        raise ConfigError(f"{type(aggregator).__name__} does not run {where} with {setting}.")
    return kind(aggregator, num_annotators, num_classes)
