"""Our CRF against that of TensorFlow Addons, which ended with TensorFlow 2.15 and cannot be imported beside Keras 3.

    python benchmarks/crf_against_addons.py           # compares, prints, saves results/crf_against_addons.json

Draws scores, lengths, tags and transitions, and has both sides compute log-likelihoods (`tfa.text.crf_log_likelihood`)
and best paths (`tfa.text.crf_decode`): ours here on the TensorFlow backend, theirs in an environment of its own, which
`uv` makes in a temporary folder (some 2 GB, gone afterwards). Everything is float32 on both sides; a third answer in
float64 by NumPy says how near each is to the truth.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results" / "crf_against_addons.json"
PEERS = ("tensorflow==2.15.1", "tensorflow-addons==0.23.0")
# sentences, longest, tags, how far scores and transitions spread
CASES = {
    "short, weak": (64, 5, 3, 0.5),
    "news, weak": (64, 40, 9, 1.0),
    "news, strong": (64, 40, 9, 10.0),
    "IOBES, 18 types": (32, 60, 73, 3.0),
    "long": (8, 500, 17, 2.0),
}

THEIRS = """
import json, sys
import numpy as np
import tensorflow as tf
import tensorflow_addons as tfa
data, found = np.load(sys.argv[1]), {}
for case in json.loads(sys.argv[3]):
    scores, tags, lengths, transitions = (data[f"{case}/{key}"] for key in ("scores", "tags", "lengths", "transitions"))
    likelihoods, _ = tfa.text.crf_log_likelihood(scores, tags, lengths, tf.constant(transitions))
    paths, best = tfa.text.crf_decode(scores, tf.constant(transitions), lengths)
    with tf.GradientTape() as tape:
        watched = tf.constant(scores)
        tape.watch(watched)
        total = tf.reduce_sum(tfa.text.crf_log_likelihood(watched, tags, lengths, tf.constant(transitions))[0])
    found[f"{case}/gradient"] = tape.gradient(total, watched).numpy()
    found[f"{case}/likelihoods"], found[f"{case}/paths"], found[f"{case}/best"] = likelihoods, paths, best
np.savez(sys.argv[2], **found)
print(json.dumps({"tensorflow": tf.__version__, "tensorflow-addons": tfa.__version__, "numpy": np.__version__}))
"""


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args(arguments).seed
    inputs = _inputs(seed)
    with tempfile.TemporaryDirectory() as folder:
        theirs, their_versions = _their_answers(inputs, Path(folder))
    ours, our_versions = _our_answers(inputs)
    cases = {case: _compared(case, inputs, ours, theirs) for case in CASES}
    saved = {"seed": seed, "versions": {"ours": our_versions, "theirs": their_versions}, "cases": cases}
    RESULTS.write_text(json.dumps(saved, indent=2) + "\n")
    _print(saved)


def _inputs(seed: int) -> dict[str, np.ndarray]:
    """Scores [B, T, K], tags [B, T], lengths [B], one sentence the longest and one a single token, transitions."""
    rng = np.random.default_rng(seed)
    drawn: dict[str, np.ndarray] = {}
    for case, (sentences, longest, num_tags, spread) in CASES.items():
        lengths = rng.integers(1, longest + 1, sentences)
        lengths[:2] = longest, 1
        drawn[f"{case}/lengths"] = lengths.astype(np.int32)
        drawn[f"{case}/scores"] = (spread * rng.normal(size=(sentences, longest, num_tags))).astype(np.float32)
        drawn[f"{case}/tags"] = rng.integers(0, num_tags, (sentences, longest)).astype(np.int32)
        drawn[f"{case}/transitions"] = (spread * rng.normal(size=(num_tags, num_tags))).astype(np.float32)
    return drawn


def _their_answers(inputs: dict[str, np.ndarray], folder: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Runs TensorFlow Addons in a new environment on this Python."""
    environment, given, answered = folder / "environment", folder / "inputs.npz", folder / "answers.npz"
    np.savez(given, **inputs)  # type: ignore[arg-type]
    python = str(Path(sys.executable).resolve())
    subprocess.run(["uv", "venv", "--quiet", "--python", python, str(environment)], check=True)
    subprocess.run(["uv", "pip", "install", "--quiet", "--python", str(environment), *PEERS], check=True)
    done = subprocess.run(
        [str(environment / "bin" / "python"), "-c", THEIRS, str(given), str(answered), json.dumps([*CASES])],
        check=True, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONWARNINGS": "ignore"},
    )  # fmt: skip
    with np.load(answered) as found:
        return dict(found), {"python": platform.python_version(), **json.loads(done.stdout.splitlines()[-1])}


