"""A model in a folder to share: Keras' files, names, the annotators' matrices, and a card."""

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
    "Estimates for instances like those it was trained on. Its annotators' matrices describe their answers in that "
    "data, and are not judgements of people."
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
    """Writes a folder for the Hugging Face or Kaggle hub, which `keras.saving.load_model` reads.

    It holds Keras' files, the names of classes and annotators, their confusion matrices (if the layer has any) and a
    card, `README.md`. The folder contains the annotators' names: replace them if they are personal data.

    Args:
        model: trained model.
        path: the folder, which must be new or empty.
        classes: names [K]; None uses those from `fit`.
        annotators: names [R]; None uses those from `fit`, else 0 ... R-1.
        features: names of the columns of feature vectors.
        encoder: encoder of texts, images or tables to the base's input, as from `crowdzoo train`.
        training: data and settings of the training, for the card; anything that JSON can represent.
        licence: licence of the model, by its name on the hub, such as "cc-by-4.0".
        card: further facts by name: numbers are shown as figures, the rest as text. "intended use" has a default text.

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
