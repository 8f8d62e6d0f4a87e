"""Text tables: bordered on a terminal, plain columns in a file or a pipe."""

import sys
from collections.abc import Sequence
from typing import TextIO


def format_table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Format a table as plain text, with columns two spaces apart and right-aligned numbers.

    Args:
        title: first line; may be empty.
        header: names of the columns; if all are empty, the header lines are left out.
        rows: cells, one per column, converted with `str`.

    Returns:
        Lines without a trailing newline.

    Raises:
        ValueError: a row has more or fewer cells than there are columns.
    """
    cells, right = _cells(header, rows)
    widths = [max(len(row[column]) for row in [list(header), *cells]) for column in range(len(header))]
    lines = [title] if title else []
    top = [list(header), ["-" * width for width in widths]] if any(header) else []
    for row in [*top, *cells]:
        padded = [
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(row, widths, right, strict=True)
        ]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def print_table(
    title: str, header: Sequence[str], rows: Sequence[Sequence[object]], file: TextIO | None = None, *, whole: int = 0
) -> list[str]:
    """Print a table; with rich on a terminal, it has borders.

    Args:
        title: printed above the table.
        header: names of the columns; if all are empty, there is no header.
        rows: cells, one per column, converted with `str`.
        file: None is standard output.
        whole: number of leading columns that a terminal always shows; others are left out from the right if it is too
            narrow. 0 fits all columns in. The first column is wrapped at blanks if necessary.

    Returns:
        Names of the columns left out.

    Raises:
        ValueError: a row has more or fewer cells than there are columns.
    """
    stream = sys.stdout if file is None else file
    if not stream.isatty():
        print(format_table(title, header, rows), file=stream)
        return []
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    cells, right = _cells(header, rows)
    console, count = Console(file=stream), len(header)
    sizes = [max(map(len, [*name.split(), *column]), default=0) for name, *column in zip(header, *cells, strict=True)]
    while count > whole > 0 and sum(sizes[:count]) + 3 * count + 1 > console.width:  # with borders
        count -= 1
    table = Table(title=title or None, title_justify="left", show_header=any(header))
    for place, (name, to_right) in enumerate(zip(header[:count], right, strict=False)):
        width = sizes[place] if 0 < place < whole else None
        table.add_column(name, justify="right" if to_right else "left", width=width)
    for row in cells:
        table.add_row(*map(Text, row[:count]))  # plain text: a name such as [a] is not markup
    console.print(table)
    return list(header[count:])


def _cells(header: Sequence[str], rows: Sequence[Sequence[object]]) -> tuple[list[list[str]], list[bool]]:
    """Cells as text, and which columns contain only numbers."""
    for number, row in enumerate(rows):
        if len(row) != len(header):
            raise ValueError(f"row {number} has {len(row)} cells for {len(header)} columns")
    cells = [[str(cell) for cell in row] for row in rows]
    return cells, [bool(cells) and all(_is_number(row[column]) for row in cells) for column in range(len(header))]


def _is_number(text: str) -> bool:
    """Whether a cell is a number, possibly with thousands separators, a sign, a percent sign or an error after ±."""
    parts = text.replace(",", "").replace("%", "").replace("±", " ").split()
    try:
        return bool(parts) and all(float(part) is not None for part in parts)
    except ValueError:
        return text in ("", "-")
