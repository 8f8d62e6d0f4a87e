"""A store of files that Beam knows by its scheme: importing this registers it."""

from pathlib import Path

from apache_beam.io.filesystem import BeamIOError, FileMetadata
from apache_beam.io.localfilesystem import LocalFileSystem


def inside(uri):
    """The file of this machine that holds what a Store has at a URI."""
    return Path(uri.removeprefix("store:/"))


class Store(LocalFileSystem):
    """`store:/folder/file` is a file of this machine. There are no folders, and no file takes another's name."""

    @classmethod
    def scheme(cls):
        return "store"

    def exists(self, path):
        return inside(path).is_file()

    def _list(self, folder):
        return [FileMetadata(f"store:/{file}", 0) for file in inside(folder).rglob("*") if file.is_file()]

    def open(self, path, *how, **options):
        return super().open(str(inside(path)), *how, **options)

    def create(self, path, *how, **options):
        return super().create(str(inside(path)), *how, **options)

    def rename(self, sources, targets):
        if any(map(self.exists, targets)):  # as on HDFS
            raise BeamIOError("taken")
        super().rename([*map(inside, sources)], [*map(inside, targets)])

    def delete(self, paths):
        for path in paths:
            inside(path).unlink()
