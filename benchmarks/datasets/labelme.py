"""Makes the LabelMe files that crowdzoo ships, from the images and the raw answers.

    python benchmarks/datasets/labelme.py     # reads CROWDZOO_DATA/labelme-amt, writes crowdzoo/datasets/labelme

Every image (256 x 256 pixels) becomes 512 numbers. Two kinds of patches are taken from it, in four sizes on a dense
grid: gradient histograms (the layout of SIFT: Lowe, IJCV 60(2), 2004) and local colour. The patches of the image, and
those of its upper, middle and lower third, are each summed up in a Fisher vector (Perronnin, Sanchez and Mensink,
"Improving the Fisher kernel for large-scale image classification", ECCV 2010), and each of these eight Fisher vectors
is projected to 64 numbers.

Principal axes, Gaussian mixtures and projections are learnt from the images of the training split alone, without any
label. They are kept in labelme_codebook.npz next to this script, so that one image can be described by itself.
No trained network takes part. Needs Pillow, SciPy and scikit-learn (the group `dev`) and about five minutes.
"""

import argparse
import hashlib
import io
import json
import os
import sys
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image
from scipy import ndimage
from sklearn.mixture import GaussianMixture

sys.path.insert(0, str(Path(__file__).parents[1] / "reproduce"))
from needed import need

SIZE = 256  # pixels, height and width of every image
PATCH_SIZES = (16, 24, 32, 48)  # pixels
STEP = 8  # pixels between the centres of neighbouring patches
DIRECTIONS = 8  # of gradients
GAUSSIANS = 32
SAMPLES = 150  # patches an image that the codebook is learnt from
PROJECTED = 64  # numbers that are left of a Fisher vector
THIRDS = 3

SEED = 0
SPLIT_SEED = 0
EVAL_FRACTION = 0.25

# The class order of labels_train.txt and answers.txt; answers.json counts the classes alphabetically
CLASSES = ("highway", "insidecity", "tallbuilding", "street", "forest", "coast", "mountain", "opencountry")

ROOT = Path(__file__).resolve().parents[2]
CODEBOOK = Path(__file__).with_name("labelme_codebook.npz")


def describe(image, codebook):
    """The descriptor of one image.

    Args:
        image: uint8 [256, 256, 3], red, green and blue.
        codebook: dict of arrays as `learn_codebook` returns it.

    Returns:
        float32 [512]: gradients, then colour; for each the whole image, upper, middle and lower third, 64 numbers each.
    """
    parts = []
    for kind, patches in KINDS.items():
        vectors = fisher_vectors(patches(image), codebook, kind)
        parts.append((vectors - codebook[f"{kind}_fisher_mean"]) @ codebook[f"{kind}_projection"])
    return np.concatenate(parts).ravel().astype(np.float32)


# === Patches ===


