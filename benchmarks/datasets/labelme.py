"""Makes the LabelMe files that crowdzoo ships, from the images and the raw answers.

    python benchmarks/datasets/labelme.py     # reads CROWDZOO_DATA/labelme-amt, writes crowdzoo/datasets/labelme

Every image (256 x 256 pixels) becomes a vector of numbers computed from that image alone; no label, no other
image and no trained network takes part:

- GIST: energies of a log-Gabor filter bank (4 scales x 8 orientations) on a 4 x 4 grid, after a local contrast
  normalisation. Oliva and Torralba, "Modeling the shape of the scene", IJCV 42(3), 2001. 512 numbers.
- Colour: mean and standard deviation of the three CIE L*a*b* channels on the same grid. 96 numbers.

Needs Pillow and SciPy (the group `dev`). The same input gives the same files.
"""

import argparse
import hashlib
import io
import json
import os
import zipfile
from pathlib import Path

import numpy as np
import scipy.fft
from PIL import Image

SIZE = 256  # pixels, height and width of every image
CELLS = 4  # the grid is CELLS x CELLS
SCALES = 4
ORIENTATIONS = 8
BORDER = 16  # pixels mirrored around the image, so that its edges do not answer to the filters
EVAL_FRACTION = 0.25
SPLIT_SEED = 0

# The class order of labels_train.txt and answers.txt; answers.json counts the classes alphabetically
CLASSES = ("highway", "insidecity", "tallbuilding", "street", "forest", "coast", "mountain", "opencountry")

ROOT = Path(__file__).resolve().parents[2]


def describe(image):
    """The descriptor of one image.

    Args:
        image: uint8 [256, 256, 3], red, green and blue.

    Returns:
        float32 [608]: GIST (scale, orientation, row, column), then colour (row, column, channel; first the means,
        then the deviations).
    """
    return np.concatenate([gist(image), colour(image)]).astype(np.float32)


def gist(image):
    """Square roots of the mean log-Gabor energies: float [SCALES * ORIENTATIONS * CELLS * CELLS], by scale first."""
    grey = image.astype(np.float64) @ [0.299, 0.587, 0.114]
    grey = np.pad(normalise_contrast(grey), BORDER, mode="symmetric")
    spectrum = scipy.fft.fft2(grey)
    energy = np.abs(scipy.fft.ifft2(spectrum * log_gabor_bank(grey.shape[0])))
    return np.sqrt(cell_mean(energy[:, BORDER:-BORDER, BORDER:-BORDER])).ravel()


def normalise_contrast(grey, cycles=4.0, floor=0.2):
    """Removes slow changes of brightness and divides by the local contrast (section 3 of Oliva and Torralba).

    Args:
        grey: [H, H] brightness from 0 to 255.
        cycles: frequency, in cycles an image, where the low-pass filter falls to one half.
        floor: added to the local contrast, so that empty sky stays empty.
    """
    margin = 5
    log = np.pad(np.log1p(grey), margin, mode="symmetric")
    frequency = np.fft.fftfreq(log.shape[0]) * log.shape[0]
    squared = frequency[:, None] ** 2 + frequency[None, :] ** 2
    low_pass = np.exp(-squared * np.log(2) / cycles**2)

    def blur(x):
        return scipy.fft.ifft2(scipy.fft.fft2(x) * low_pass).real

    detail = log - blur(log)
    contrast = np.sqrt(np.abs(blur(detail**2)))
    return (detail / (floor + contrast))[margin:-margin, margin:-margin]


_BANKS = {}


def log_gabor_bank(size):
    """Transfer functions [SCALES * ORIENTATIONS, size, size] of the filters; made once for a size."""
    if size not in _BANKS:
        f = np.fft.fftfreq(size)  # cycles a pixel
        radius = np.hypot(f[:, None], f[None, :])
        radius[0, 0] = 1.0  # keeps the logarithm finite; the filters are set to 0 there
        angle = np.arctan2(f[:, None], f[None, :])
        bank = []
        for scale in range(SCALES):
            along = np.exp(-(np.log(radius / (0.3 / 1.85**scale)) ** 2) / (2 * np.log(0.6) ** 2))
            along[0, 0] = 0.0
            for orientation in range(ORIENTATIONS):
                turned = np.angle(np.exp(1j * (angle - np.pi * orientation / ORIENTATIONS)))
                bank.append(along * np.exp(-(turned**2) / (2 * (0.6 * np.pi / ORIENTATIONS) ** 2)))
        _BANKS[size] = np.stack(bank)
    return _BANKS[size]


