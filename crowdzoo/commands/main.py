"""The command `crowdzoo`. Parsing is fast: a command's imports happen when it runs."""

import argparse
import errno
import importlib
import os
import re
import sys
import traceback
from collections.abc import Sequence
from contextvars import copy_context
from functools import partial
from typing import Any, NoReturn

from crowdzoo import __version__, process
from crowdzoo.commands.options import as_option, hide_other_kinds, options_of
from crowdzoo.commands.outputs import check_outputs
from crowdzoo.data.label_kinds import OTHER_NAMES
from crowdzoo.errors import CrowdzooError, did_you_mean, settings_as, short_message, shorten

EPILOG = """exit codes:
  0 done   1 unexpected failure   2 wrong arguments   3 unusable data   4 unusable configuration
  5 a component failed   6 serving failed   7 a condition of --fail-if holds
  8 not pushed, 9 undecided (run --fail-unless pushed)   10 another run is at work in output.root
  130 interrupted   143 terminated"""

# name of the command and its module -> description
COMMANDS = {
    "aggregate": "Compute one label per task, and a report on each annotator.",
    "compare": "Compare methods on your own data, with intervals, and name the best one.",
    "quality": "Show how far annotators agree, and which tasks and annotators to check.",
    "report": "Write a page for a browser: can annotations be trusted?",
    "next": "Choose which task to give to whom next, within a budget.",
    "label-studio": "Pull a Label Studio project, aggregate and report it, and push results back, in rounds.",
    "convert": "Write a labelling platform's export as files of crowdzoo.",
    "train": "Train a model from annotators' labels, without the pipeline.",
    "run": "Run the TFX pipeline from a YAML file, ending in a pushed model.",
    "versions": "List the versions of a served model, with their figures, vetoes and labels.",
    "rollback": "Go back to an earlier version of a served model, and keep the later one from being pushed again.",
    "promote": "Give versions of a served model labels such as stable and canary.",
    "register": "Register a version of a served model in MLflow's model registry.",
    "fetch": "Bring a model from MLflow's model registry into a served folder.",
    "lineage": "Show the data, settings, code and decision that a served model comes from.",
    "export": "Write a trained model as the next version of a served folder.",
    "serve": "Answer TF Serving's REST and gRPC APIs for a served folder.",
    "skew": "Compare logged requests with the data that the served model was trained on.",
    "deploy": "Write files that run TensorFlow Serving in containers.",
    "predict": "Predict with a served folder or a running server.",
    "methods": "List the deep methods and the aggregations, or show the card of one: paper, needs, figures.",
    "datasets": "List the data sets that ship with crowdzoo, write one as files, or download a public one.",
    "demo": "Run the pipeline on a data set that ships, and compare methods.",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: arguments after `crowdzoo`; None uses those of the process.

    Returns:
        The exit code: 0, or that of the error (`crowdzoo --help` lists them).
    """
    if not process.open_streams():
        process.say("standard output is closed. Send it to /dev/null where it is not wanted.")
        return 1
    with process.escaped_output():
        return _main(argv)


def _main(argv: Sequence[str] | None) -> int:
    """`main`, with streams that accept any text."""
    parser = _parser()
    if "_ARGCOMPLETE" in os.environ:  # a shell asks for completions
        import argcomplete

        parser.commands()
        argcomplete.autocomplete(parser)  # ends the process
    try:
        arguments = parser.parse_args(argv)
    except (SystemExit, OSError) as end:  # --help, --version, wrong arguments
        if reason := process.finish_output(after_failure=isinstance(end, OSError)):
            process.say(f"standard output: {reason}")
            return 1
        raise
    debug = arguments.debug or bool(os.environ.get("CROWDZOO_DEBUG"))
    process.quiet_libraries()
    with process.command_process(debug), settings_as(partial(as_option, arguments.options)):
        code = copy_context().run(_run_command, arguments, debug)  # isolates the CSV settings
    if (reason := process.finish_output()) and code == 0:
        process.say(f"standard output: {reason}")
        return 1
    return code


def _run_command(arguments: argparse.Namespace, debug: bool) -> int:
    """Run a command, print its error if any, and return its exit code."""
    try:
        check_outputs(arguments)
        return arguments.command_function(arguments) or 0
    except KeyboardInterrupt:
        process.say("interrupted")
        return 130
    except process.Terminated as ended:
        process.say("terminated")
        return int(ended.code or 1)
    except BrokenPipeError:  # `crowdzoo … | head`
        return 0
    except Exception as error:
        if debug:
            raise
        process.say(str(error) if isinstance(error, CrowdzooError) else _reason(error))
        return getattr(error, "exit_code", 1)


def _reason(error: Exception) -> str:
    """Message for an error that crowdzoo did not raise."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        return _missing_module(error.name)
    if isinstance(error, MemoryError):
        return f"not enough memory. {error}".strip()
    if isinstance(error, OSError) and error.filename is not None:  # a full disk, a folder without permission
        return short_message(f"{error.filename}: {error.strerror}")
    if isinstance(error, OSError) and (failure := process.finish_output(after_failure=True)):
        return f"standard output: {failure}"
    if isinstance(error, OSError) and error.errno in (errno.EFBIG, errno.ENOSPC, errno.EDQUOT):
        return f"a file cannot be written: {error.strerror}. Make room on the disk, or raise the limit (ulimit -f)."
    reason = shorten(str(error).strip()) or "no message"
    if sys.flags.optimize > 1 and "tensorflow" in traceback.extract_tb(error.__traceback__)[-1].filename:
        return f"{type(error).__name__}: {reason}\n  TensorFlow does not start under python -OO: use -O, or no option."
    return f"{type(error).__name__}: {reason}\n  This was not foreseen; --debug shows where."


def _missing_module(name: str) -> str:
    packages = {
        "tensorflow": ("tensorflow", "tensorflow_serving"),
        "pipeline": ("tfx", "apache_beam", "yaml", "pydantic"),
        "label-studio": ("httpx",),
        "serving": ("uvicorn", "httptools", "orjson", "simdjson", "uvloop", "grpc"),
        "plots": ("matplotlib",),
        "text": ("tensorflow_text",),
    }
    extra = next((extra for extra, names in packages.items() if name.split(".")[0] in names), None)
    way_out = f"pip install 'crowdzoo[{extra}]'" if extra else f"install {name}"
    return f"this command needs the package {name.split('.')[0]}: {way_out}"


class _Parser(argparse.ArgumentParser):
    """Parser whose errors shorten long arguments and point to the help.

    Attributes:
        command: name of the command, whose module adds the arguments when they are first needed.
        words: arguments to parse.
    """

    command: str | None = None
    words: Sequence[str] = ()

    def describe(self) -> None:
        """Add the arguments of the command."""
        if self.command is not None:
            module = importlib.import_module(f"crowdzoo.commands.{self.command.replace('-', '_')}")
            self.command = None
            module.describe(self)
            self.set_defaults(command_function=module.run, options=options_of(self))

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """See `argparse.ArgumentParser`."""
        self.describe()
        self.words = args or ()
        return super().parse_known_args(args, namespace)

    def print_help(self, file: Any = None) -> None:
        """Print the help without options for other kinds of labels."""
        hide_other_kinds(self, self.words)
        super().print_help(file)

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """Keep the value of `--missing=--`, which argparse drops."""
        if action.option_strings and arg_strings == ["--"]:
            value = self._get_value(action, "--")
            self._check_value(action, value)
            return value
        return super()._get_values(action, arg_strings)

    def error(self, message: str) -> NoReturn:
        """Exit with the message, a suggested option, and a pointer to the help."""
        parser = next((each for each in self._below().values() if each.command is None), self)  # the command's parser
        unknown = message.removeprefix("unrecognized arguments: ")
        hint = self._hint(parser, unknown) if unknown != message else self._meant(message)
        missing = message.removeprefix("the following arguments are required: ")
        if missing != message and not all(name.startswith("-") for name in missing.split(", ")):
            files = [action for action in parser._actions if not action.option_strings and action.help]
            hint = "".join(f"\n  {action.metavar or action.dest}: {action.help}" for action in files).replace("%%", "%")
        self.exit(
            2, f"{parser.prog}: error: {short_message(message)}{hint}\n(`{parser.prog} --help` lists what it takes)\n"
        )

    def _hint(self, parser: "_Parser", unknown: str) -> str:
        """Hint for the first unknown option: the command that has it, or a similar option or value of this command."""
        words = unknown.replace("=", " ").split(" ")
        place = next((place for place, word in enumerate(words) if word.startswith("--")), 0)
        flag, value = words[place], "".join(words[place + 1 : place + 2])
        options = parser._option_string_actions
        takers = [name for name, each in self.commands().items() if flag in each._option_string_actions]
        if takers:
            return f"; {flag} is an option of crowdzoo {', '.join(takers)}"
        if option := next((option for option, action in options.items() if value in (action.choices or ())), None):
            return f". Did you mean '{option} {value}'?"
        near = did_you_mean(flag, [option for option in options if option.startswith("--")])
        return f".{near}" if near else ""

    def _meant(self, message: str) -> str:
        """Suggested value for an option with few values."""
        refused = re.match(r"argument (?:\S+/)?(--[\w-]+|COMMAND): invalid choice: '(.*?)' \(", message)
        if refused is None:
            return ""
        option, value = refused.groups()
        if option == "COMMAND":
            return f".{near}" if (near := did_you_mean(value, COMMANDS)) else ""
        also = OTHER_NAMES if option == "--kind" else {}
        near = did_you_mean(value, self._option_string_actions[option].choices or (), also=also)
        if f"--{value}" in self._option_string_actions:
            return f". Did you mean '--{value}'?"
        return f".{near}".replace("mean '", f"mean '{option} ") if near else ""

    def _below(self) -> "dict[str, _Parser]":
        """Parsers of the subcommands by name."""
        below = (action.choices for action in self._actions if isinstance(action, argparse._SubParsersAction))
        return {name: parser for choices in below for name, parser in choices.items()}

    def commands(self) -> "dict[str, _Parser]":
        """Subcommands with their arguments, by name."""
        parsers = self._below()
        for parser in parsers.values():
            parser.describe()
        return parsers


def _parser() -> _Parser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--debug", action="store_true", help="show the traceback of an error")
    parser = _Parser(
        prog="crowdzoo",
        description="Learning from crowds: from the labels of unreliable annotators to a served model.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[common],
    )
    parser.add_argument("--version", action="version", version=f"crowdzoo {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, sentence in COMMANDS.items():
        # --debug works before and after the command's name
        command = commands.add_parser(name, help=sentence, description=sentence)
        command.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        command.set_defaults(outputs=(), inputs=(), force=False)
        command.command = name
    return parser
