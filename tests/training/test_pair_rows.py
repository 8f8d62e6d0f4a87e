"""Rows of the instances and tasks of the annotations are matched by the tasks' ids."""

import keras
import numpy as np
import pytest
from slow_cases import quick

from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError
from crowdzoo.instances import VECTORS, Instances
from crowdzoo.layers import CrowdsourcedLayer, DoctorNet
from crowdzoo.models import CrowdModel
from crowdzoo.training.pair_rows import pair_rows

# the label of a task is its number, and so is its instance's only feature: a shifted row shows
NAMES = np.array([f"img{i}" for i in range(12)])
X = np.arange(12.0)[:, None]
LABELLED = np.array([0, 1, 2, 4, 5, 8, 9, 10, 11])
WHO = [0, 1] * 4 + [0]
STRINGS = Annotations.from_arrays(NAMES[LABELLED], WHO, LABELLED, classes=np.arange(12))
NUMBERS = Annotations.from_arrays(LABELLED, WHO, LABELLED, classes=np.arange(12))
DENSE = np.where(np.arange(2) == np.array(WHO)[:, None], LABELLED[:, None], -1)
ORDER = np.random.default_rng(0).permutation(12)


def matched(x, annotations, tasks=None):
    """(instance, label) of every annotation."""
    x, paired = pair_rows(x, annotations, tasks)
    return sorted(zip(np.asarray(x)[paired.task_ids, 0].tolist(), paired.labels.tolist(), strict=True))


def table(**columns):
    return pytest.importorskip("pandas").DataFrame(columns)


@pytest.mark.parametrize(
    ("x", "annotations", "tasks"),
    [
        (X, STRINGS, NAMES),
        (X, STRINGS, NAMES.tolist()),
        (X[ORDER], STRINGS, NAMES[ORDER]),
        (X[LABELLED], STRINGS, NAMES[LABELLED]),
        (X, NUMBERS, range(12)),
        (X, NUMBERS, np.arange(12.0)),  # a column with gaps holds integers as floats
        (X, NUMBERS, [str(i) for i in range(12)]),  # and a text file holds them as text
        ({"instances": X[ORDER], "tasks": NAMES[ORDER]}, STRINGS, None),
        (Instances(NAMES[ORDER], VECTORS, X[ORDER].astype("float32")), STRINGS, None),
        (X[[0, 1, 4, 5, 2, 8, 9, 10, 11]][[0, 1, 7, 8, 4, 2, 3, 5, 6]], STRINGS, STRINGS.tasks),
    ],
)
def test_rows_are_matched_by_the_tasks_ids(x, annotations, tasks):
    assert matched(x, annotations, tasks) == [(i, i) for i in LABELLED.tolist()]


@pytest.mark.parametrize("index", [None, NAMES[ORDER]])
def test_a_frame_carries_ids_in_its_column_task_or_its_index(index):
    column = {"task": NAMES[ORDER]} if index is None else {}
    frame = table(**column, f0=X[ORDER, 0], gold=["?"] * 12) if index is None else table(f0=X[ORDER, 0])
    frame.index = frame.index if index is None else index
    assert matched(frame, STRINGS) == [(i, i) for i in LABELLED.tolist()]
    shuffled = table(f0=X[:, 0]).iloc[ORDER]  # its index is 0..11, shuffled
    assert matched(shuffled, NUMBERS) == [(i, i) for i in LABELLED.tolist()]


def test_the_annotations_get_a_task_for_each_row_and_the_instances_stay():
    x, paired = pair_rows(X, STRINGS, NAMES)
    assert x is X
    assert paired.tasks.tolist() == NAMES.tolist()
    assert paired.redundancy.tolist() == [1, 1, 1, 0, 1, 1, 0, 0, 1, 1, 1, 1]
    plain = Annotations.from_dense(np.zeros((12, 2), int))
    assert pair_rows(X, plain) == (X, plain)


