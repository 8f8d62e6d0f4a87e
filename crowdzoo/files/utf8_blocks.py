"""Converts text with any encoding and line ends to blocks of UTF-8 whose lines end in a line feed."""

import codecs
import io
from collections.abc import Iterable, Iterator
from typing import IO, Any

from crowdzoo.errors import DataError, Setting

_FEW = 1000  # bytes searched for UTF-16, which has a NUL in each Latin letter
_HEAD = 1 << 20  # bytes searched for the first line end
# first bytes of a file -> its encoding; UTF-32 before UTF-16, which begins equally
_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def utf8_blocks(blocks: Iterable[bytes], name: str, encoding: str | None = None) -> Iterator[bytes]:
    """Converts blocks of a text file to UTF-8 without a byte order mark.

    A byte order mark overrides `encoding`. Without both, bytes are passed on unchanged, and readers check whether they
    are UTF-8. If the first line ends in only a carriage return, carriage returns become line feeds.

    Args:
        blocks: bytes of the file, in pieces.
        name: name of the file in error messages.
        encoding: name of an encoding in Python.

    Raises:
        DataError: a byte that is invalid in the encoding; or no encoding is given, and the file looks like UTF-16.
    """
    blocks = iter(blocks)
    first = next(blocks, b"")
    while len(first) < 4 and (more := next(blocks, b"")):
        first += more
    mark, known = next(((mark, known) for mark, known in _MARKS.items() if first.startswith(mark)), (b"", encoding))
    if known is None:
        for start, endian in ((1, "utf-16-le"), (0, "utf-16-be")):
            if 2 * (every_other := first[start:_FEW:2]).count(0) > len(every_other):
                raise DataError(
                    f"{name}: looks like UTF-16 without its byte order mark. Give {Setting('encoding', endian)}."
                )
    if known in (None, "utf-8"):
        return _unix_lines(first[len(mark) :], blocks)
    decoded = _decoded(first, blocks, name, str(known))
    return _unix_lines(next(decoded, b""), decoded)


def utf8_file(stream: IO[bytes], name: str, encoding: str | None = None) -> io.BufferedReader:
    """Opens the bytes of a text file as UTF-8, decoded while reading; see `utf8_blocks`.

    A byte order mark at the beginning of a line, where one file was appended to another, is removed.
    """
    return _Lines(_Blocks(utf8_blocks(iter(lambda: stream.read(1 << 16), b""), name, encoding)))


def _decoded(first: bytes, blocks: Iterator[bytes], name: str, encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)()
    start = 0  # position of the bytes that the decoder has not read
    block, first = first, b""
    while True:
        waiting = decoder.getstate()[0]
        try:
            text = decoder.decode(block, final=not block)
        except UnicodeError as error:
            place = start - len(waiting) + getattr(error, "start", 0)
            raise DataError(
                f"{name}: byte {place:,} is not {encoding} ({getattr(error, 'reason', error)}). Give the encoding of "
                f"the file, such as {Setting('encoding', 'utf-8')} or {Setting('encoding', 'latin-1')}."
            ) from None
        if text:
            yield text.encode("utf-8", "surrogatepass")
        if not block:
            return
        start += len(block)
        block = next(blocks, b"")


def _unix_lines(first: bytes, blocks: Iterator[bytes]) -> Iterator[bytes]:
    while len(first) < _HEAD and b"\n" not in first and b"\r" not in first[:-1] and (more := next(blocks, b"")):
        first += more
    place = first.find(b"\r")
    if place < 0 or -1 < first.find(b"\n") < place or first[place + 1 : place + 2] == b"\n":
        kept = [first]
        del first
        yield kept.pop()  # only the consumer has a reference
        yield from blocks
        return
    held = b""
    block, first = first, b""
    while block:
        block = held + block
        held = b"\r" if block.endswith(b"\r") else b""  # may be the first half of \r\n
        yield block[: len(block) - len(held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        block = next(blocks, b"")
    if held:
        yield b"\n"


class _Lines(io.BufferedReader):
    def readline(self, size: int | None = -1) -> bytes:
        return super().readline(-1 if size is None else size).removeprefix(codecs.BOM_UTF8)


class _Blocks(io.RawIOBase):
    """File interface to blocks of bytes."""

    def __init__(self, blocks: Iterator[bytes]):
        self.blocks, self.rest = blocks, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self.rest and (block := next(self.blocks, None)) is not None:
            self.rest = memoryview(block)
        size = min(len(buffer), len(self.rest))
        buffer[:size], self.rest = self.rest[:size], self.rest[size:]
        return size
