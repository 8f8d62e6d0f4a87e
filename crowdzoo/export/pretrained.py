"""A model in a folder that travels: Keras' own files, names, the annotators' matrices, and a card for people."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import crowdzoo
from crowdzoo.files.model_files import FOLDER_NAMES
from crowdzoo.files.paths import check_output_folder
from crowdzoo.files.writing import atomic_folder
from crowdzoo.networks.encoders import Encoder, model_names

if TYPE_CHECKING:
    from crowdzoo.training.crowd_model import CrowdModel

_INTENDED = (
    "Estimates for instances like those it was trained on. What it says of annotators describes their answers in that "
    "data, and judges nobody."
)


def save_pretrained(
    model: CrowdModel,
    path: str | Path,
    *,
    classes: Sequence[object] | None = None,
    annotators: Sequence[object] | None = None,
    features: Sequence[str] | None = None,
    encoder: Encoder | None = None,
    training: Mapping[str, object] | None = None,
    licence: str = "unknown",
    card: Mapping[str, object] | None = None,
) -> Path:
    """Writes a folder for the hub of Hugging Face or Kaggle, which `keras.saving.load_model` reads.

    It holds Keras' files, the names of classes and annotators, their confusion matrices (of layers that have such) and
    a card, `README.md`. Whoever gets the folder sees the annotators' names: give others where they are personal data.

    Args:
        model: trained.
        path: the folder; it does not exist, or is empty.
        classes: names [K]; None: those that `fit` saw.
        annotators: names [R]; None: those that `fit` saw, else 0 ... R-1.
        features: names of the columns of feature vectors.
        encoder: what turns texts, images or tables into the base's input, as `crowdzoo train` makes it.
        training: what the model was trained on and how, for the card; anything JSON can hold.
        licence: of the model, by its name on the hub, such as "cc-by-4.0".
        card: more to say, by name: numbers are figures, the rest is text. "intended use" has a text of its own.

    Returns:
        The path.

    Raises:
        ConfigError: the folder is not empty.
    """
    path = Path(path)
    check_output_folder(path, "path")
    classes = model.classes if classes is None else classes
    number = 0 if model.crowd is None else model.crowd.num_annotators
    annotators = model.annotators if annotators is None else annotators
    names = model_names(classes, range(number) if annotators is None else annotators, features, encoder, training or {})
    figures = [name for name, value in (card or {}).items() if isinstance(value, (int, float))]
    facts = {
        "method": type(model.crowd or model.base).__name__,
        "settings": None if model.crowd is None else model.crowd.get_config(),
        "annotators": number,
        "classes": names["classes"],
        **(training or {}),
        "crowdzoo": crowdzoo.__version__,
        "intended use": _INTENDED,
        **(card or {}),
    }
    rows = [f"| {name} | {_cell(value)} |" for name, value in facts.items()]
    with atomic_folder(path) as folder:
        model.save(folder, zipped=False)
        (folder / FOLDER_NAMES).write_text(json.dumps(names, default=str), encoding="utf-8")
        with contextlib.suppress(ValueError, NotImplementedError):  # methods without matrices
            np.save(folder / "confusions.npy", model.annotator_confusions())
        text = resources.files("crowdzoo.export").joinpath("card.md").read_text("utf-8")
        text = text.format(
            licence=json.dumps(licence.lower()), figures=json.dumps(figures), name=path.name, rows="\n".join(rows)
        )
        (folder / "README.md").write_text(text, encoding="utf-8")
    return path


def _cell(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    return " ".join(text.split()).replace("|", "\\|")