@pytest.mark.parametrize(
    ("x", "annotations", "tasks", "message"),
    [
        # 1,500 rows and 1,300 tasks; strings in natural order
        (X, NUMBERS, None, r"12 rows, .* of 9 tasks, 0, 1, 2, …\. .* row i of x is task i, .*tasks=np\.arange\(len"),
        (X[LABELLED], STRINGS, None, r"tasks, 'img0', 'img1', 'img10', …\. Write fit\(x, annotations, tasks=ids\)"),
        (X[LABELLED], STRINGS, None, r"row i of x is annotations\.tasks\[i\], fit\(.* tasks=annotations\.tasks\)"),
        (X[LABELLED], NUMBERS, None, "rows of x cannot be matched with tasks"),
        (X, STRINGS, NAMES[1:], "12 rows, tasks has 11 ids"),
        (X, STRINGS, [*NAMES[1:], "img1"], "tasks holds 'img1' twice"),
        (X, STRINGS, [*NAMES[1:], ""], "tasks holds an empty name"),
        (X[:9], STRINGS, NAMES[:9], "3 of the 9 labelled tasks have no row in x, such as 'img10', 'img11', 'img9'; "),
        (X, STRINGS, range(12), r"9 of the 9 labelled tasks have no row .* ids of the rows are such as 0, 1, 2"),
        ({"instances": X, "tasks": NAMES}, STRINGS, NAMES, "leave out either these or the argument tasks="),
        ([X, X[1:]], NUMBERS, None, r"of the same length, with one row per task, got shapes \(12, 1\), \(11, 1\)"),
        (3.0, NUMBERS, None, r"got shapes \(\)"),
    ],
)
def test_what_does_not_say_which_row_is_which_task_is_refused_with_the_line_to_write(x, annotations, tasks, message):
    with pytest.raises(DataError, match=message):
        pair_rows(x, annotations, tasks)


# === A model ===


def a_model(crowd=None, outputs=12):
    keras.utils.set_random_seed(0)
    base = keras.Sequential([keras.Input((1,)), keras.layers.Dense(outputs, activation="softmax")])
    model = CrowdModel(base, crowd or CrowdsourcedLayer(2))
    model.compile("sgd", run_eagerly=True)
    return model


