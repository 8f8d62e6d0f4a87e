"""Images as exports name them, by a path or a URL."""

from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

_ENDINGS = (".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp", ".tif", ".tiff")


def is_picture(value: str) -> bool:
    """Whether a value is the path or the URL of an image, by its ending."""
    return _file_name(value).suffix.lower() in _ENDINGS


def task_of_picture(value: str) -> str:
    """Name of the file that a path or a URL ends in, without the ending of images."""
    name = _file_name(value)
    return name.stem if is_picture(value) else name.name


def place_of_picture(value: str) -> str:
    """The path or the URL without what follows a question mark, such as a signature that differs from row to row."""
    return value.partition("?")[0]


def _file_name(value: str) -> PurePosixPath:
    path = place_of_picture(value)
    try:
        path = unquote(urlsplit(path).path) if "://" in path else path
    except ValueError:  # no URL after all
        path = value
    return PurePosixPath(PurePosixPath(path.replace("\\", "/")).name)