def _our_answers(inputs: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    os.environ["KERAS_BACKEND"] = "tensorflow"
    import keras
    import tensorflow as tf

    from crowdzoo.layers.crf import crf_decode, crf_log_likelihood, crf_marginals

    found = {}
    for case in CASES:
        scores, tags, lengths, transitions = _of(inputs, case)
        mask = np.arange(scores.shape[1]) < lengths[:, None]
        found[f"{case}/likelihoods"] = np.asarray(crf_log_likelihood(scores, tags, mask, transitions))
        found[f"{case}/paths"] = np.asarray(crf_decode(scores, mask, transitions))
        # the gradient of a path's log-likelihood by the scores is the path less the marginals
        marginals = np.asarray(crf_marginals(scores, mask, transitions))
        found[f"{case}/gradient"] = (np.eye(scores.shape[2])[tags] - marginals) * mask[..., None]
    versions = {"python": platform.python_version(), "tensorflow": tf.__version__, "keras": keras.__version__}
    return found, {**versions, "numpy": np.__version__}


def _compared(
    case: str, inputs: dict[str, np.ndarray], ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray]
) -> dict[str, Any]:
    """How far apart the answers are; paths where tokens are."""
    scores, tags, lengths, transitions = _of(inputs, case)
    mask = np.arange(scores.shape[1]) < lengths[:, None]
    exact, exact_marginals = _exact(scores, tags, lengths, transitions)
    paths = np.eye(scores.shape[2])[tags]
    marginals = [paths - side[f"{case}/gradient"] for side in (ours, theirs)]
    mine, other = ours[f"{case}/likelihoods"], theirs[f"{case}/likelihoods"]
    weights = [_path_weights(scores, side[f"{case}/paths"], lengths, transitions) for side in (ours, theirs)]
    return {
        "sentences": len(scores),
        "longest": scores.shape[1],
        "tags": scores.shape[2],
        "largest log-likelihood": float(np.abs(exact).max()),
        "log-likelihood, difference": float(np.abs(mine - other).max()),
        "log-likelihood, relative difference": float(np.max(np.abs(mine - other) / np.maximum(np.abs(exact), 1))),
        "marginals, difference": float(np.abs(marginals[0] - marginals[1])[mask].max()),
        "tokens": int(mask.sum()),
        "tokens with another best tag": int((ours[f"{case}/paths"] != theirs[f"{case}/paths"])[mask].sum()),
        "weight of the best path, difference": float(np.abs(weights[0] - weights[1]).max()),
        "log-likelihood, ours from float64": float(np.abs(mine - exact).max()),
        "log-likelihood, theirs from float64": float(np.abs(other - exact).max()),
        "marginals, ours from float64": float(np.abs(marginals[0] - exact_marginals)[mask].max()),
        "marginals, theirs from float64": float(np.abs(marginals[1] - exact_marginals)[mask].max()),
    }


def _of(inputs: dict[str, np.ndarray], case: str) -> tuple[np.ndarray, ...]:
    return tuple(inputs[f"{case}/{key}"] for key in ("scores", "tags", "lengths", "transitions"))


def _path_weights(scores: np.ndarray, paths: np.ndarray, lengths: np.ndarray, transitions: np.ndarray) -> np.ndarray:
    """Log-weights [B] of paths [B, T], in float64."""
    found = []
    for own, path, length in zip(scores.astype(np.float64), paths, lengths, strict=True):
        path = path[:length]
        steps = transitions.astype(np.float64)[path[:-1], path[1:]].sum()
        found.append(own[np.arange(length), path].sum() + steps)
    return np.array(found)


def _exact(
    scores: np.ndarray, tags: np.ndarray, lengths: np.ndarray, transitions: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Log-probabilities [B] of the tags and marginals [B, T, K] (zeros at padding), in float64."""
    norms, marginals = [], np.zeros(scores.shape)
    steps = transitions.astype(np.float64)
    for i, (own, length) in enumerate(zip(scores.astype(np.float64), lengths, strict=True)):
        forward, backward = [own[0]], [np.zeros(len(steps))]
        for t in range(1, length):
            forward.append(_log_sum(forward[-1][:, None] + steps, 0) + own[t])
            backward.append(_log_sum(steps + own[length - t] + backward[-1], 1))
        norms.append(_log_sum(forward[-1], 0))
        marginals[i, :length] = np.exp(np.array(forward) + np.array(backward[::-1]) - norms[-1])
    return _path_weights(scores, tags, lengths, transitions) - np.array(norms), marginals


def _log_sum(values: np.ndarray, axis: int) -> np.ndarray:
    largest = values.max(axis=axis, keepdims=True)
    return np.log(np.exp(values - largest).sum(axis=axis)) + largest.squeeze(axis)


def _print(saved: dict[str, Any]) -> None:
    print(
        " | ".join(f"{side}: " + ", ".join(f"{k} {v}" for k, v in vs.items()) for side, vs in saved["versions"].items())
    )
    keys = (
        "log-likelihood, difference", "marginals, difference", "marginals, ours from float64",
        "marginals, theirs from float64",
    )  # fmt: skip
    for case, row in saved["cases"].items():
        parts = [f"{key} {row[key]:.1e}" for key in keys]
        parts.append(f"best tags that differ {row['tokens with another best tag']} of {row['tokens']}")
        print(f"{case}: {'; '.join(parts)}")
    largest = {key: max(row[key] for row in saved["cases"].values()) for key in keys}
    print("largest: " + "; ".join(f"{key} {value:.1e}" for key, value in largest.items()))


if __name__ == "__main__":
    main()
