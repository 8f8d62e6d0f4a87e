"""Served models whose answers are known, and folders that only look like one."""

import json


def save_model(folder, answer, signatures=("serving_default",), **inputs):
    """Saves a function as a model, and returns the folder.

    Args:
        folder: of the SavedModel.
        answer: from a tensor of each input to the outputs by name.
        signatures: by which the function is asked.
        **inputs: dtype of each input, then the shape of a row, such as `instances=("float32", 3)`.
    """
    import tensorflow as tf

    specs = [tf.TensorSpec((None, *shape), dtype, name=name) for name, (dtype, *shape) in inputs.items()]
    function = tf.function(answer).get_concrete_function(*specs)
    tf.saved_model.save(tf.Module(), str(folder), signatures=dict.fromkeys(signatures, function))
    return folder


def model_folder(folder, weights="weights", **extra):
    """Writes a graph and weights that are texts, and JSON files of `assets.extra` by name; returns the folder."""
    (folder / "variables").mkdir(parents=True)
    (folder / "saved_model.pb").write_text("graph")
    (folder / "variables" / "data").write_text(weights)
    return write_extra(folder, **extra)


def write_extra(folder, **extra):
    """Writes the files next to a model, such as its `model_card`; returns the folder."""
    (folder / "assets.extra").mkdir(exist_ok=True)
    for name, content in extra.items():
        (folder / "assets.extra" / f"{name}.json").write_text(json.dumps(content))
    return folder


def weights_of(folder):
    """The text that `model_folder` wrote."""
    return (folder / "variables" / "data").read_text()