def colour(image):
    """Mean and standard deviation of L*, a*, b* (in hundreds) in each cell: float [2 * CELLS * CELLS * 3]."""
    lab = to_lab(image).transpose(2, 0, 1) / 100
    mean = cell_mean(lab)
    deviation = np.sqrt(np.maximum(cell_mean(lab**2) - mean**2, 0))
    return np.concatenate([mean.transpose(1, 2, 0).ravel(), deviation.transpose(1, 2, 0).ravel()])


def to_lab(image):
    """CIE L*a*b* (D65) of an sRGB image: uint8 [H, W, 3] -> float [H, W, 3]."""
    srgb = image / 255.0
    linear = np.where(srgb > 0.04045, ((srgb + 0.055) / 1.055) ** 2.4, srgb / 12.92)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = linear @ to_xyz.T / [0.9505, 1.0, 1.089]
    x, y, z = np.moveaxis(np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116), -1, 0)
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)


def cell_mean(maps):
    """Means over the grid: [C, SIZE, SIZE] -> [C, CELLS, CELLS]."""
    side = SIZE // CELLS
    return maps.reshape(-1, CELLS, side, CELLS, side).mean(axis=(2, 4))


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
            image = np.asarray(Image.open(io.BytesIO(archive.read(name))).convert("RGB"))
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
        given = {int(column): alphabetical[label] for column, label in answers[str(task)].items()}
        row = matrix[row_of[file]]
        if given != {int(column): CLASSES[row[column]] for column in np.flatnonzero(row >= 0)}:
            raise SystemExit(f"task {task} ({file}): answers.json and clasda/answers.txt disagree")
        result += [(task, column, given[column]) for column in sorted(given)]
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
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)

    tasks, gold, files, features = [], [], [], []
    for task, label, file, image in read_images(args.data / "labelme_train_jpg.zip"):
        tasks.append(task)
        gold.append(label)
        files.append(file)
        features.append(describe(image))
        if len(tasks) % 100 == 0:
            print(f"{len(tasks)} images", flush=True)
    check_gold(args.data, files, gold)
    answers = read_answers(args.data, tasks, files)
    number = {column: code for code, column in enumerate(sorted({column for _, column, _ in answers}))}

    order = np.random.default_rng(SPLIT_SEED).permutation(len(tasks))
    held_out = set(order[: round(EVAL_FRACTION * len(tasks))].tolist())
    split = ["eval" if row in held_out else "train" for row in range(len(tasks))]

    np.savez_compressed(args.out / "descriptors.npz", task=tasks, features=np.array(features, dtype=np.float16))
    write_csv(args.out / "annotations.csv", "task,annotator,label", [(t, number[c], label) for t, c, label in answers])
    write_csv(args.out / "gold.csv", "task,gold,split", zip(tasks, gold, split, strict=True))
    outputs = ("annotations.csv", "descriptors.npz", "gold.csv")
    inputs = ["labelme_train_jpg.zip", "answers.json", "clasda/answers.txt", "clasda/labels_train.txt"]
    inputs.append("clasda/filenames_train.txt")
    record = {
        "script": "benchmarks/datasets/labelme.py",
        "script_sha256": sha256(__file__),
        "inputs_sha256": {name: sha256(args.data / name) for name in inputs},
        "outputs_sha256": {name: sha256(args.out / name) for name in outputs},
        "tasks": len(tasks),
        "annotators": len(number),
        "annotations": len(answers),
        "features": len(features[0]),
        "eval_fraction": EVAL_FRACTION,
        "split_seed": SPLIT_SEED,
    }
    (args.out / "labelme.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
