"""Writes the API reference from the docstrings: `docs/api/build.py [FOLDER]`, by default into build/api."""

import importlib
import os
import sys
import warnings
from pathlib import Path

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from pdoc import pdoc, render

import crowdzoo

# Parts of the pipeline are used through `crowdzoo run` and its configuration file
LEFT_OUT = ("components", "pipelines")


def main() -> None:
    """Builds the pages."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/api")
    folder.mkdir(parents=True, exist_ok=True)
    rooms = [importlib.import_module("crowdzoo")]
    rooms += [value for name in crowdzoo.__all__ if isinstance(value := getattr(crowdzoo, name), type(crowdzoo))]
    for room in rooms:  # pdoc sees what is loaded only
        vars(room).update({name: getattr(room, name) for name in getattr(room, "__all__", ())})
    render.configure(docformat="google", footer_text=f"crowdzoo {crowdzoo.__version__}", math=True)
    warnings.filterwarnings("error", module="pdoc")
    pdoc("crowdzoo", *(f"!crowdzoo.{name}" for name in LEFT_OUT), output_directory=folder)
    print(folder / "index.html")


if __name__ == "__main__":
    main()
