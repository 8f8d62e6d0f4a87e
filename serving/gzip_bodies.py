"""Bodies through gzip, in both directions."""

from __future__ import annotations

import gzip
import re
import zlib

from crowdzoo.errors import short_repr
from crowdzoo.serving.memory_budget import Share
from crowdzoo.serving.request_error import RequestError

__all__ = ["deflated", "inflated", "takes_gzip"]

# Inflated at a time, so that a small body that becomes a large one is noticed early
_PIECE = 1 << 20
_NOT_TAKEN = re.compile(r"q=0(\.0*)?\Z")


def inflated(body: bytes, encoding: str, most: int, share: Share) -> bytes:
    """A request's body as it was before it was encoded.

    Args:
        body: as it was sent.
        encoding: the request's `Content-Encoding`.
        most: bytes that it may have.
        share: the request's memory.

    Raises:
        RequestError: another encoding than gzip, not gzip, or longer than `most` bytes, which are never held together.
    """
    if encoding.strip().lower() in ("", "identity"):
        return body
    if encoding.strip().lower() not in ("gzip", "x-gzip"):
        raise RequestError(f"the body is encoded as {short_repr(encoding)}; send it as plain JSON or with gzip")
    stream = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    parts: list[bytes] = []
    size = 0
    try:
        while not stream.eof:
            part = stream.decompress(body, _PIECE)
            if not part and not stream.unconsumed_tail and not stream.eof:
                raise RequestError("the body ends before its gzip data does")
            size += len(part)
            if size > most:
                raise RequestError(
                    f"the body inflates to more than {most:,} bytes, the most this server takes", "TOO_LARGE"
                )
            share.hold("inflated", 2 * size)  # the parts, and then all of it
            parts.append(part)
            body = stream.unconsumed_tail
    except zlib.error as error:
        raise RequestError("the body is not gzip, as its Content-Encoding says") from error
    if stream.unused_data:
        raise RequestError("the body has data after the end of its gzip data")
    whole = b"".join(parts)
    parts.clear()
    share.hold("inflated", size)
    return whole


def takes_gzip(accepted: str) -> bool:
    """Whether a client takes gzip.

    Args:
        accepted: the request's `Accept-Encoding`.
    """
    for one in accepted.lower().split(","):
        name, _, weight = (part.strip() for part in one.partition(";"))
        if name in ("gzip", "x-gzip"):
            return not _NOT_TAKEN.match(weight.replace(" ", ""))
    return False


def deflated(text: bytes) -> bytes:
    """The text through gzip, at the level that takes least time."""
    return gzip.compress(text, compresslevel=1, mtime=0)
