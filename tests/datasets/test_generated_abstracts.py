import numpy as np

from crowdzoo.datasets.generated_abstracts import generated_abstracts


def test_documents_and_spans_have_the_sizes_that_are_promised():
    crowd = generated_abstracts(40, 30, types=("A", "B"))
    assert crowd.lengths.min() >= 100
    assert crowd.lengths.max() < 300
    sizes = [end - start for spans in crowd.gold_spans() for _, start, end in spans]
    assert min(sizes) >= 5
    assert max(sizes) <= 40
    assert {name for spans in crowd.gold_spans() for name, _, _ in spans} == {"A", "B"}
    assert set(crowd.annotations.redundancy.tolist()) == {5, 6}
    # all activities are positive and uneven
    by_annotator = np.bincount(crowd.annotations.annotator_ids, minlength=30)
    assert by_annotator.max() > 5 * np.median(by_annotator)


def test_the_seed_decides():
    one, same, other = (generated_abstracts(3, 8, seed=seed) for seed in (1, 1, 2))
    assert one.tokens == same.tokens != other.tokens
    np.testing.assert_array_equal(one.annotations.labels, same.annotations.labels)
    np.testing.assert_array_equal(np.concatenate(one.gold), np.concatenate(same.gold))
