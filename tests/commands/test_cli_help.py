"""`crowdzoo COMMAND --help`: headings, and the options of the kind of label alone."""

import re

import pytest

from crowdzoo.commands import main as cli
from crowdzoo.kinds import KINDS


@pytest.fixture
def help_of(capsys):
    """The help for words of a command line."""

    def shown(*words):
        with pytest.raises(SystemExit) as ended:
            cli.main(words)
        assert ended.value.code == 0
        return capsys.readouterr().out

    return shown


def headings(text):
    """Heading -> options below it."""
    sections = re.split(r"\n\n(?=[a-z][a-z -]+:\n)", text)[1:]
    return {each.partition(":")[0]: set(re.findall(r"^  (--[a-z-]+)", each, re.MULTILINE)) for each in sections}


def options_of(command):
    return {flag for flag in cli._parser().commands()[command]._option_string_actions if flag != "--debug"}


COMMANDS = [name for name in cli.COMMANDS if "--help-all" in options_of(name)]


def test_options_stand_under_headings(help_of):
    found = headings(help_of("aggregate", "--help"))
    assert list(found) == [
        "positional arguments", "options", "output", "instances and gold", "reading the annotations", "classification"
    ]  # fmt: skip
    assert found["instances and gold"] == {"--gold", "--gold-columns"}
    assert {"--platform", "--columns", "--encoding", "--image"} < found["reading the annotations"]
    assert {"--out", "--bom", "--force"} < found["output"]
    assert {"--calibrate", "--multi-label"} < found["classification"]


@pytest.mark.parametrize(
    ("kind", "has", "lacks"),
    [
        ("regression", {"--low", "--high", "--columns"}, {"--calibrate", "--layer", "--unit", "--use-gold"}),
        ("sequence", {"--scheme", "--on-bad-tags", "--layer"}, {"--columns", "--sheet", "--image", "--low"}),
        ("preference", {"--rankings", "--platform"}, {"--image", "--wide", "--scheme"}),
        ("free-text", {"--normalize", "--unit"}, {"--classes", "--rankings"}),
    ],
)
def test_help_for_a_kind_has_its_options_and_not_those_of_others(kind, has, lacks, help_of):
    text = help_of("aggregate", "--kind", kind, "--help")
    found = headings(text)
    assert has <= set().union(*found.values())
    assert not lacks & set(re.findall(r"--[a-z-]+", text.partition("positional arguments")[0]))  # usage
    assert not lacks & set().union(*found.values())
    assert not found.keys() & (KINDS.keys() - {kind})
    assert text == help_of("aggregate", "--help", f"--kind={kind}")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_all_shows_every_option(command, help_of):
    text = help_of(command, "--help-all")
    assert options_of(command) <= set(re.findall(r"(?<![\w-])--?[a-z-]+", text))
    assert text == help_of(command, "--help", "--help-all")


@pytest.mark.parametrize("words", [["--help", "--kind"], ["--help", "--kind", "none"]])
def test_help_before_a_kind_that_cannot_be_read_is_that_of_classes(words, help_of):
    assert "classification" in headings(help_of("aggregate", *words))


def test_options_that_are_not_shown_are_still_known(capsys, refusal_of):
    assert "--rankings are preferences" in refusal_of("aggregate", "nowhere.csv", "--out", "o", "--rankings")
    with pytest.raises(SystemExit):
        cli.main(["serve", "m", "--rankings"])
    assert "--rankings is an option of crowdzoo aggregate" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["--task", "regression"], "Did you mean '--kind regression'?"),
        (["--task=preference"], "Did you mean '--kind preference'?"),
        (["--anotator-table", "t.csv"], "Did you mean '--annotator-table'?"),
        (["more", "--acept-error", ".1"], "Did you mean '--accept-error'?"),
        (["--zzz", "1"], "unrecognized arguments: --zzz 1\n"),
    ],
)
def test_an_unknown_option_is_answered_with_the_one_that_was_meant(words, hint, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["aggregate", "a.csv", "--out", "o", *words])
    message = capsys.readouterr().err
    assert ended.value.code == 2
    assert hint in message
    assert message.startswith("crowdzoo aggregate: error: ")
    assert "`crowdzoo aggregate --help`" in message
