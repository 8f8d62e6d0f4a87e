"""Forward-backward and Viterbi against every path there is; then the models that stand on them."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tagged_rows import crowd_of_rows

from crowdzoo import Annotations, DataError
from crowdzoo.aggregation import BayesianSequenceCombination, ConvergenceWarning, HMMCrowd
from crowdzoo.aggregation.engine.markov_chain import LogChain, forward_backward, viterbi
from crowdzoo.sequences import CrowdSequences, TagSet, allowed_tags, tag_problems, tags_of

pytestmark = pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")

MODELS = [HMMCrowd, BayesianSequenceCombination]
both = pytest.mark.parametrize("model", MODELS)

# === Chains ===


@st.composite
def chains(draw):
    """A chain with forbidden steps, sentences of 0 to 4 tokens, and weights; class 0 is always allowed."""
    seed, num_classes = draw(st.integers(0, 2**32 - 1)), draw(st.integers(1, 3))
    rng = np.random.default_rng(seed)
    scale = draw(st.sampled_from([1.0, 300.0]))

    def logs(*shape):
        values = rng.normal(size=shape) * scale
        values[rng.random(shape) < 0.3] = -np.inf
        values[(0,) * len(shape)] = 0.0
        return values

    lengths = draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    starts = np.concatenate([[0], np.cumsum(lengths)])
    emissions = rng.normal(size=(int(starts[-1]), num_classes)) * scale
    return LogChain(logs(num_classes), logs(num_classes, num_classes), logs(num_classes)), emissions, starts


def all_paths(chain, emissions):
    """Every path of one sentence and its log weight."""
    length, num_classes = emissions.shape
    for path in product(range(num_classes), repeat=length):
        weight = chain.first[path[0]] + chain.last[path[-1]] + emissions[np.arange(length), path].sum()
        yield path, weight + sum(chain.after[before, after] for before, after in pairwise(path))


@settings(deadline=None)
@given(chains())
def test_sums_and_best_paths_are_those_of_all_paths(drawn):
    chain, emissions, starts = drawn
    num_classes = emissions.shape[1]
    posteriors = np.zeros_like(emissions)
    first, after, total = np.zeros(num_classes), np.zeros((num_classes, num_classes)), 0.0
    found_path = viterbi(chain, emissions, starts)
    for begin, end in pairwise(starts):
        if begin == end:
            continue
        paths, weights = zip(*all_paths(chain, emissions[begin:end]), strict=True)
        weights = np.array(weights)
        log_sum = weights.max() + np.log(np.exp(weights - weights.max()).sum())
        total += log_sum
        for path, chance in zip(paths, np.exp(weights - log_sum), strict=True):
            posteriors[np.arange(begin, end), path] += chance
            first[path[0]] += chance
            np.add.at(after, (path[:-1], path[1:]), chance)
        own = dict(zip(paths, weights, strict=True))[tuple(found_path[begin:end].tolist())]
        assert own == pytest.approx(weights.max(), rel=1e-12, abs=1e-9)
    found = forward_backward(chain, emissions, starts)
    np.testing.assert_allclose(found.posteriors, posteriors, atol=1e-9)
    np.testing.assert_allclose(found.first, first, atol=1e-9)
    np.testing.assert_allclose(found.after, after, atol=1e-9)
    assert found.log_normaliser == pytest.approx(total, rel=1e-10, abs=1e-9)


def test_long_sentences_do_not_underflow():
    # 20,000 tokens of weight e^-50 each, two classes that never meet: the sum is two paths
    emissions = np.full((20_000, 2), -50.0)
    stay = np.array([[0.0, -np.inf], [-np.inf, 0.0]])
    found = forward_backward(LogChain(np.zeros(2), stay, np.zeros(2)), emissions, np.array([0, 20_000]))
    assert found.log_normaliser == pytest.approx(-50.0 * 20_000 + np.log(2))
    np.testing.assert_allclose(found.posteriors, 0.5)
    np.testing.assert_allclose(found.after, np.eye(2) * 19_999 / 2)


# === Crowds ===

CLASSES = allowed_tags(["X", "Y"])


def crowd_of(sentences, num_annotators=None, scheme="BIO", types=("X", "Y"), words=None):
    """CrowdSequences of a list of {annotator: tags}, and the length where nobody says anything."""
    tag_set = TagSet(allowed_tags(types, scheme), scheme)
    rows, lengths = [], []
    for task, said in enumerate(sentences):
        answers = said if isinstance(said, dict) else {}
        rows += [(task, who, tag_set.codes(tags.split())) for who, tags in answers.items()]
        lengths.append(said if isinstance(said, int) else len(next(iter(said.values())).split()))
    tokens = words or [[f"w{task}.{place}" for place in range(length)] for task, length in enumerate(lengths)]
    return crowd_of_rows(
        rows, num_annotators or 1 + max(row[1] for row in rows), tag_set.classes, tokens, scheme=scheme
    )


def simulated(num_sentences=300, num_annotators=8, redundancy=4, seed=0, scheme="BIO"):
    """Sentences with spans of two types, annotators who miss, and mistake X for Y, more or less often."""
    rng = np.random.default_rng(seed)
    tag_set = TagSet(allowed_tags(["X", "Y"], scheme), scheme)
    misses, mistakes = np.linspace(0.02, 0.4, num_annotators), np.linspace(0.3, 0.05, num_annotators)
    gold, rows = [], []
    for task in range(num_sentences):
        length = int(rng.integers(4, 15))
        spans, place = [], int(rng.integers(0, 3))
        while place < length:
            end = min(length, place + int(rng.integers(1, 4)))
            spans.append((str(rng.choice(["X", "Y"])), place, end))
            place = end + int(rng.integers(0, 5))
        gold.append(tag_set.codes(tags_of(spans, length, scheme)))
        for who in sorted(rng.permutation(num_annotators)[:redundancy].tolist()):
            said = [
                ("Y" if type_ == "X" and rng.random() < mistakes[who] else type_, *edges)
                for type_, *edges in spans
                if rng.random() >= misses[who]
            ]
            rows.append((task, who, tag_set.codes(tags_of(said, length, scheme))))
    tokens = [[f"w{rng.integers(50)}" for _ in codes] for codes in gold]
    return crowd_of_rows(rows, num_annotators, tag_set.classes, tokens, gold, scheme=scheme), misses, mistakes


# === The model by brute force ===


def priors_by_hand(model):
    """Pseudo-counts `[context, true, said]` of O, B-X, I-X with 0.7 a cell and 1.5 more for what is right."""
    everything = 0.7 + 1.5 * np.eye(3)
    if model is HMMCrowd:
        return everything[None]
    # after O and at the beginning I-X is forbidden: who sees I-X says B-X then
    no_inside = np.array([[0.7 + 1.5, 0.7, 0.0007], [0.7, 0.7 + 1.5, 0.0007], [0.7, 0.7 + 1.5, 0.0007]])
    return np.array([no_inside, everything, everything, no_inside])


@both
@pytest.mark.parametrize("votes", [0, 0.6])
def test_posteriors_and_bound_are_those_of_all_paths(model, votes):
    """Without words, on two short sentences: beliefs from their definitions, sums over all paths one by one."""
    from scipy.special import digamma, gammaln

    crowd = crowd_of([{0: "B-X I-X O", 1: "B-X O O"}, {0: "O B-X", 2: "O O"}], types=("X",))
    settings_ = {"words": 0, "prior": 0.7, "diagonal": 1.5, "votes": votes, "transitions": 0.4}
    with pytest.warns(ConvergenceWarning):
        one = model(max_iter=1, tol=0, **settings_).fit(crowd)
    first_ok, after_ok, _ = crowd.tag_set.follows()
    prior = priors_by_hand(model)
    dense = crowd.annotations.to_dense()  # [N, T, R]

    def context(task, t, r):
        if model is HMMCrowd:
            return 0
        return 3 if t == 0 else dense[task, t - 1, r]

    def beliefs(first, after, says):
        """Expected logs under the Dirichlet posteriors, and their divergence, straight from the definitions."""

        def row(counts, pseudo):
            a = counts + pseudo
            logs = digamma(a) - digamma(a.sum())
            log_norm = gammaln(a).sum() - gammaln(a.sum())
            prior_norm = gammaln(pseudo).sum() - gammaln(pseudo.sum())
            return logs, float(counts @ logs - log_norm + prior_norm)

        total = 0.0
        log_first, log_after = np.full(3, -np.inf), np.full((3, 3), -np.inf)
        log_first[first_ok], part = row(first[first_ok], np.full(first_ok.sum(), 0.4))
        total += part
        for k in range(3):
            allowed = after_ok[k]
            log_after[k, allowed], part = row(after[k, allowed], np.full(allowed.sum(), 0.4))
            total += part
        log_says = np.empty((3, *prior.shape))
        for r in range(3):
            for c, k in product(range(len(prior)), range(3)):
                log_says[r, c, k], part = row(says[r, c, k], prior[c, k] + votes * voted[r, c, k])
                total += part
        return LogChain(log_first, log_after, np.zeros(3)), log_says, total

    def sums(posteriors, pair_chances):
        first, after, says = np.zeros(3), np.zeros((3, 3)), np.zeros((3, *prior.shape))
        for task, each in enumerate(posteriors):
            first += each[0]
            after += pair_chances[task]
            for t, chances in enumerate(each):
                for r in range(3):
                    if dense[task, t, r] >= 0:
                        says[r, context(task, t, r), :, dense[task, t, r]] += chances
        return first, after, says

    shares, pairs = [], []
    for task, length in enumerate(crowd.lengths):
        said = [dense[task, t][dense[task, t] >= 0] for t in range(length)]
        shares.append(np.array([[np.mean(tags == k) for k in range(3)] for tags in said]))
        # a pair of tags counts for each annotator of the sentence alike
        who = [r for r in range(3) if dense[task, 0, r] >= 0]
        pair = np.zeros((3, 3))
        for t, r in product(range(1, length), who):
            pair[dense[task, t - 1, r], dense[task, t, r]] += 1 / len(who)
        pairs.append(pair * after_ok)
    current = sums(shares, pairs)
    current = (current[0] * first_ok, *current[1:])
    voted = current[2]
    history = []
    for _ in range(2):
        chain, log_says, divergence = beliefs(*current)
        total, posteriors, pairs = -divergence, [], []
        for task, length in enumerate(crowd.lengths):
            said = dense[task]
            emissions = np.array(
                [
                    sum(log_says[r, context(task, t, r), :, said[t, r]] for r in range(3) if said[t, r] >= 0)
                    for t in range(length)
                ]
            )
            paths, weights = zip(*all_paths(chain, emissions), strict=True)
            log_sum = np.logaddexp.reduce(weights)
            total += log_sum
            each, pair = np.zeros((length, 3)), np.zeros((3, 3))
            for path, chance in zip(paths, np.exp(np.array(weights) - log_sum), strict=True):
                each[np.arange(length), path] += chance
                np.add.at(pair, (path[:-1], path[1:]), chance)
            posteriors.append(each)
            pairs.append(pair)
        history.append(total)
        counts = current
        current = sums(posteriors, pairs)
    np.testing.assert_allclose(one.history, history, rtol=1e-10)
    np.testing.assert_allclose(one.posteriors, np.concatenate(posteriors), atol=1e-10)
    if model is HMMCrowd:
        says = (counts[2] + votes * voted + prior)[:, 0]
        np.testing.assert_allclose(one.confusions, says / says.sum(axis=2, keepdims=True), atol=1e-8)
    after = (counts[1] + 0.4) * after_ok
    np.testing.assert_allclose(one.transitions, after / after.sum(axis=1, keepdims=True), atol=1e-10)


@both
def test_a_word_that_nobody_labelled_tells_nothing(model):
    words = [["tree"]] * 10 + [["oslo"]] * 10 + [["new"], ["oslo"]]
    said = [{0: "O", 1: "O"}] * 10 + [{0: "B-X", 1: "B-X"}] * 10 + [1, 1]
    result = model(words=0.1).fit(crowd_of(said, types=("X",), words=words))
    # half of the labelled sentences begin with B-X
    assert result.posteriors[20, 1] == pytest.approx(0.5, abs=0.02)
    assert result.posteriors[21, 1] > 0.95


@both
def test_the_likelihood_is_that_of_the_means(model):
    """Sentences of one token and one word, which is certain: first tags and confusions say it all."""
    said = [{0: "B-X", 1: "B-X"}, {0: "B-X", 1: "O"}, {0: "O"}, {0: "O", 1: "O"}]
    result = model(words=0.3).fit(crowd_of(said, types=("X",), words=[["w"]] * 4))
    codes = {"O": 0, "B-X": 1}
    expected = sum(
        np.log(sum(result.first[k] * np.prod([result.confusions[r, k, codes[tag]] for r, tag in each.items()])
                   for k in range(2)))
        for each in said
    )  # fmt: skip
    assert result.log_likelihood == pytest.approx(expected, rel=1e-6)


# === What both promise ===


@both
@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.ConvergenceWarning")
@pytest.mark.parametrize("scheme", ["BIO", "IOBES"])
def test_the_bound_never_falls_and_tags_are_valid(model, scheme):
    crowd, _, _ = simulated(80, seed=3, scheme=scheme)
    result = model(max_iter=60, tol=0, words=0.2).fit(crowd)
    assert len(result.history) > 5
    assert np.diff(result.history).min() > -1e-9 * abs(result.history[-1])
    assert all(not tag_problems(tags, scheme) for tags in result.tags())
    np.testing.assert_allclose(result.posteriors.sum(axis=1), 1)
    np.testing.assert_allclose(result.confusions.sum(axis=2), 1)
    np.testing.assert_allclose(result.transitions.sum(axis=1), 1)
    assert np.isfinite(result.log_likelihood)


@both
def test_renamed_annotators_and_shuffled_rows_change_nothing(model):
    crowd, _, _ = simulated(60, seed=5)
    plain = model().fit(crowd)
    ann, rng = crowd.annotations, np.random.default_rng(0)
    rows, other = rng.permutation(len(ann)), rng.permutation(8)
    shuffled = Annotations(
        "sequence", ann.task_ids[rows], other[ann.annotator_ids[rows]], ann.labels[rows], ann.tasks, ann.annotators,
        ann.classes, positions=ann.positions[rows],
    )  # fmt: skip
    again = model().fit(CrowdSequences(crowd.tokens, shuffled))
    np.testing.assert_allclose(again.posteriors, plain.posteriors, atol=1e-8)
    np.testing.assert_array_equal(again.labels, plain.labels)
    np.testing.assert_allclose(again.confusions[other], plain.confusions, atol=1e-8)
    np.testing.assert_allclose(again.history, plain.history, rtol=1e-10)


@both
def test_sentences_that_nobody_labelled_get_tags_and_teach_nothing(model):
    said = [{0: "B-X I-X O", 1: "B-X O O"}, {0: "O B-X", 2: "O O"}, {1: "B-Y", 2: "B-Y"}]
    few = model().fit(crowd_of(said, types=("X", "Y")))
    many = model().fit(crowd_of([said[0], 3, *said[1:], 1], types=("X", "Y")))
    np.testing.assert_allclose(many.history, few.history, rtol=1e-12)
    np.testing.assert_allclose(many.posteriors[[0, 1, 2, 6, 7, 8]], few.posteriors, atol=1e-12)
    assert not tag_problems(many.tags_of(1))
    assert np.isfinite(many.posteriors).all()
    assert many.annotators_per_task.tolist() == [2, 0, 2, 2, 0]


@both
def test_annotations_without_tokens_do_as_well(model):
    crowd, _, _ = simulated(40, seed=7)
    bare = model(words=0).fit(crowd.annotations)
    np.testing.assert_allclose(bare.posteriors, model(words=0).fit(crowd).posteriors, atol=1e-12)
    # and words do not matter to them
    np.testing.assert_allclose(
        model(words=1.0).fit(crowd.annotations).posteriors, bare.posteriors, rtol=1e-9, atol=1e-12
    )


@both
def test_what_is_no_crowd_of_sentences_is_refused(model):
    with pytest.raises(DataError, match="kind 'classification'"):
        model().fit(Annotations.from_arrays([0], [0], ["O"]))
    part = Annotations(
        "sequence", np.array([0, 0, 0]), np.array([0, 0, 1]), np.zeros(3, int), np.arange(1), np.arange(2),
        np.array(CLASSES, object), positions=np.array([0, 1, 0]),
    )  # fmt: skip
    with pytest.raises(DataError, match="must label each of its tokens once"):
        model().fit(part)
    with pytest.raises(DataError, match="'noun' is not a tag"):
        model().fit(Annotations.from_arrays([0], [0], ["noun"], kind="sequence", position=[0]))