def patch_grid(size):
    """Where the patches of one size lie.

    Returns:
        centres: int [C] of rows, and of columns.
        samples: int [C, 4], the rows (columns) where a patch's four bins are read.
    """
    centres = np.arange(size // 2, SIZE - size // 2 + 1, STEP)
    offsets = (np.arange(4) - 1.5) * (size // 4)
    return centres, np.clip(np.round(centres[:, None] + offsets).astype(int), 0, SIZE - 1)


def cut_patches(maps, size):
    """Reads the 4 x 4 bins of every patch: maps [H, W, F] -> [C * C, 16 * F]."""
    _, samples = patch_grid(size)
    bins = maps[samples[:, :, None, None], samples[None, None]]  # row, row bin, column, column bin, F
    return bins.transpose(0, 2, 1, 3, 4).reshape(len(samples) ** 2, -1)


def gradient_patches(image):
    """Histograms of gradient directions in 4 x 4 bins, as square roots: [patches, 128]."""
    grey = image.astype(np.float32) @ np.array([0.299, 0.587, 0.114], np.float32) / 255
    patches = []
    for size in PATCH_SIZES:
        width = size // 4
        down, right = np.gradient(ndimage.gaussian_filter(grey, width / 4))
        strength, angle = np.hypot(down, right), np.arctan2(down, right)
        apart = angle[..., None] - 2 * np.pi * np.arange(DIRECTIONS) / DIRECTIONS
        apart = np.abs((apart + np.pi) % (2 * np.pi) - np.pi)
        maps = strength[..., None] * np.maximum(0, 1 - apart * DIRECTIONS / (2 * np.pi))
        tent = np.concatenate([np.arange(1, width + 1), np.arange(width - 1, 0, -1)]) / width
        for axis in (0, 1):
            maps = ndimage.convolve1d(maps, tent, axis=axis, mode="constant")
        histograms = cut_patches(maps, size)
        # the small constants keep patches of empty sky near zero instead of blowing up their noise
        histograms = np.minimum(histograms / (np.linalg.norm(histograms, axis=1, keepdims=True) + 0.02), 0.2)
        patches.append(np.sqrt(histograms / (histograms.sum(axis=1, keepdims=True) + 0.1)))
    return np.concatenate(patches)


def colour_patches(image):
    """Mean and deviation of L*, a*, b* (in hundreds) in 4 x 4 bins: [patches, 96]."""
    lab = to_lab(image) / 100
    patches = []
    for size in PATCH_SIZES:
        window = (size // 4, size // 4, 0)
        mean = ndimage.uniform_filter(lab, window)
        variance = ndimage.uniform_filter(lab**2, window) - mean**2
        patches.append(cut_patches(np.concatenate([mean, np.sqrt(np.maximum(variance, 0))], axis=-1), size))
    return np.concatenate(patches)


def to_lab(image):
    """CIE L*a*b* (D65) of an sRGB image: uint8 [H, W, 3] -> float32 [H, W, 3]."""
    srgb = image / 255.0
    linear = np.where(srgb > 0.04045, ((srgb + 0.055) / 1.055) ** 2.4, srgb / 12.92)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = linear @ to_xyz.T / [0.9505, 1.0, 1.089]
    x, y, z = np.moveaxis(np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116), -1, 0)
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1).astype(np.float32)


KINDS = {"gradient": gradient_patches, "colour": colour_patches}
PATCH_AXES = {"gradient": 64, "colour": 48}  # principal axes of the patches that are kept


# === Fisher vectors ===


def fisher_vectors(patches, codebook, kind):
    """Fisher vectors of the whole image and its thirds, with signed square roots and unit length.

    Args:
        patches: [patches, F] as a function of `KINDS` returns them.
        codebook: dict of arrays.
        kind: "gradient" or "colour".

    Returns:
        [4, 2 * GAUSSIANS * D]: gradients of the log-likelihood by the means, then by the deviations.
    """
    mean, axes, weights, centres, variances = (codebook[f"{kind}_{name}"] for name in MIXTURE)
    x = (patches - mean) @ axes  # [P, D]
    log = np.log(weights) - 0.5 * (
        np.log(variances).sum(axis=1)
        + (x**2) @ (1 / variances).T
        - 2 * x @ (centres / variances).T
        + (centres**2 / variances).sum(axis=1)
    )
    share = np.exp(log - log.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)  # [P, GAUSSIANS]
    grids = [patch_grid(size)[0] for size in PATCH_SIZES]
    rows = np.concatenate([np.repeat(centres_of_size, len(centres_of_size)) for centres_of_size in grids])
    third = np.minimum(rows * THIRDS // SIZE, THIRDS - 1)
    vectors = []
    for chosen in [np.ones(len(x), bool), *(third == number for number in range(THIRDS))]:
        s, z = share[chosen], x[chosen]
        total, first, second = s.sum(axis=0)[:, None] / len(z), s.T @ z / len(z), s.T @ z**2 / len(z)
        by_mean = (first - centres * total) / np.sqrt(variances * weights[:, None])
        by_deviation = second - 2 * centres * first + (centres**2 - variances) * total
        by_deviation /= variances * np.sqrt(2 * weights[:, None])
        vector = np.concatenate([by_mean.ravel(), by_deviation.ravel()])
        vector = np.sign(vector) * np.sqrt(np.abs(vector))
        vectors.append(vector / np.linalg.norm(vector))
    return np.stack(vectors)


MIXTURE = ("patch_mean", "axes", "weights", "centres", "variances")


def learn_codebook(images):
    """Learns axes, mixtures and projections from images; there are no labels here.

    Args:
        images: list of uint8 [256, 256, 3].

    Returns:
        dict of float32 arrays; for both kinds: patch_mean [F], axes [F, D], weights [GAUSSIANS], centres and variances
        [GAUSSIANS, D], fisher_mean [2 * GAUSSIANS * D], projection [2 * GAUSSIANS * D, PROJECTED].
    """
    rng = np.random.default_rng(SEED)
    codebook = {}
    for kind, patches in KINDS.items():
        sample = []
        for image in images:
            image_patches = patches(image)
            sample.append(image_patches[rng.choice(len(image_patches), SAMPLES, replace=False)])
        sample = np.concatenate(sample).astype(np.float64)
        mean = sample.mean(axis=0)
        axes = np.linalg.svd(np.cov((sample - mean).T))[0][:, : PATCH_AXES[kind]]
        mixture = GaussianMixture(
            GAUSSIANS, covariance_type="diag", max_iter=30, tol=1e-2, init_params="k-means++", random_state=SEED
        )
        mixture.fit((sample - mean) @ axes)
        learnt = (mean, axes, mixture.weights_, mixture.means_, mixture.covariances_)
        for name, array in zip(MIXTURE, learnt, strict=True):
            codebook[f"{kind}_{name}"] = array.astype(np.float32)
        print(f"{kind}: mixture of {GAUSSIANS} Gaussians from {len(sample):,} patches", flush=True)

        vectors = np.concatenate([fisher_vectors(patches(image), codebook, kind) for image in images])
        mean = vectors.mean(axis=0)
        _, _, directions = np.linalg.svd(vectors - mean, full_matrices=False)
        # A turn spreads the variance evenly over the kept axes: models standardise their inputs, and
        # standardised principal axes would give the last one, mostly noise, the weight of the first.
        turn = np.linalg.qr(rng.standard_normal((PROJECTED, PROJECTED)))[0]
        codebook[f"{kind}_fisher_mean"] = mean.astype(np.float32)
        codebook[f"{kind}_projection"] = (directions[:PROJECTED].T @ turn).astype(np.float16).astype(np.float32)
        print(f"{kind}: projection from {len(vectors):,} Fisher vectors", flush=True)
    return codebook


def save_codebook(codebook, path):
    halved = {name: array.astype(np.float16) if "projection" in name else array for name, array in codebook.items()}
    np.savez_compressed(path, **halved)


def load_codebook(path=CODEBOOK):
    with np.load(path) as file:
        return {name: file[name].astype(np.float32) for name in file.files}


# === Files ===


def read_images(path):
    """Yields (task, class name, file name without number, uint8 [256, 256, 3]) in the order of the tasks.

    A member of the archive is called `train/<class>/<stem>-<task>.jpg`.
    """
    with zipfile.ZipFile(path) as archive:
        members = []
        for name in archive.namelist():
            if name.endswith(".jpg"):
                _, label, file = name.split("/")
                stem, task = file.removesuffix(".jpg").rsplit("-", 1)
                members.append((int(task), label, f"{stem}.jpg", name))
        for task, label, file, name in sorted(members):
            image = np.asarray(Image.open(io.BytesIO(archive.read(name)), formats=("JPEG",)).convert("RGB"))
            yield task, label, file, image


def read_answers(folder, tasks, files):
    """The crowd's answers, checked against the second copy of them.

    Args:
        folder: holds answers.json (classes in alphabetical order) and clasda/answers.txt (classes as in `CLASSES`).
        tasks: task ids of answers.json.
        files: file name of each task's image, which finds its row in answers.txt.

    Returns:
        list of (task, annotator column, class name), by task and annotator.
    """
    answers = json.loads((folder / "answers.json").read_text())
    names = (folder / "clasda" / "filenames_train.txt").read_text().split()
    row_of = {name: row for row, name in enumerate(names)}
    matrix = np.loadtxt(folder / "clasda" / "answers.txt", dtype=np.int64)
    alphabetical = sorted(CLASSES)
    result = []
    for task, file in zip(tasks, files, strict=True):
        labels_by_column = {int(column): alphabetical[label] for column, label in answers[str(task)].items()}
        row = matrix[row_of[file]]
        if labels_by_column != {int(column): CLASSES[row[column]] for column in np.flatnonzero(row >= 0)}:
            raise SystemExit(f"task {task} ({file}): answers.json and clasda/answers.txt disagree")
        result += [(task, column, labels_by_column[column]) for column in sorted(labels_by_column)]
    return result


def check_gold(folder, files, gold):
    """Compares the folder names of the images with labels_train.txt."""
    names = (folder / "clasda" / "filenames_train.txt").read_text().split()
    labels = np.loadtxt(folder / "clasda" / "labels_train.txt", dtype=np.int64)
    known = {name: CLASSES[label] for name, label in zip(names, labels, strict=True)}
    differing = [file for file, label in zip(files, gold, strict=True) if known[file] != label]
    if differing:
        raise SystemExit(f"{len(differing)} images lie in another class's folder, first {differing[0]}")


def sha256(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def write_csv(path, header, rows):
    lines = [header, *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main():
    data = Path(os.environ.get("CROWDZOO_DATA", ROOT.parent / "shared" / "data")) / "labelme-amt"
    parser = argparse.ArgumentParser(description="Makes the LabelMe files that crowdzoo ships.")
    parser.add_argument("--data", type=Path, default=data, help="folder labelme-amt (default: in CROWDZOO_DATA)")
    parser.add_argument("--out", type=Path, default=ROOT / "crowdzoo" / "datasets" / "labelme")
    parser.add_argument("--codebook", type=Path, default=CODEBOOK, help="where the codebook is written")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)

    tasks, gold, files, images = zip(*read_images(args.data / "labelme_train_jpg.zip"), strict=True)
    check_gold(args.data, files, gold)
    answers = read_answers(args.data, tasks, files)
    number = {column: code for code, column in enumerate(sorted({column for _, column, _ in answers}))}

    order = np.random.default_rng(SPLIT_SEED).permutation(len(tasks))
    held_out = set(order[: round(EVAL_FRACTION * len(tasks))].tolist())
    split = ["eval" if row in held_out else "train" for row in range(len(tasks))]

    codebook = learn_codebook([image for image, part in zip(images, split, strict=True) if part == "train"])
    save_codebook(codebook, args.codebook)
    codebook = load_codebook(args.codebook)  # as it is stored: halved
    features = np.array([describe(image, codebook) for image in images], dtype=np.float16)
    np.savez_compressed(args.out / "descriptors.npz", task=tasks, features=features)
    write_csv(args.out / "annotations.csv", "task,annotator,label", [(t, number[c], label) for t, c, label in answers])
    write_csv(args.out / "gold.csv", "task,gold,split", zip(tasks, gold, split, strict=True))
    outputs = ("annotations.csv", "descriptors.npz", "gold.csv")
    inputs = ["labelme_train_jpg.zip", "answers.json", "clasda/answers.txt", "clasda/labels_train.txt"]
    inputs.append("clasda/filenames_train.txt")
    record = {
        "script": "benchmarks/datasets/labelme.py",
        "script_sha256": sha256(__file__),
        "inputs_sha256": {name: sha256(args.data / name) for name in inputs},
        "codebook_sha256": sha256(args.codebook),
        "outputs_sha256": {name: sha256(args.out / name) for name in outputs},
        "tasks": len(tasks),
        "annotators": len(number),
        "annotations": len(answers),
        "features": features.shape[1],
        "eval_fraction": EVAL_FRACTION,
        "split_seed": SPLIT_SEED,
    }
    (args.out / "labelme.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    need("labelme-amt", flag="--data")
    main()
