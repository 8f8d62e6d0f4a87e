"""Text of any encoding as a file of UTF-8."""

import codecs
import io
from collections.abc import Iterator
from typing import IO, Any

from crowdzoo.files.utf8_blocks import utf8_blocks


def utf8_file(stream: IO[bytes], name: str, encoding: str | None = None) -> io.BufferedReader:
    """The bytes of a text file as UTF-8, decoded as they are read; see `utf8_blocks`.

    A byte order mark at the beginning of a line, as where one file was appended to another, is no part of the line.
    """
    return _Lines(_Blocks(utf8_blocks(iter(lambda: stream.read(1 << 16), b""), name, encoding)))


class _Lines(io.BufferedReader):
    def readline(self, size: int | None = -1) -> bytes:
        return super().readline(-1 if size is None else size).removeprefix(codecs.BOM_UTF8)


class _Blocks(io.RawIOBase):
    """Blocks of bytes as a file."""

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
