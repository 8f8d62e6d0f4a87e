"""Text of any encoding as a file of UTF-8."""

import io
from collections.abc import Iterator
from typing import IO, Any

from crowdzoo.files.utf8_blocks import utf8_blocks


def utf8_file(stream: IO[bytes], name: str, encoding: str | None = None) -> io.BufferedReader:
    """The bytes of a text file as UTF-8 without a byte order mark, decoded as they are read; see `utf8_blocks`."""
    return io.BufferedReader(_Blocks(utf8_blocks(iter(lambda: stream.read(1 << 16), b""), name, encoding)))


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
