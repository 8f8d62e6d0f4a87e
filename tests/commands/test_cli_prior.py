"""`crowdzoo aggregate --prior`: a new batch without the old answers."""

import pytest
from command_line import run
from csv_files import read_csv, write_csv

HEADER = ("task", "annotator", "label")


@pytest.fixture(autouse=True)
def files(here):
    """Three agree and one always contradicts; then the contradictor and one of the three are alone."""
    truth = ["no", "yes", "owl"] * 8
    other = {"no": "yes", "yes": "no", "owl": "no"}
    rows = [(f"t{n}", who, truth[n] if who != "eve" else other[truth[n]]) for n in range(24) for who in WHO]
    write_csv("first.csv", HEADER, *rows)
    write_csv("second.csv", HEADER, *[(f"u{n}", who, label) for n, label in enumerate(["no", "yes"]) for who, label in
                                      (("ann", label), ("eve", other[label]))])  # fmt: skip
    write_csv("gold.csv", ("task", "gold"), ("u0", "owl"))


WHO = ("ann", "bob", "cem", "eve")


@pytest.mark.parametrize("method", ["robust", "dawid-skene", "hierarchical-dawid-skene", "ibcc"])
def test_an_earlier_result_decides_between_two_annotators(method):
    assert run("aggregate", "first.csv", "--method", method, "--out", "first") == 0
    assert run("aggregate", "second.csv", "--method", method, "--prior", "first", "--out", "second") == 0
    words = ("--prior", "second", "--out", "third.csv")  # it knows what the first one knew
    assert run("aggregate", "second.csv", "--method", method, *words) == 0
    assert [row["label"] for row in read_csv("third.csv")] == ["no", "yes"]
    assert run("next", "first.csv", "--prior", "second", "--out", "b.csv") == 0


def test_gold_may_have_a_class_that_only_the_earlier_result_has(capsys):
    assert run("aggregate", "first.csv", "--out", "first") == 0
    write_csv("many.csv", HEADER, *[(f"u{n}", "ann", ["no", "yes"][n % 2]) for n in range(20)])
    words = ("aggregate", "many.csv", "--gold", "gold.csv", "--use-gold", "--out", "out.csv")
    assert run(*words) == 3
    assert run(*words, "--prior", "first") == 0
    assert "owl" in [row["label"] for row in read_csv("out.csv")]


def test_what_cannot_use_a_prior_is_refused(capsys, here):
    assert run("aggregate", "first.csv", "--out", "first") == 0
    write_csv("ratings.csv", HEADER, ("t1", "ann", 1), ("t1", "bob", 2))
    assert run("aggregate", "ratings.csv", "--kind", "regression", "--out", "ratings") == 0
    capsys.readouterr()
    words = ("aggregate", "second.csv", "--out", "o.csv")
    for more, code, text in (
        (("--prior", "first", "--method", "glad"), 4, "GLAD cannot use an earlier result. Methods that can: dawid"),
        (("--prior", "first", "--multi-label"), 4, "--prior"),
        (("--prior", "first", "--kind", "regression"), 4, "--prior is for classes"),
        (("--prior", "ratings"), 3, "ratings holds an aggregation of ratings, not of classes"),
        (("--prior", "nothing"), 3, "nothing"),
    ):
        assert run(*words, *more) == code
        assert text in capsys.readouterr().err
    assert not (here / "o.csv").exists()


@pytest.mark.parametrize("command", ["aggregate", "next"])
def test_the_setting_of_the_same_name_is_not_called_an_option(command, capsys):
    out = ("--out", "o.csv") if command == "aggregate" else ()
    assert run(command, "first.csv", "--method", "dawid-skene", "--set", "prior=many", *out) == 4
    assert "DawidSkene: prior must be a number from 0" in capsys.readouterr().err
