"""Fuzzing of the command line: words after `crowdzoo`, on small files, with training, serving and demos left out.

Unforeseen are an exception, exit code 1 with "This was not foreseen", a temporary file that stays, and a change of a
file that the command only reads.
"""

import contextlib
import io
import json
import os
import tempfile
import unittest.mock
from pathlib import Path

from command_line import actions_of
from hypothesis import strategies as st
from target import Target

from crowdzoo.commands import main as cli
from crowdzoo.commands.options import path as local_path
from crowdzoo.errors import ConfigError

ROWS = "".join(f"{task},{who},{'cat' if (task + ord(who)) % 3 else 'dog'}\n" for task in range(6) for who in "xyz")
SPANS = [
    {"task": "s1", "text": "Ann met Bob", "annotator": "x", "spans": [{"start": 0, "end": 3, "label": "PER"}]},
    {"task": "s1", "text": "Ann met Bob", "annotator": "y", "spans": []},
    {"task": "s1", "text": "Ann met Bob", "gold": True, "spans": [{"start": 8, "end": 11, "label": "PER"}]},
]
FILES = {
    "a.csv": "task,annotator,label\n" + ROWS,
    "bad.csv": "task,annotator,label\n" + ROWS + ",x,cat\n1,x,dog\n9\n",
    "strange.csv": "task,annotator,label\n$x$,[red],\x1b[31m\n$x$,\\frac{,Zürich\n2,\U0001f600,"
    + "long " * 2000
    + "\n",
    "p.csv": "left,right,annotator,label\na,b,x,left\nb,c,y,equal\nc,a,x,right\nc,a,y,left\n",
    "ratings.csv": "task,annotator,label\n1,x,1\n1,y,2.5\n2,x,4\n2,y,1e300\n",
    "i.csv": "task,f0,f1,gold\n" + "".join(f"{task},{task}.5,1,cat\n" for task in range(6)),
    "texts.csv": "task,text\n" + "".join(f"{task},some words\n" for task in range(3)),
    "texts.txt": "some words\n\nZürich\n",
    "gold.csv": "task,gold\n1,cat\n2,dog\n",
    "s.jsonl": "".join(json.dumps(line) + "\n" for line in SPANS),
    "s.txt": "token\tx\ty\n\nAnn\tB-PER\tO\nmet\tO\tO\n\n",
    "run.yaml": "name: pets\ndata:\n  annotations: a.csv\n  instances: i.csv\noutput:\n  root: out\n",
    "m.keras": "no archive",
    "m.names.json": '{"classes": ["cat", "dog"], "annotators": ["x"]}',
    "empty": "",
    "filled/file": "text",
    "served/1/saved_model.pb": "no model",
    "served/٣/saved_model.pb": "no model",
}
LINKS = {"link": "gold.csv", "dangling": "nowhere", "loop": "loop", "to-folder": "filled"}
NEVER_RUN = ("serve", "demo")
# short names, so that Hypothesis prints strategies in short
LONG = {
    "<300>": "x" * 300,
    "<254>": "x" * 250 + ".csv",
    "<nines>": "9" * 5000,
    "<60kB>": "y" * 60_000,
    "<deep>": "[" * 10_000,
}

_places = st.sampled_from(
    [*FILES, *LINKS, "pipe", "filled", "served", "nowhere", ".", "..", "", "/", "/dev/null", "/proc/x", "a.csv/x", "-",
     "new", "new/deep", "d/my results", "50%[x]*?",
     "Köln.png", "q.png", "new.keras", "<300>", "<254>",
     "gs://bucket/a.csv", "http://127.0.0.1:1", "file:///a.csv", "a\0b", "a\udc80b", "~", "~/x", "filled/../a.csv"]
)  # fmt: skip
_numbers = st.sampled_from(
    ["0", "1", "2", "-1", "1.5", "1e400", "nan", "-inf", "9" * 30, str(2**31), str(2**63), "<nines>", "0x10", "１"]
)  # fmt: skip
_texts = st.sampled_from(["", " ", "cat", "cat,dog", "cat,cat", "a\0", "\udc80", "none", "'", "%s", "{0}", "<60kB>"])
_values = st.one_of(
    _numbers, _texts, _places, st.text(st.characters(blacklist_characters="/"), max_size=10),
    st.sampled_from(["<deep>", "[1, 2]", "{}", "null", "true", '"x"', "[[]]", "&a [*a]", "2020-13-45", "'", "}"]),
)  # fmt: skip
_methods = st.sampled_from(
    ["dawid-skene", "majority-vote", "one-coin", "wawa", "glad", "mace", "bsc-seq", "rating-em", "rating-mean", "none",
     "span-majority-vote", "crowdsourced-layer", "crowd-layer", "aggregated"]
)  # fmt: skip
_names = st.sampled_from(["max_iter", "tol", "seed", "prior", "connection", "low", "name", "data.classes",
                          "training.epochs", "", "=", "a.b.c", "__class__"])  # fmt: skip
