"""Makes the pictures of reports in docs/pictures: `make pictures`, or `docs/site/pictures.py [NAME ...]` for some.

For each kind of label it writes a small set of files, runs `crowdzoo report`, and takes headless Chromium's picture of
the page: the verdict, and one row of the table of tasks, opened. `report.png` is the first screen of a page.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import pandas as pd
from PIL import Image, ImageChops

from crowdzoo.commands.main import main as command
from crowdzoo.data import MarkedImage
from crowdzoo.datasets import generated_ner

FOLDER = Path(__file__).resolve().parents[1] / "pictures"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "chromium")
LARGEST = 60_000  # bytes
ANNOTATORS = ["ann", "bob", "cem", "dora", "eve"]
# Hides what is between the verdict and the opened row
SHORT = """
nav, footer, main > *, main > .both, #verdict p + p ~ p, .controls, .more, .tool, details { display: none; }
main > #verdict, main > #ROOM { display: block; }
#ROOM tbody tr:not(.detail, .detail *, :has(+ .detail)) { display: none; }
"""


class Picture(NamedTuple):
    """A page to take a picture of.

    Attributes:
        write: writes the files into the folder, and returns the words after `crowdzoo report`.
        room: the table with the opened row; "" for the whole first screen.
        row: the row that is opened, by its place on the page.
        size: width and largest height, in pixels.
    """

    write: Callable[[], list[str]]
    room: str = "tasks"
    row: int = 0
    size: tuple[int, int] = (720, 1500)


def labelme() -> list[str]:
    """Photographs of eight scenes, by 59 annotators."""
    run("datasets", "labelme-images", "--write", "data")
    return ["data/annotations.csv", "--title", "LabelMe"]


def photographs() -> list[str]:
    """The same, with the photographs."""
    return [*labelme(), "--instances", "data/images"]


def ratings() -> list[str]:
    """Ratings by simulated harsh and mild annotators."""
    run("datasets", "generated-ratings", "--write", "data")
    return ["data/annotations.csv", "--kind", "regression", "--title", "Ratings from 0 to 10"]


def sentences() -> list[str]:
    """Names in sentences, marked by simulated annotators."""
    run("datasets", "generated-ner", "--write", "data")
    return ["data/spans.jsonl", "--kind", "sequence", "--title", "Names in sentences"]


def preferences() -> list[str]:
    """Which of two answers is better, by five annotators, the last of whom guesses."""
    rng = np.random.default_rng(0)
    texts = [
        "Air scatters blue light more than red light, so blue light reaches us from everywhere in the sky.",
        "Sunlight is scattered by the air. Blue light is scattered most.",
        "Because of the way light is scattered.",
        "Blue light has a short wavelength.",
        "The sky reflects the blue of the oceans.",
        "The sky is blue because its colour is blue.",
        "Nobody knows.",
        "The air itself is dyed blue by the sun.",
    ]
    quality, care = np.array([2.2, 2.0, 0.9, 0.6, -0.4, -1.2, -2.0, -0.8]), np.array([2.0, 1.5, 1.5, 1.0, 0.0])
    names = np.array([f"answer {number}" for number in range(1, 9)])
    judge, left, right = np.array(
        [(j, *rng.permutation(pair)) for j in range(5) for pair in combinations(range(8), 2)]
    ).T
    chosen = rng.random(len(left)) < 1 / (1 + np.exp(care[judge] * (quality[right] - quality[left])))
    table = {"left": names[left], "right": names[right], "annotator": np.array(ANNOTATORS)[judge]}
    pd.DataFrame({**table, "label": np.where(chosen, "left", "right")}).to_csv("judgments.csv", index=False)
    pd.DataFrame({"task": names, "text": texts}).to_csv("texts.csv", index=False)
    return ["judgments.csv", "--kind", "preference", "--instances", "texts.csv", "--title", "Why is the sky blue?"]


def free_texts() -> list[str]:
    """Transcriptions by five annotators, who drop and change words."""
    rng = np.random.default_rng(0)
    rows = []
    for number, text in enumerate(generated_ner(40).texts):
        for annotator, errors in zip(ANNOTATORS, (0.03, 0.05, 0.1, 0.15, 0.4), strict=True):
            words = [slip(word, rng) if rng.random() < errors else word for word in text.split()]
            rows.append((f"clip {number + 1}", annotator, " ".join(filter(None, words)) or "-"))
    pd.DataFrame(rows, columns=["task", "annotator", "text"]).to_csv("texts.csv", index=False)
    return ["texts.csv", "--kind", "free-text", "--normalize", "words", "--title", "Transcriptions"]


def slip(word: str, rng: np.random.Generator) -> str:
    """A word as a hasty annotator writes it: not at all, or with two letters in the wrong order."""
    if len(word) < 4 or rng.random() < 0.5:
        return ""
    place = int(rng.integers(1, len(word) - 2))
    return word[:place] + word[place + 1] + word[place] + word[place + 2 :]


def several_labels() -> list[str]:
    """Which subjects an article is about, by five annotators; the last one names too many."""
    rng = np.random.default_rng(0)
    subjects = ["economy", "health", "politics", "sport"]
    titles = [
        "Parliament debates the price of medicines", "Stadium will cost twice as much as planned",
        "Marathon runners are warned of the heat", "Minister resigns over hospital contracts",
        "Wages rise faster than prices", "Cup final is decided on penalties",
        "New vaccine passes its last trial", "Election is called for the spring",
        "Cities want a tax on empty houses", "Doping ban for three swimmers",
        "Clinics close as nurses leave for better pay", "Government bails out the football league",
    ]  # fmt: skip
    truth = [{0, 1, 2}, {0, 3}, {1, 3}, {1, 2}, {0}, {3}, {1}, {2}, {0, 2}, {1, 3}, {0, 1}, {0, 2, 3}]
    rows = []
    for task, true in enumerate(truth):
        for annotator, (miss, invent) in zip(ANNOTATORS, [(0.1, 0.02)] * 4 + [(0.05, 0.35)], strict=True):
            chance = [1 - miss if subject in true else invent for subject in range(4)]
            named = [name for name, share in zip(subjects, chance, strict=True) if rng.random() < share]
            rows.append((f"article {task + 1}", annotator, "|".join(named)))
    pd.DataFrame(rows, columns=["task", "annotator", "label"]).to_csv("answers.csv", index=False)
    tasks = [f"article {number + 1}" for number in range(len(titles))]
    pd.DataFrame({"task": tasks, "text": titles}).to_csv("texts.csv", index=False)
    options = ["--multi-label", "--label-separator", "|", "--instances", "texts.csv"]
    return ["answers.csv", *options, "--title", "Subjects of articles"]


def regions() -> list[str]:
    """Outlines of cells in images of 230 x 160 pixels, by four annotators, the last of whom is careless."""
    rng = np.random.default_rng(0)
    angles = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    rows = []
    for number in range(24):
        cells = [(45 + 70 * place, rng.uniform(45, 115), *rng.uniform(18, 32, 2)) for place in range(3)]
        for annotator, scatter in zip([*ANNOTATORS[:3], "eve"], (1, 2, 3, 9), strict=True):
            marked = []
            for x, y, width, height in cells:
                if rng.random() < scatter / 30:
                    continue
                x, y = np.array([x, y]) + rng.normal(scale=scatter, size=2)
                radius = 1 + np.cumsum(rng.normal(scale=0.01 * scatter, size=24)) / 3
                outline = np.stack([x + width * radius * np.cos(angles), y + height * radius * np.sin(angles)], axis=1)
                marked.append({"category": "cell", "polygons": [outline.round(1).ravel().tolist()]})
            rows.append((f"{number + 1}.png", annotator, MarkedImage.of((160, 230), marked).text))
    pd.DataFrame(rows, columns=["task", "annotator", "label"]).to_csv("outlines.csv", index=False)
    return ["outlines.csv", "--kind", "region", "--title", "Cells"]


PICTURES = {
    "report": Picture(labelme, room="", size=(1100, 930)),
    "classes": Picture(photographs),
    "several_labels": Picture(several_labels),
    "ratings": Picture(ratings),
    "sequences": Picture(sentences),
    "regions": Picture(regions, row=3),
    "free_texts": Picture(free_texts),
    "preferences": Picture(preferences, room="divided"),
}


def main() -> None:
    """Makes the pictures that are named, or all."""
    for name in sys.argv[1:] or PICTURES:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            run("report", *PICTURES[name].write(), "--out", "report.html")
            save(picture_of(PICTURES[name]), FOLDER / f"{name}.png")


def run(*words: str) -> None:
    """A command of crowdzoo."""
    if code := command(words):
        raise SystemExit(f"crowdzoo {' '.join(words)}: exit code {code}")


def picture_of(picture: Picture) -> Image.Image:
    """Chromium's picture of report.html in the working directory."""
    page, link = Path("report.html").read_text(encoding="utf-8"), ""
    if picture.room:
        table = json.loads(re.findall('id="data">(.*?)</script>', page)[0])["tables"][picture.room]
        column = {"divided": "pair"}.get(picture.room, "task")
        link = f"#{column}-{quote(str(table['values'][column][picture.row]), safe='')}"
        page = re.sub("style-src '[^']*'", "style-src 'unsafe-inline'", page)
        page = page.replace("</style>", SHORT.replace("ROOM", picture.room) + "</style>", 1)
    Path("page.html").write_text(page, encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=10000"]
    size = f"--window-size={picture.size[0]},{picture.size[1]}"
    place = Path("page.html").resolve().as_uri() + link
    command_line = [CHROMIUM, *options, "--user-data-dir=profile", size, "--screenshot=page.png", place]
    subprocess.run(command_line, check=True, capture_output=True)
    return Image.open("page.png", formats=("PNG",)).convert("RGB")


def save(image: Image.Image, path: Path) -> None:
    """Without the empty part below, and with few colours."""
    background = Image.new("RGB", image.size, image.getpixel((image.width - 1, image.height - 1)))
    used = ImageChops.difference(image, background).getbbox()
    image = image.crop((0, 0, image.width, min(used[3] + 20, image.height)))
    image.quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)
    if path.stat().st_size > LARGEST:
        raise SystemExit(f"{path}: {path.stat().st_size:,} bytes, more than {LARGEST:,}")
    print(path, f"{path.stat().st_size:,} bytes", image.size)


if __name__ == "__main__":
    main()
