"""Random changes of the code, each against the tests that a change of its file would run.

    .venv/bin/python tests/mutation.py --count 60 --seed 0

A change is one operator, comparison, constant or condition. It is made in place and undone at once, so the working
tree has to be clean. A change that no test notices is printed with its line.
"""

import argparse
import ast
import os
import random
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NEAREST = 15  # so many test files of those that import a file, at most: nearly all import some
FIRST = 3  # so many of them in a run of their own: most changes are found there
ROOMS = ("crowdzoo", "components", "pipelines", "serving")
TESTED_IN = {"sentences": "sequences", "large": "beam", "records": "components"}  # folder -> that of its tests
SWAPS = {
    "==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "is": "is not", "is not": "is", "in": "not in",
    "not in": "in", "+": "-", "-": "+", "*": "/", "/": "*", "//": "/", "%": "*", "and": "or", "or": "and",
}  # fmt: skip
SYMBOLS = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Is: "is",
    ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in", ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/",
    ast.FloorDiv: "//", ast.Mod: "%", ast.And: "and", ast.Or: "or",
}  # fmt: skip


@dataclass(frozen=True)
class Change:
    """Bytes `start:end` of a file become `new`."""

    file: str
    line: int
    start: int
    end: int
    old: str
    new: str

    def __str__(self):
        return f"{self.file}:{self.line}: {self.old!r} made {self.new!r}"


def changes_of(file: str, source: bytes) -> list[Change]:
    """Every change that there is to make in a file."""
    lines = [0]
    for line in source.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))

    def begin(node):
        return lines[node.lineno - 1] + node.col_offset

    def end(node):
        return lines[node.end_lineno - 1] + node.end_col_offset

    found = []

    def add(node, start, stop, new):
        found.append(Change(file, node.lineno, start, stop, source[start:stop].decode(), new))

    def swap(operator, left, right):
        symbol = SYMBOLS.get(type(operator))
        pattern = r"\s+".join(map(re.escape, symbol.split())) if symbol else "(?!)"
        match = re.search(pattern.encode(), source[end(left) : begin(right)])
        if match:  # not found where a comment or a parenthesis hides it
            add(right, end(left) + match.start(), end(left) + match.end(), SWAPS[symbol])

    def visit(node):
        if isinstance(node, ast.Compare):
            for operator, left, right in zip(node.ops, [node.left, *node.comparators], node.comparators, strict=False):
                swap(operator, left, right)
        elif isinstance(node, ast.BinOp):
            swap(node.op, node.left, node.right)
        elif isinstance(node, ast.BoolOp):
            for left, right in zip(node.values, node.values[1:], strict=False):
                swap(node.op, left, right)
        elif isinstance(node, ast.If | ast.IfExp | ast.While):
            start, stop = begin(node.test), end(node.test)
            add(node.test, start, stop, f"not ({source[start:stop].decode()})")
        elif isinstance(node, ast.Constant) and not isinstance(node.value, str | bytes | None | type(...)):
            value = not node.value if isinstance(node.value, bool) else node.value + 1
            add(node, begin(node), end(node), repr(value))
        for name, value in ast.iter_fields(node):
            if name not in ("annotation", "returns", "decorator_list"):
                for child in value if isinstance(value, list) else [value]:
                    if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                        visit(child)

    visit(ast.parse(source))
    return sorted(set(found), key=lambda change: (change.start, change.end))


def tests_of(file: str) -> list[list[str]]:
    """Test files to run for a change of a file: the nearest that are named after it or import it, then its rooms'."""
    path = Path(file)
    inside = path if path.parts[0] == "crowdzoo" else Path("crowdzoo", path)
    module = ".".join(inside.with_suffix("").parts)
    package, _, name = module.rpartition(".")
    imports = re.compile(
        rf"{re.escape(module)}\b|from {re.escape(package)} import [^\n]*\b{name}\b|from {re.escape(package)} import \("
        rf"[^)]*\b{name}\b"
    )
    public = {
        node.name
        for node in ast.parse((ROOT / file).read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_")
    }
    near = []
    for test in sorted((ROOT / "tests").rglob("test_*.py")):
        text = test.read_text(encoding="utf-8")
        names = {word for line in re.findall(r"import (\([^)]*\)|[^\n]*)", text) for word in re.findall(r"\w+", line)}
        if path.stem in test.stem or imports.search(text) or names & public:
            near.append(str(test.relative_to(ROOT)))
    rooms = [ROOT / "tests" / TESTED_IN.get(part, part) for part in inside.parts[1:-1]]
    rest = [str(test.relative_to(ROOT)) for room in rooms for test in sorted(room.rglob("test_*.py"))]
    if inside.parts[1] in ("layers", "training"):
        rest.append("tests/models/test_methods.py")
    near.sort(key=lambda test: (path.stem not in Path(test).stem, not {*rooms} & {*(ROOT / test).parents}))
    near = near[:NEAREST]
    return [near[:FIRST], near[FIRST:], [test for test in rest if test not in near]]


def noticed(change: Change, minutes: float, more: list[str]) -> str:
    """The test that fails while the change is made, "a hang", or nothing."""
    path = ROOT / change.file
    source, times = path.read_bytes(), path.stat()
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not slow and not learning"]
    try:
        path.write_bytes(source[: change.start] + change.new.encode() + source[change.end :])
        for tests in filter(None, tests_of(change.file)):
            process = subprocess.Popen(
                [*command, *more, *tests], cwd=ROOT, env=environment, start_new_session=True, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
            try:
                output, _ = process.communicate(timeout=60 * minutes)
            except subprocess.TimeoutExpired:
                return "a hang"
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.communicate()
            if process.returncode not in (0, 5):  # 5: no test was selected
                failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", output, flags=re.MULTILINE)
                return failed[0] if failed else f"pytest, exit status {process.returncode}"
        return ""
    finally:
        path.write_bytes(source)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # else compiled files would be out of date


def main():
    """Samples changes, tries each, and prints which were found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--skip", type=int, default=0, help="so many of the sample were tried before")
    parser.add_argument("--minutes", type=float, default=15.0, help="of one run of tests; more counts as found")
    parser.add_argument("--list", action="store_true", help="only print the changes and their test files")
    arguments, more = parser.parse_known_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # after the change is undone
    status = ["git", "status", "--porcelain", "--", *ROOMS]
    if not arguments.list and subprocess.run(status, cwd=ROOT, capture_output=True, check=True).stdout:
        parser.error(f"{', '.join(ROOMS)} have changes that are not committed")
    everything = [
        change
        for room in ROOMS
        for path in sorted((ROOT / room).rglob("*.py"))
        for change in changes_of(str(path.relative_to(ROOT)), path.read_bytes())
    ]
    sample = random.Random(arguments.seed).sample(everything, arguments.count)
    found = 0
    for change in sample[arguments.skip :]:
        if arguments.list:
            print(change, *tests_of(change.file), sep="\n    ")
            continue
        seen = noticed(change, arguments.minutes, more)
        found += bool(seen)
        print(f"found  {change}  by {seen}" if seen else f"LIVED  {change}", flush=True)
    if not arguments.list:
        print(f"{found} of {arguments.count - arguments.skip} found; {len(everything)} changes could be made")


if __name__ == "__main__":
    main()