# few iterations: how long a method may take is what its own tests ask
_settings = st.one_of(
    st.tuples(_names, st.just("="), _values).map("".join), _values, st.just("max_iter=3"), st.just("training.epochs=1")
)


def _options(command):
    """Each option of a command with a value that its type may take, or with any."""
    found = []
    for action in actions_of(command):
        if not action.option_strings or action.option_strings[0] == "-h":
            continue
        flag = st.just(action.option_strings[-1])
        if action.nargs == 0:
            found.append(st.tuples(flag))
            continue
        if action.choices:
            likely = st.sampled_from([str(choice) for choice in action.choices])
        elif action.dest in ("settings", "overrides"):
            likely = _settings
        elif action.dest == "method":
            likely = _methods
        else:
            likely = _places if action.type is local_path else _numbers
        found.append(st.tuples(flag, st.one_of(likely, likely, likely, _values)))
        found[-1] |= st.tuples(flag.map("{}=--".format))
    return st.lists(st.one_of(found), max_size=4).map(lambda parts: [word for part in parts for word in part])


def _words(command, *likely):
    """A command with its arguments, mostly those that make sense, and options."""
    arguments = [st.one_of(st.just(word), st.just(word), _places) for word in likely]
    return st.tuples(st.just([command]), st.tuples(*arguments).map(list), _options(command)).map(
        lambda parts: [word for part in parts for word in part]
    )


def _with(words, *more):
    return st.tuples(words, st.sampled_from(more)).map(lambda parts: [*parts[0], *parts[1]])


LABELS = _with(
    st.one_of(*(_words("aggregate", name) for name in ("a.csv", "bad.csv", "strange.csv", "ratings.csv"))),
    ["--out", "new"], ["--out", "new", "--on-bad-rows", "reject", "--rejects", "r.csv"], ["--out", "filled"],
    ["--out", "new", "--kind", "regression"], [],
)  # fmt: skip
SENTENCES = _with(
    st.one_of(*(_words("aggregate", name) for name in ("s.jsonl", "s.txt"))), ["--out", "new", "--kind", "sequence"]
)
NEXT = _with(
    st.one_of(*(_words("next", name) for name in ("a.csv", "bad.csv", "strange.csv"))),
    ["--out", "new.csv"],
    ["--out", "new.json"],
    ["--out", "filled"],
    [],
).filter(
    lambda words: not any("--simulate".startswith(word) and len(word) > 3 for word in words)
)  # as long as it likes
QUALITY = _with(
    st.one_of(*(_words("quality", name) for name in ("a.csv", "bad.csv", "strange.csv"))),
    ["--bootstrap", "2"], ["--bootstrap", "2", "--method", "none", "--out", "new", "--on-bad-rows", "reject"],
)  # fmt: skip
REPORT = _with(
    st.one_of(*(_words("report", name) for name in ("a.csv", "bad.csv", "strange.csv", "ratings.csv", "p.csv"))),
    ["--out", "new.html"], ["--out", "new.html", "--kind", "preference"],
    ["--out", "new.html", "--kind", "regression"], ["--out", "new.html", "--hash-ids"],
    ["--out", "new.html", "--fail-if", "alpha<0.6"], [],
)  # fmt: skip
TRAIN = _with(
    _words("train", "a.csv", "i.csv") | _words("train", "ratings.csv", "texts.csv") | _words("train", "s.jsonl"),
    ["--out", "new.keras"], ["--out", "m.keras"], ["--out", "new.keras", "--kind", "regression"],
    ["--out", "new.keras", "--kind", "sequence"],
)  # fmt: skip
ANY_WORDS = st.lists(st.sampled_from([*cli.COMMANDS, "--help", "--version", "-"]) | _values, max_size=3)
OTHERS = st.one_of(
    _with(_words("run", "run.yaml"), ["--check"]), _words("serve", "served"), _words("demo", "labelme"),
    _words("datasets", "labelme"), ANY_WORDS.filter(lambda words: words[:1] != ["run"]),
)  # fmt: skip
MODELS = st.one_of(
    _words("export", "m.keras", "served"), _words("export", "m.keras", "new"), _words("predict", "served", "i.csv"),
    _words("predict", "served/1", "texts.txt"), _words("predict", "filled", "texts.csv"),
)  # fmt: skip


