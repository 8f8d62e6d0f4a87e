"""Which versions of a model are served."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["VersionPolicy"]


@dataclass(frozen=True)
class VersionPolicy:
    """TF Serving's `model_version_policy`.

    Attributes:
        latest: how many of the versions are served, highest numbers first; None for all of them.
        only: the versions that may be served; None for any.
    """

    latest: int | None = 1
    only: frozenset[int] | None = None

    def candidates(self, versions: Iterable[int]) -> list[int]:
        """The versions that may be served, highest first."""
        return sorted((version for version in versions if self.only is None or version in self.only), reverse=True)

    def is_full(self, count: int) -> bool:
        """Whether so many versions are enough."""
        return self.latest is not None and count >= self.latest
