"""Programs other than TensorFlow's Python read exported models and answer the same. `make engines` brings them."""

import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("PIL")
pytest.importorskip("tensorflow_text")
pytest.importorskip("tensorflow_serving.apis")

sys.path.insert(0, str(Path(__file__).parent))
from exported_kinds import KINDS, export_kind
from install import JAVA_JARS, OPENVINO, ROOT
from readers import by_java, by_openvino, by_tensorflow, difference, libraries_for, numbers_only, of_numbers

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("readers")]
CLOSE = 1e-5
OF_NUMBERS = ["classes of vectors", "classes of pixels", "ratings of vectors", "preferences of vectors"]


def needs(path):
    return pytest.mark.skipif(not path.exists(), reason=f"no {path.relative_to(ROOT)}: run `make engines`")


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Kind -> its folder, requests, and TensorFlow's answers; each made once."""

    @cache
    def make(kind):
        path = tmp_path_factory.mktemp("model") / "1"
        requests = export_kind(kind, path)
        return path, requests, by_tensorflow(path, requests)

    return make


@needs(JAVA_JARS)
@pytest.mark.parametrize("kind", KINDS)
def test_tensorflow_for_java_answers_every_signature_alike(kind, exported):
    path, requests, wanted = exported(kind)
    found, said = by_java(path, requests, libraries_for(kind))
    assert said["signatures"].split() == sorted(requests)
    assert difference(found, wanted) < CLOSE


@needs(JAVA_JARS)
def test_java_reads_a_tagger_only_with_the_operations_of_tensorflow_text(exported):
    path, requests, _ = exported("tags of sentences, CRF")
    with pytest.raises(RuntimeError, match="Op type not registered 'RegexSplitWithOffsets'"):
        by_java(path, requests)


@needs(OPENVINO)
@pytest.mark.parametrize("kind", OF_NUMBERS)
def test_openvino_answers_signatures_of_numbers_alike(kind, exported):
    path, requests, wanted = exported(kind)
    numeric = of_numbers(requests)
    assert numeric == [name for name in requests if name != "annotators"]
    found = {signature: by_openvino(path, signature, requests[signature]) for signature in numeric}
    assert difference(found, {signature: numbers_only(wanted[signature]) for signature in numeric}) < CLOSE


@needs(OPENVINO)
@pytest.mark.parametrize("kind", OF_NUMBERS)
def test_openvino_reads_no_table_of_names(kind, exported):
    path, requests, _ = exported(kind)
    with pytest.raises(RuntimeError, match="Conversion is failed for: HashTableV2, LookupTableFindV2"):
        by_openvino(path, "annotators", requests["annotators"])


def test_a_difference_is_found():
    wanted = {"s": {"x": np.array([1.0, 100.0]), "t": np.array([b"a"], object)}}
    assert difference({"s": {"x": np.array([1.0, 101.0]), "t": np.array([b"a"], object)}}, wanted) == pytest.approx(
        0.01
    )
    for other in (
        {"s": {"x": np.array([1.0, 100.0])}},
        {"s": {"x": np.array([1.0]), "t": np.array([b"a"], object)}},
        {"s": {"x": np.array([1.0, 100.0]), "t": np.array([b"b"], object)}},
        {},
    ):
        with pytest.raises(ValueError, match="for"):
            difference(other, wanted)