def _check(words):
    """Runs the command on fresh files, and looks at what it printed and left."""
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder))
        here = os.getcwd()
        os.chdir(folder)
        for name, text in LONG.items():
            words = [word.replace(name, text) for word in words]
        try:
            before = _contents()
            code, errors = _run(words)
            after = _contents()
        finally:
            os.chdir(here)
    assert "not foreseen" not in errors, errors
    assert "Traceback" not in errors, errors
    assert code in range(8), f"exit code {code}"
    assert len(errors) < 20_000, f"{len(errors):,} characters of errors"
    left = [name for name in after if "crowdzoo-new" in name or "crowdzoo-old" in name]
    assert not left, left
    forced = "--force" in words or any(word and "--force".startswith(word) for word in words)
    for name, content in before.items():
        if name not in ("empty", "m.keras", "m.names.json") and not (forced and name not in words):
            assert after.get(name) == content, f"{name} changed"


def _write(folder):
    for name, content in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    for name, target in LINKS.items():
        os.symlink(target, folder / name)
    os.mkfifo(folder / "pipe")


def _contents():
    return {
        str(path): path.read_bytes() if path.is_file() else None for path in Path().rglob("*") if not path.is_symlink()
    }


def _run(words):
    errors = io.TextIOWrapper(io.BytesIO(), "utf-8", errors="backslashreplace", write_through=True)
    output = io.TextIOWrapper(io.BytesIO(), "ascii", write_through=True)
    with (
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(errors),
        contextlib.ExitStack() as patched,
        unittest.mock.patch.dict(os.environ),
    ):
        for name in NEVER_RUN:
            patched.enter_context(unittest.mock.patch(f"crowdzoo.commands.{name}.run", return_value=0))
        try:
            code = cli.main(words)
        except SystemExit as stopped:
            code = stopped.code
    return code or 0, errors.buffer.getvalue().decode(errors="replace")


def _check_training(words):
    """As `_check`, up to the first epoch."""

    def stop(*_, **__):
        raise ConfigError("stopped before training")

    with (
        unittest.mock.patch("crowdzoo.training.instance_training.train", stop),
        unittest.mock.patch("crowdzoo.training.tagger_training.train_tagger", stop),
    ):
        _check(words)


def _after(words, *warm_ups):
    """Runs commands before the clock does: first imports and compiled kernels take seconds."""

    def warmed():
        for command in warm_ups:
            _check_training(command.split())
        return words

    return st.deferred(warmed)


def _without_debug(words):
    """--debug shows tracebacks, which is what it is for; so do its beginnings."""
    return words.filter(lambda chosen: not any(len(word) > 2 and "--debug".startswith(word) for word in chosen))


TARGETS = {
    "command-line-aggregate": Target(_after(_without_debug(LABELS), "aggregate a.csv --out new"), _check, examples=8),
    "command-line-sentences": Target(
        _after(_without_debug(SENTENCES), "aggregate s.jsonl --kind sequence --out new"), _check, examples=5
    ),
    "command-line-quality": Target(_after(_without_debug(QUALITY), "quality a.csv --out new"), _check, examples=5),
    "command-line-next": Target(_after(_without_debug(NEXT), "next a.csv --out new.csv"), _check, examples=5),
    "command-line-report": Target(_after(_without_debug(REPORT), "report a.csv --out new.html"), _check, examples=5),
    "command-line-train": Target(
        _after(
            _without_debug(TRAIN), "train a.csv i.csv --out new.keras", "train s.jsonl --kind sequence --out x.keras"
        ),
        _check_training,
        examples=5,
    ),
    "command-line-models": Target(_after(_without_debug(MODELS), "export m.keras new"), _check, examples=5),
    "command-line-others": Target(_without_debug(OTHERS), _check, examples=20),
}
