"""package_table: a CSV file that ships in a package."""

import csv
from importlib.resources import files


def package_table(package: str | None, name: str) -> list[dict[str, str]]:
    """The lines of a CSV file, by the names of their columns.

    Args:
        package: such as "crowdzoo.kinds", or the `__package__` of a module.
        name: of the file in it.
    """
    return list(csv.DictReader(files(str(package)).joinpath(name).read_text(encoding="utf-8").splitlines()))
