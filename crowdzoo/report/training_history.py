"""Training histories for the page of a report."""

import math
from pathlib import Path
from typing import Any

from crowdzoo.errors import DataError, short_repr
from crowdzoo.files.json import read_json

MOST_EPOCHS = 200  # epochs that the page shows; longer histories are thinned evenly
MOST_METRICS = 40
LATE = "log_likelihood"  # of methods with EM, whose first epochs train on the votes and have none


def read_history(path: str | Path) -> dict[str, list[float]]:
    """Read a training history, such as `history.json` of a pipeline run.

    Args:
        path: file with a JSON object: name of a metric -> its value after each epoch, like `History.history` in Keras.

    Returns:
        The history; values that are not finite numbers are NaN.

    Raises:
        DataError: no such file, or an invalid history; names the problem.
    """
    history = read_json(path, constants=True)
    if not isinstance(history, dict) or not history or not all(isinstance(item, list) for item in history.values()):
        raise DataError(f'{path}: is not a history. Give a JSON object of lists, such as {{"loss": [0.9, 0.5]}}.')
    if len(history) > MOST_METRICS:
        raise DataError(f"{path}: holds {len(history):,} metrics; a history has at most {MOST_METRICS}.")
    for name, values in history.items():
        history[name] = [_number(path, name, epoch, value) for epoch, value in enumerate(values)]
    return _align(history, path)


def _align(history: dict[str, list[float]], where: str | Path) -> dict[str, list[float]]:
    """Pad all metrics to one value per epoch; EM's likelihood is NaN in the epochs before the second E-step."""
    most = max((len(values) for values in history.values()), default=0)
    whole = {
        name: [math.nan] * (most - len(values)) + values if name == LATE else values for name, values in history.items()
    }
    least = min((len(values) for values in whole.values()), default=0)
    if least < most:
        raise DataError(f"{where}: its metrics have different numbers of epochs ({least} to {most}).")
    return whole


def _number(path: str | Path, name: str, epoch: int, value: Any) -> float:
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise DataError(f"{path}, {name!r}, epoch {epoch + 1}: {short_repr(value)} is not a number.")
    try:
        return float(value) if math.isfinite(value) else math.nan
    except OverflowError:  # an integer of hundreds of digits
        return math.nan


def shown_history(history: dict[str, list[float]]) -> dict[str, object]:
    """Prepare a history for the page.

    Args:
        history: result of `read_history`, or `History.history` of Keras.

    Returns:
        `epochs`, their number; `shown`, the epochs in the lists, from 1; and `metrics`, name to list, with None for
        values that are not numbers.

    Raises:
        DataError: metrics with different numbers of epochs.
    """
    history = _align(history, "history")
    epochs = max((len(values) for values in history.values()), default=0)
    most = min(epochs, MOST_EPOCHS)
    places = [round(place * (epochs - 1) / max(most - 1, 1)) for place in range(most)]
    thinned = {name: [values[place] for place in places] for name, values in history.items()}
    metrics = {name: [_digits(value) for value in values] for name, values in thinned.items()}
    return {"epochs": epochs, "shown": [place + 1 for place in places], "metrics": metrics}


def _digits(value: float) -> float | None:
    """Round a number to six digits; None for NaN and infinity."""
    return float(f"{value:.6g}") if math.isfinite(value) else None
