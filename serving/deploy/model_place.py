"""Where the folder of a served model is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from crowdzoo.errors import ConfigError, short_repr
from crowdzoo.files.paths import local_path, scheme_of

__all__ = ["ModelPlace"]

_CLAIM = re.compile(r"pvc://(?P<claim>[a-z0-9]([-a-z0-9.]*[a-z0-9])?)(/(?P<path>.+))?")
_URI = re.compile(r"(gs|s3)://[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9._~@%+=-]+)*/?")


@dataclass(frozen=True)
class ModelPlace:
    """The folder of a served model, with one subfolder a version.

    Attributes:
        folder: its path, where it is a folder of the machine that serves; else None.
        claim: name of the persistent volume claim that it is on; else None.
        path: of a claim, the folder in the volume; "" where the volume itself is the folder.
        uri: its URI in an object store, without a `/` at its end; else None.
    """

    folder: Path | None = None
    claim: str | None = None
    path: str = ""
    uri: str | None = None

    @classmethod
    def parse(cls, text: str, what: str) -> ModelPlace:
        """The place that a text names.

        Args:
            text: a path, `pvc://CLAIM/PATH`, `gs://BUCKET/PATH` or `s3://BUCKET/PATH`.
            what: the option, for messages.

        Raises:
            ConfigError: another scheme, or a name that cannot be.
        """
        named = f"{what} {short_repr(text)}"
        scheme = scheme_of(text)
        if scheme is None:
            return cls(folder=local_path(text, what))
        if scheme == "pvc":
            found = _CLAIM.fullmatch(text)
            parts = [] if found is None else (found["path"] or "").strip("/").split("/")
            if found is None or len(found["claim"]) > 253 or ".." in parts:
                raise ConfigError(f"{named}: write pvc://CLAIM/FOLDER, with the name of a persistent volume claim.")
            return cls(claim=found["claim"], path="/".join(parts))
        if scheme not in ("gs", "s3"):
            raise ConfigError(f"{named}: {scheme}:// is not supported; use a folder, pvc://, gs:// or s3://.")
        if not _URI.fullmatch(text):
            raise ConfigError(f"{named}: write {scheme}://BUCKET/FOLDER, of letters, digits and . _ ~ @ % + = - only.")
        return cls(uri=text.rstrip("/"))

    def __str__(self) -> str:
        """As it was given; a folder as an absolute path."""
        if self.claim is not None:
            return f"pvc://{self.claim}/{self.path}".rstrip("/")
        return str(self.uri or self.folder)
