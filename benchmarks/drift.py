"""How large drift is by chance: divergences between samples of one distribution, and of shifted ones.

    python benchmarks/drift.py

Columns: values per sample; the largest of 20 draws of two samples of the same normal distribution (Jensen-Shannon
divergence) and of five equally likely categories (L-infinity); the median where the mean is shifted by half a standard
deviation, and where values are multiplied by 50 and moved by 10.
"""

import numpy as np
import pandas as pd
import tensorflow_data_validation as tfdv

DRAWS = 20


def statistics(size: int, generator: np.random.Generator, scale: float = 1.0, shift: float = 0.0):
    columns = {"x": scale * generator.normal(size=size) + shift, "label": generator.choice(list("abcde"), size)}
    return tfdv.generate_statistics_from_dataframe(pd.DataFrame(columns))


def distances(now, before) -> dict[str, float]:
    schema = tfdv.infer_schema(before)
    tfdv.get_feature(schema, "x").drift_comparator.jensen_shannon_divergence.threshold = 1.0
    tfdv.get_feature(schema, "label").drift_comparator.infinity_norm.threshold = 1.0
    anomalies = tfdv.validate_statistics(now, schema, previous_statistics=before)
    return {info.path.step[0]: info.drift_measurements[0].value for info in anomalies.drift_skew_info}


def main() -> None:
    print(f"{'values':>7} {'same, numbers':>14} {'same, classes':>14} {'half a deviation':>17} {'x 50 + 10':>10}")
    for size in (50, 100, 500, 2000):
        generator = np.random.default_rng(0)
        same, shifted, scaled = [], [], []
        for _ in range(DRAWS):
            before = statistics(size, generator)
            same.append(distances(statistics(size, generator), before))
            shifted.append(distances(statistics(size, generator, shift=0.5), before)["x"])
            scaled.append(distances(statistics(size, generator, 50, 10), before)["x"])
        largest = [max(values[name] for values in same) for name in ("x", "label")]
        print(f"{size:7} {largest[0]:14.3f} {largest[1]:14.3f} {np.median(shifted):17.3f} {np.median(scaled):10.3f}")


if __name__ == "__main__":
    main()
