"""What scripts say that lack their data."""

import sys
from collections.abc import Iterable

from crowdzoo.datasets import data_folder

_SAVED = {"-h", "--help", "--print", "--page", "--plot", "--worker"}  # with these nothing is read, or it was looked at


def need(*places: str, flag: str = "", values: Iterable[str] = (), some: bool = False) -> None:
    """Ends the script with an error where its data are not there.

    Args:
        places: below `CROWDZOO_DATA`.
        flag: option that chooses parts of the script, and
        values: those of its values that read the data; without the option all are read.
        some: one of the places is enough.
    """
    if _SAVED & {*sys.argv} or (flag in sys.argv and not {*values} & {*sys.argv}):
        return
    missing = [place for place in places if not (data_folder() / place).exists()]
    if missing and not (some and len(missing) < len(places)):
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        sys.exit(
            f"{data_folder()} has no {', '.join(missing[:3])}{more}. CROWDZOO_DATA names the folder of the data; "
            "docs/datasets.md says where they come from. Nothing was measured."
        )
