"""Candidate: what `auto` found out of a method."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Candidate"]


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A method that `auto` weighed.

    Attributes:
        method: its name.
        weight: of its posteriors in the mean; 0 where it was left out.
        score: mean log probability that it gave to hidden annotations, nats; None where too few could be hidden.
        behind: how much less that is than the best method's, nats.
        error: standard error of `behind`, hidden annotations taken as independent.
        gold: mean log probability that it gave to known classes, nats; None without gold.
        against_votes: share of the annotated tasks whose label is not among the classes with the most votes.
    """

    method: str
    weight: float
    score: float | None
    behind: float | None
    error: float | None
    gold: float | None
    against_votes: float
