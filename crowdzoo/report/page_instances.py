"""instance_views: views of instances for the page of a report."""

import base64
import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from crowdzoo.data.instance_kinds import IMAGES, TEXTS
from crowdzoo.reading.instances.instances import Instances
from crowdzoo.reading.instances.upright_image import read_image

SIDE = 144  # pixels of a thumbnail
LONGEST_TEXT = 600  # characters
LONGEST_CELL = 60
MOST_COLUMNS = 16
MOST_NUMBERS = 8  # of a vector


def instance_views(instances: Instances, rows: Sequence[int], budget: int) -> list[dict[str, object] | None]:
    """Create views of instances for the page: thumbnails, texts, or table rows.

    Args:
        instances: of any kind.
        rows: their rows, in the order of the page.
        budget: maximum number of characters of all views; further views are None.

    Returns:
        One value per row: `{"image": data URL}`, `{"text": text}`, `{"row": [[column, value], ...]}`, or None.

    Raises:
        DataError: an unreadable image; names the file.
    """
    views: list[dict[str, object] | None] = []
    for row in rows:
        view = None if budget <= 0 else _view(instances, row)
        budget -= 0 if view is None else len(str(view))
        views.append(view if budget > 0 else None)
    return views


def _view(instances: Instances, row: int) -> dict[str, object]:
    values = instances.values
    if instances.kind == IMAGES:
        return {"image": _thumbnail(values[row])}
    if instances.kind == TEXTS:
        return {"text": _cut(str(values[row]), LONGEST_TEXT)}
    if isinstance(values, dict):
        cells = [(name, column[row]) for name, column in values.items()]
    else:
        cells = [*zip(instances.names or map(str, range(values.shape[1])), values[row], strict=True)]
    rest = len(cells) - MOST_COLUMNS
    pairs = [[str(name), _cell(value)] for name, value in cells[:MOST_COLUMNS]]
    return {"row": pairs + ([["…", f"{rest:,} more"]] if rest > 0 else [])}


def _cell(value: Any) -> str:
    if isinstance(value, np.ndarray):
        text = ", ".join(f"{number:.4g}" for number in value[:MOST_NUMBERS].tolist())
        return f"{text}, …" if len(value) > MOST_NUMBERS else text
    if isinstance(value, (float, np.floating)):
        return f"{value:.6g}"
    return _cut(str(value), LONGEST_CELL)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _thumbnail(path: Any) -> str:
    """A small JPEG as a data URL."""
    from PIL import Image

    with Image.open(io.BytesIO(read_image(path).content), formats=("JPEG", "PNG")) as image:
        image.draft("RGB", (SIDE, SIDE))
        small = image.convert("RGBA")
    small.thumbnail((SIDE, SIDE))
    flat = Image.new("RGB", small.size, "white")
    flat.paste(small, mask=small.getchannel("A"))
    file = io.BytesIO()
    flat.save(file, "JPEG", quality=70)
    return "data:image/jpeg;base64," + base64.b64encode(file.getvalue()).decode("ascii")
