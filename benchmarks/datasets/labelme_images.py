"""Makes the small photographs of LabelMe that crowdzoo ships, from the originals.

    python benchmarks/datasets/labelme_images.py

It reads CROWDZOO_DATA/labelme-amt and writes crowdzoo/datasets/labelme_images. Each of the 1,000 photographs (256 x 256
pixels) is scaled to 64 x 64 (Lanczos) and saved as a JPEG file, named after its task: the number at the end of its name
in the source, as in answers.json. Needs Pillow (the group `dev`).
"""

import hashlib
import io
import json
import os
import sys
import zipfile
from pathlib import Path

from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1] / "reproduce"))
from needed import need

SIZE = 64  # pixels, height and width
QUALITY = 90
ROOT = Path(__file__).resolve().parents[2]
SCRIPT = Path(__file__).resolve()
OUT = ROOT / "crowdzoo" / "datasets" / "labelme_images"


def small(content):
    """A photograph's bytes in small."""
    stream = io.BytesIO()
    with Image.open(io.BytesIO(content), formats=("JPEG",)) as image:
        image.convert("RGB").resize((SIZE, SIZE), Image.Resampling.LANCZOS).save(stream, "JPEG", quality=QUALITY)
    return stream.getvalue()


def main():
    """Writes images.zip, and what it was made of."""
    source = Path(os.environ["CROWDZOO_DATA"]) / "labelme-amt" / "labelme_train_jpg.zip"
    with zipfile.ZipFile(source) as archive:
        names = [name for name in archive.namelist() if name.endswith(".jpg") and "__MACOSX" not in name]
        photographs = {int(name.removesuffix(".jpg").rpartition("-")[2]): small(archive.read(name)) for name in names}
    assert sorted(photographs) == list(range(1000)), len(photographs)
    OUT.mkdir(exist_ok=True)
    target = OUT / "images.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for task, content in sorted(photographs.items()):
            # a date of its own, so that the file's bytes depend on the photographs alone
            archive.writestr(zipfile.ZipInfo(f"{task}.jpg", (1980, 1, 1, 0, 0, 0)), content)
    about = {
        "script": SCRIPT.relative_to(ROOT).as_posix(),
        "script_sha256": hashlib.sha256(SCRIPT.read_bytes()).hexdigest(),
        "inputs_sha256": {source.name: hashlib.sha256(source.read_bytes()).hexdigest()},
        "outputs_sha256": {target.name: hashlib.sha256(target.read_bytes()).hexdigest()},
        "images": len(photographs),
        "height": SIZE,
        "width": SIZE,
        "quality": QUALITY,
    }
    (OUT / "labelme_images.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    print(f"{target}: {len(photographs):,} images, {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    need("labelme-amt")
    main()