def test_a_model_learns_from_shuffled_rows_what_it_learns_from_sorted_ones():
    """Before, 1,500 rows and 1,300 tasks, or ids img0, img1, img10, trained on shifted rows without a word."""
    x = X.astype("float32")
    sorted_rows, shuffled = a_model(), a_model()
    once = {"epochs": 2, "batch_size": 12, "verbose": 0}
    sorted_rows.fit(x[LABELLED], DENSE, **once)
    carried = {"instances": x[ORDER], "tasks": NAMES[ORDER]}
    history = shuffled.fit(x[ORDER], STRINGS, tasks=NAMES[ORDER], validation_data=(carried, STRINGS), **once).history
    for one, other in zip(sorted_rows.get_weights(), shuffled.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    found = sorted_rows.evaluate(x[LABELLED], DENSE, verbose=0)
    assert shuffled.evaluate(x[ORDER], STRINGS, tasks=NAMES[ORDER], verbose=0) == pytest.approx(found, rel=1e-5)
    assert history["val_loss"][-1] == pytest.approx(found, rel=1e-5)
    posteriors = shuffled.posteriors(carried, STRINGS)  # a row for each row of x
    np.testing.assert_allclose(
        posteriors[np.argsort(ORDER)][LABELLED], sorted_rows.posteriors(x[LABELLED], DENSE), rtol=1e-4
    )
    np.testing.assert_array_equal(shuffled.predict(carried, verbose=0), shuffled.predict(x[ORDER], verbose=0))


def test_every_call_of_a_model_refuses_rows_that_nothing_names():
    model, arrays = a_model(), Annotations.from_dense(np.zeros((12, 2), int), classes=np.arange(12))
    with pytest.raises(DataError, match=r"Write fit\(x, annotations, tasks=ids\)"):
        model.fit(X, STRINGS)
    with pytest.raises(DataError, match=r"Write validation_data=\(\{.* 'tasks': ids\}, annotations\)"):
        model.fit(X, arrays, validation_data=(X, STRINGS))
    with pytest.raises(DataError, match=r"Write evaluate\(x, annotations, tasks=ids\)"):
        model.evaluate(X, STRINGS)
    with pytest.raises(DataError, match=r"Write posteriors\(x, annotations, tasks=ids\)"):
        model.posteriors(X, STRINGS)
    with pytest.raises(DataError, match="tasks= is for Annotations and frames"):
        model.fit(X, np.zeros((12, 2)), tasks=NAMES)
    with pytest.raises(DataError, match=r"no column of tasks.*'taks', .* Name it: task='NAME'"):
        model.fit(X, table(taks=NAMES, annotator=[0] * 12, label=[0] * 12), tasks=NAMES)
    with pytest.raises(DataError, match="x has 12 rows, the labels have 11"):
        model.fit(X, np.zeros((11, 2)))


def answers_frame(names=NAMES):
    return table(image=names[LABELLED], worker=WHO, label=LABELLED)


@pytest.mark.parametrize(
    ("library", "x_is_a_frame"), quick(("polars", True), slow=[("pandas", True), ("pandas", False), ("polars", False)])
)
def test_a_frame_of_answers_trains_as_its_annotations_do(library, x_is_a_frame):
    """Before, one message said to give tasks= with it, and the next one to leave tasks= out."""
    polars = pytest.importorskip(library)
    frame, x = answers_frame(), table(image=NAMES[ORDER], f0=X[ORDER, 0])
    if library == "polars":
        frame, x = polars.DataFrame(frame.to_dict("list")), polars.DataFrame(x.to_dict("list"))
    known = Annotations.from_arrays(NAMES[LABELLED], WHO, LABELLED)
    by_hand, by_frame = a_model(outputs=9), a_model(outputs=9)
    once = {"epochs": 2, "verbose": 0}
    by_hand.fit(X[ORDER].astype("float32"), known, tasks=NAMES[ORDER], **once)
    if x_is_a_frame:
        by_frame.fit(x, frame, task="image", validation_data=(x, frame), **once)
        found = by_frame.posteriors(x, frame, task="image")
    else:
        by_frame.fit(X[ORDER].astype("float32"), frame, task="image", tasks=NAMES[ORDER], **once)
        found = by_frame.posteriors(X[ORDER].astype("float32"), frame, task="image", tasks=NAMES[ORDER])
    for one, other in zip(by_hand.get_weights(), by_frame.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    x = X[ORDER].astype("float32")
    np.testing.assert_allclose(found, by_hand.posteriors(x, known, tasks=NAMES[ORDER]), rtol=1e-5)
    assert by_frame.annotators.tolist() == [0, 1]
    assert by_frame.classes.tolist() == LABELLED.tolist()


@pytest.mark.slow
def test_a_later_frame_is_read_by_the_names_that_the_model_learnt():
    """Of some annotators only, their codes would be those of others."""
    model = a_model(CrowdsourcedLayer(2), outputs=9)
    frame, x = answers_frame(), {"instances": X.astype("float32"), "tasks": NAMES}
    model.fit(x, frame, task="image", verbose=0)
    later = frame[frame["worker"] == 1]
    wanted = Annotations.from_frame(later, columns={"task": "image"}, annotators=[0, 1], classes=LABELLED)
    assert len(wanted) == 4
    assert model.evaluate(x, later, task="image", verbose=0) == model.evaluate(x, wanted, verbose=0)
    with pytest.raises(DataError, match="7 is not one of the annotators"):
        model.evaluate(x, later.assign(worker=7), task="image")
    loaded = a_model(outputs=9)
    with pytest.raises(DataError, match=r"Set model\.annotators and model\.classes"):
        loaded.evaluate(x, later, task="image")
    loaded.annotators, loaded.classes = model.annotators, model.classes
    loaded.set_weights(model.get_weights())
    assert loaded.evaluate(x, later, task="image", verbose=0) == model.evaluate(x, later, task="image", verbose=0)


def test_what_is_wrong_with_a_frame_is_said_with_the_line_to_write():
    model, x = a_model(outputs=9), X.astype("float32")
    frame = answers_frame()
    with pytest.raises(DataError, match=r"matched with tasks.* Write fit\(x, frame, task='image', tasks=ids\)"):
        model.fit(x, frame, task="image")
    model.fit(x, frame, task="image", tasks=NAMES, verbose=0)
    with pytest.raises(DataError, match=r"no column 'imge'(?s:.*)from_frame\(frame, columns="):
        model.fit(x, frame, task="imge")
    with pytest.raises(DataError, match=r"12 rows, the labels have 9: .* task='NAME'"):
        model.fit(x, answers_frame().drop(columns="worker").assign(who=0, image=0))
    with pytest.raises(DataError, match=r"task= .* of a frame .* y is Annotations: leave it out"):
        model.fit(x, STRINGS, task="image")


def test_other_numbers_of_classes_and_annotators_are_refused_with_the_line_to_write():
    annotations = Annotations.from_dense(np.arange(12)[:, None], classes=np.arange(12))
    with pytest.raises(DataError, match=r"20 classes, the annotations have 12, .* Dense\(annot"):
        a_model(CrowdsourcedLayer(1), outputs=20).fit(X, annotations)
    with pytest.raises(DataError, match=r"20 classes.*DoctorNet\(annotations\.num_annotators, ann"):
        a_model(DoctorNet(1, 20)).fit(X, annotations)
    with pytest.raises(DataError, match=r"3 annotators, .* have 1, 0\. .* CrowdsourcedLayer\(annot"):
        a_model(CrowdsourcedLayer(3)).evaluate(X, annotations)
    with pytest.raises(DataError, match="has 3 annotators, the annotations have 1"):
        a_model(CrowdsourcedLayer(3)).fit(X, np.zeros((12, 1)))
    unbuilt = CrowdModel(keras.Sequential([keras.layers.Dense(7, activation="softmax")]), CrowdsourcedLayer(1))
    few = annotations.select_tasks(np.arange(7))  # their codes fit the outputs, and mean other classes
    with pytest.raises(DataError, match="model has 7 classes, the annotations have 12"):
        unbuilt.fit(X[:7], few)
