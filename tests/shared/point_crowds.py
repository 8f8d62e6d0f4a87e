"""Crowds that mark points on images."""

import numpy as np

from crowdzoo.data.regions import MarkedImage
from crowdzoo.tables import Annotations

SIZE = (600, 800)


def image_of(*places, label="nest", size=SIZE):
    return MarkedImage.of(size, [{"category": label, "point": [*map(float, place)]} for place in places])


def simulated(seed=0, num_images=40):
    """Nests that six annotators mark to within 6 pixels; the last three miss, invent and shift points.

    Returns:
        The annotations, and image -> true points.
    """
    rng, rows, truth = np.random.default_rng(seed), [], {}
    for task in range(num_images):
        places = []
        while len(places) < 7:
            place = rng.uniform(40, (760, 560))
            if all(np.hypot(*(place - other)) > 60 for other in places):
                places.append(place)
        truth[task] = np.array(places)
        for who in ("ann", "bob", "cem", "misses", "invents", "shifted"):
            seen = [place for place in places if rng.random() < (0.5 if who == "misses" else 0.95)]
            seen = [place + rng.normal(0, 6, 2) + (12 if who == "shifted" else 0) for place in seen]
            seen += [rng.uniform((0, 0), SIZE[::-1]) for _ in range(rng.poisson(5 if who == "invents" else 0.2))]
            rows.append((task, who, image_of(*np.clip(np.reshape(seen, (-1, 2)), 0, SIZE[::-1]))))
    return Annotations.from_arrays(*map(list, zip(*rows, strict=True)), kind="region"), truth
