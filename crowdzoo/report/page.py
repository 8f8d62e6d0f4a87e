"""report_page: one page about a crowd's annotations, and its numbers."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib.resources import files
from operator import ge, gt, le, lt
from pathlib import Path
from typing import Any, cast

import numpy as np

from crowdzoo import __version__
from crowdzoo.aggregation.base import Result
from crowdzoo.checks.constraints import SEED, Number, checked
from crowdzoo.data.annotations import Annotations
from crowdzoo.data.crowd_sequences import CrowdSequences, annotations_of, with_annotations
from crowdzoo.data.vocabulary import name_texts
from crowdzoo.errors import ConditionError, ConfigError, DataError, option_text, shorten, unknown
from crowdzoo.files.writing import atomic_file, csv_cell
from crowdzoo.kinds import KINDS, kind_of
from crowdzoo.kinds.page import PageSettings
from crowdzoo.kinds.page_parts import DIGITS, FLAGS, MOST_NAMED, Numbers, PageTable, PageWarning
from crowdzoo.quality.copies import families_of
from crowdzoo.reading.instances.instances import Instances
from crowdzoo.reading.instances.predictions import Predictions
from crowdzoo.report.left_out import left_out
from crowdzoo.report.page_changes import FORMAT, FORMAT_VERSION, changes_since
from crowdzoo.report.page_instances import instance_views
from crowdzoo.report.training_history import shown_history

__all__ = ["FORMAT", "FORMAT_VERSION", "NEEDED", "VALUES", "Condition", "ReportPage", "report_page"]

MOST_SHOWN = 1000  # annotators and tasks
MOST_BYTES = 2_000_000  # of the page
INSTANCE_BYTES = 900_000  # of the page, for instances
OPERATORS: dict[str, Callable[[float, float], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}
# Values that a condition may compare, by kind of label; docs/quality.md explains them
VALUES = {name: kind.page.values() for name, kind in KINDS.items()}
# Inputs without which these values are undefined
NEEDED = {
    **dict.fromkeys(("model_agreement", "model_error"), ("predictions",)),
    "aggregate_accuracy": ("gold",),
    "aggregate_ece": ("gold",),
    "model_accuracy": ("predictions", "gold"),
    "model_ece": ("predictions", "gold"),
}


_SHOWN = ("values", "facts", "model", "calibration", "curve", "leave_out", "summary", "classes", "coincidences")


@dataclass(frozen=True)
class Condition:
    """A condition on the values of a report, such as alpha<0.6.

    Attributes:
        name: name of the value.
        sign: "<", "<=", ">" or ">=".
        limit: number to compare with.
    """

    name: str
    sign: str
    limit: float

    @classmethod
    def parse(cls, text: str, kind: str = "classification") -> Condition:
        """Parse a condition of the command line.

        Args:
            text: such as "alpha<0.6".
            kind: kind of label.

        Raises:
            ConfigError: not a condition, or an unknown name; lists the known ones.
        """
        match = re.fullmatch(r"\s*([A-Za-z_]\w*)\s*(<=|>=|<|>)\s*(\S+)\s*", text)
        try:
            limit = float(match[3]) if match else np.nan
        except ValueError:
            limit = np.nan
        if match is None or not np.isfinite(limit):
            fix = "Write NAME<NUMBER, NAME<=, NAME> or NAME>=, such as alpha<0.6."
            raise ConfigError(f"{shorten(text)!r} is not a condition. {fix}")
        if match[1] not in VALUES[kind]:
            raise ConfigError(unknown("value", match[1], VALUES[kind]))
        return cls(match[1], match[2], limit)

    def __str__(self) -> str:
        return f"{self.name}{self.sign}{self.limit:g}"


@dataclass(frozen=True, eq=False)
class ReportPage:
    """A report as a page and as numbers.

    Attributes:
        title: heading of the page.
        method: method of the aggregation.
        numbers: contents of the page.
        instances: instances of the tasks, or None.
        rows: row of each task in the instances, int64 [N], or None.
        hashed: whether names of annotators and tasks are hashes.
        changes: differences from an earlier report; None without one.
        history: history of the model's training, see `shown_history`; None without one.
        options: options of reading and measuring; None if unknown.
    """

    title: str
    method: str
    numbers: Numbers
    instances: Instances | None = None
    rows: np.ndarray | None = None
    hashed: bool = False
    changes: dict[str, Any] | None = None
    history: dict[str, Any] | None = None
    options: Mapping[str, Any] | None = None

    def __repr__(self) -> str:
        return f"<ReportPage: {self.title}, {self.method}>"

    @property
    def values(self) -> dict[str, float | None]:
        """Values that conditions compare; None where undefined."""
        return self.numbers.values

    def check(self, conditions: Iterable[str | Condition]) -> None:
        """Raise an error if a condition holds.

        Args:
            conditions: such as "alpha<0.6".

        Raises:
            ConditionError: a condition holds, or compares an undefined value; names each with its value.
            ConfigError: not a condition, or an unknown name.
        """
        kind = self.numbers.kind
        failures = []
        for item in conditions:
            condition = item if isinstance(item, Condition) else Condition.parse(item, kind)
            value = self.values[condition.name]
            if value is None:
                failures.append(f"{condition} cannot be checked: {condition.name} is not defined for these annotations")
            elif OPERATORS[condition.sign](value, condition.limit):
                failures.append(f"{condition} holds: {condition.name} is {value:.4g}")
        if failures:
            raise ConditionError("; ".join(failures) + ".")

    def to_json(self) -> str:
        """The numbers as one JSON object; docs/quality.md describes its fields."""
        content = self._content(MOST_SHOWN)
        for name, table in self.numbers.tables.items():
            content["tables"][name]["values"] = dict(table.values)
            if table.rows is not None:
                content["tables"][name]["shown"] = content["tables"][name].pop("rows")
        return json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n"

    def to_html(self) -> str:
        """The page, self-contained and at most two megabytes: a larger one shows fewer rows."""
        most = MOST_SHOWN
        while True:
            text = _page(self.title, self.numbers.verdict, self._content(most))
            if most == 1 or len(text.encode("utf-8", "backslashreplace")) <= MOST_BYTES:
                return text
            most = max(1, most // 2)

    def write(self, path: str | Path) -> Path:
        """Write the page, and next to it the numbers with the suffix .json.

        Args:
            path: path of the page, with the suffix .html. Existing files are replaced.

        Returns:
            The path of the page.

        Raises:
            ConfigError: another suffix.
        """
        path = Path(path)
        if path.suffix != ".html":
            raise ConfigError(f"{path}: the file of a page ends in .html.")
        for place, text in ((path.with_suffix(".json"), self.to_json()), (path, self.to_html())):
            with atomic_file(place) as file:
                file.write(text.encode("utf-8", "backslashreplace"))
        return path

    def _content(self, most: int) -> dict[str, Any]:
        """Contents of the page and of the file of numbers, with tables of at most `most` rows."""
        numbers = self.numbers
        facts = {"format": FORMAT, "format_version": FORMAT_VERSION, "crowdzoo": __version__, "kind": numbers.kind}
        return {
            **facts,
            **{name: getattr(self, name) for name in ("title", "method", "hashed", "options", "changes", "history")},
            "verdict": numbers.verdict,
            "warnings": [asdict(item) for item in numbers.warnings],
            **{name: _round(getattr(numbers, name)) for name in _SHOWN},
            "flags": {name: {"title": flag.title, "text": flag.text} for name, flag in FLAGS.items()},
            "tables": {name: self._table(name, table, most) for name, table in numbers.tables.items()},
        }

    def _table(self, name: str, table: PageTable, most: int) -> dict[str, Any]:
        total = len(next(iter(table.values.values()), []))
        rows = (range(total) if table.rows is None else table.rows)[:most]
        details = None if table.details is None else table.details[: len(rows)]
        number = None
        if name == "tasks" and details is not None and self.instances is not None:
            details = [
                detail if view is None else {**detail, "instance": {**cast(Any, detail.get("instance") or {}), **view}}
                for detail, view in zip(details, self._views, strict=False)
            ]
            number = sum("instance" in detail for detail in details)
        return {
            "columns": [asdict(column) for column in table.columns if column.key in table.values],
            "total": total,
            "rows": list(rows),
            "values": {key: [values[row] for row in rows] for key, values in table.values.items()},
            "details": details,
            "instances": number,
        }

    @cached_property
    def _views(self) -> list[dict[str, object] | None]:
        """Views of the instances of the shown tasks."""
        assert self.instances is not None
        assert self.rows is not None
        tasks = self.numbers.tables["tasks"].rows or []
        return instance_views(self.instances, self.rows[tasks].tolist(), INSTANCE_BYTES)


@checked(bootstrap=Number(0, whole=True), curve=Number(0, 1000, whole=True), seed=SEED)
def report_page(
    annotations: Annotations | CrowdSequences,
    aggregation: Result,
    *,
    title: str = "annotations",
    instances: Instances | None = None,
    metric: str | None = None,
    bootstrap: int = 200,
    seed: int = 0,
    hash_ids: bool | str = False,
    before: Mapping[str, Any] | None = None,
    predictions: Predictions | Sequence[Any] | np.ndarray | None = None,
    gold: np.ndarray | None = None,
    curve: int = 5,
    history: Mapping[str, Sequence[float]] | None = None,
    models: Sequence[object] | None = None,
    epsilon: float = 0.2,
    options: Mapping[str, Any] | None = None,
    source: str | None = None,
    on_sample: Callable[[], None] | None = None,
) -> ReportPage:
    """Create a page about a crowd: how reliable its labels are, and which annotators, tasks and classes to check first.

    `page.write("report.html")` writes the page and report.json next to it. The page is self-contained. It shows at most
    a thousand annotators and tasks; report.json has all of them.

    Args:
        annotations: annotations of any kind; sentences with their words, which the page shows with their spans.
        aggregation: a result for the same annotations; a result of `MultiLabel` for several labels per task.
        title: heading, such as the file name.
        instances: instances of the tasks to show; see `crowdzoo.instances.read_instances`. None for sentences.
        metric: metric of Krippendorff's alpha, see `crowdzoo.quality.krippendorff_alpha`; None is "interval" for
            ratings and "nominal" for other kinds.
        bootstrap: number of bootstrap samples for its 95 % interval; 0 for no interval.
        seed: seed of the bootstrap.
        hash_ids: True replaces names of annotators and tasks by hashes with a random key that is not kept. A text is
            used as the key: pages with the same key have the same hashes.
        before: an earlier report on the same crowd, from `crowdzoo.report.page_changes.read_numbers`; the page shows
            what has changed since.
        predictions: a model's predictions for the same tasks, [N]; the page compares them with the aggregated labels
            and with annotators. For classes see `crowdzoo.instances.read_predictions`; for ratings, numbers, NaN
            without a prediction; for sentences, lists of tags, for regions, `crowdzoo.data.MarkedImage`, for free
            texts, texts, None without a prediction. Not supported for preferences and several labels per task.
        gold: true classes, codes [N], -1 where unknown, see `crowdzoo.instances.read_gold`; the page shows how well the
            probabilities of the aggregated labels and of the model are calibrated. Classes only.
        curve: draws per step of the learning curve, see `learning_curve`; 0 for no curve. Classes only.
        history: history of the model's training: name of a metric -> its value after each epoch, see
            `crowdzoo.report.training_history.read_history`.
        models: names of the annotators that are models; the page compares them with the others, who are people. Use the
            aggregation of `crowdzoo.quality.people_and_models`. None if unknown. Classes only.
        epsilon: see `crowdzoo.quality.alternative_annotator_test`; used with `models`.
        options: options of reading and measuring, JSON values by name; with `before`, the page shows which of them
            differ.
        source: file of the annotations and options for reading it, for the commands that the page suggests; None: the
            page suggests Python code.
        on_sample: called after each bootstrap sample, for a progress bar.

    Returns:
        The page.

    Raises:
        DataError: an unsupported kind, an aggregation, predictions or gold that do not match the annotations, tasks
            without an instance, or an earlier report that cannot be compared.
        ConfigError: a setting that is out of range or not for this kind.
    """
    table = annotations_of(annotations)
    if table is annotations and table.positions is not None:
        raise DataError("A page of a report takes sentences with their words: give them as CrowdSequences.")
    if table is not annotations and instances is not None:
        raise ConfigError("instances: the page shows the sentences themselves; leave the instances out.")
    rows = None if instances is None else _rows_of(instances, table)
    hashed = hash_ids is not False
    crowd: Any = annotations
    if hash_ids is not False:
        key = secrets.token_bytes(32) if hash_ids is True else hash_ids.encode("utf-8")
        names: dict[str, Any] = {"tasks": _hash(table.tasks, key), "annotators": _hash(table.annotators, key)}
        if models is not None:
            known = dict(zip(map(str, table.annotators.tolist()), names["annotators"].tolist(), strict=True))
            models = [known.get(str(name), name) for name in models]
        table, aggregation = replace(table, **names), replace(aggregation, **names)
        crowd = with_annotations(crowd, table)
    settings = PageSettings(
        metric, bootstrap, seed, on_sample, predictions, gold, models, epsilon, curve, MOST_SHOWN, source, hashed
    )
    numbers = kind_of(aggregation.kind).page(crowd, aggregation, settings).numbers()
    numbers = _add_periods(_add_advice(numbers, crowd, aggregation, seed, hashed), hashed)
    changes = None if before is None else changes_since(before, numbers, _round(numbers.values), hashed, options)
    trained = None if history is None else shown_history({name: [*values] for name, values in history.items()})
    return ReportPage(title, aggregation.method, numbers, instances, rows, hashed, changes, trained, options)


def _add_advice(numbers: Numbers, crowd: Any, aggregation: Result, seed: int, hashed: bool) -> Numbers:
    """Add the gain from leaving out annotators who may be uninformative, and all copies but one."""
    annotators = numbers.tables["annotators"].values
    families = families_of(annotators["copies"])
    copies = families != np.arange(len(families))
    gone = copies | [any(FLAGS[note].out and note != "copy" for note in notes) for notes in annotators["notes"]]
    if not gone.any():
        return numbers
    gain = left_out(crowd, aggregation.method, gone, seed, getattr(aggregation, "label_names", None), families)
    names = [str(annotators["annotator"][place]) for place in np.flatnonzero(gone)]
    option = _exclude(names, hashed, "a name a line")
    value, low, high = gain or (None, None, None)
    rounded = [round(100 * item, 1) + 0.0 for item in gain or ()]  # no "-0.0"
    points = "{:+.1f} points ({:+.1f} to {:+.1f})".format(*rounded) if rounded else ""
    advised = None if low is None else low > 0
    if low is None:
        advice = f"see in a report without them ({option}) what they change"
    elif low > 0:
        advice = f"leave them out ({option}): labels made without them agree better with what others say, by {points}"
    elif (gone <= copies).all() and (high or 0) > 0:  # copies add no information, even if the gain does not show it
        reason = f"what others say does not tell whether that is better ({points} of agreement)"
        advised, advice = True, f"leave them out ({option}); {reason}"
    else:
        advice = f"leaving out their answers makes no clear difference ({points} of agreement with others)"
    fixes = {name: advice for name, flag in FLAGS.items() if flag.out}
    fixes["copy"] = advice.replace("leave them", "leave all of them but one", 1)
    leave_out = {"annotators": names, "advised": advised, "value": value, "low": low, "high": high}
    return replace(numbers, warnings=_with_fixes(numbers, fixes), leave_out=leave_out)


def _add_periods(numbers: Numbers, hashed: bool) -> Numbers:
    """Add the option that leaves out annotations from periods in which annotators agreed less with others."""
    annotators = numbers.tables["annotators"].values
    pairs = zip(annotators["annotator"], annotators.get("period", ()), strict=False)
    option = _exclude([f"{name}:{period}" for name, period in pairs if period], hashed, "a line NAME:DATE.. each")
    fixes = {"drift": f"to leave out what was worse: {option}"}
    return replace(numbers, warnings=_with_fixes(numbers, fixes))


def _with_fixes(numbers: Numbers, fixes: Mapping[str, str]) -> list[PageWarning]:
    """The warnings, with further fixes appended by key."""
    warnings = numbers.warnings
    return [replace(item, fix=f"{item.fix}; {fixes[item.key]}") if item.key in fixes else item for item in warnings]


def _exclude(names: list[str], hashed: bool, lines: str) -> str:
    """The `--exclude` option for some annotators; for many or hashed names, with a file and the format of its lines."""
    few = not hashed and len(names) <= MOST_NAMED
    return option_text("--exclude", ",".join(map(csv_cell, names))) if few else f"--exclude FILE, {lines}"


def _rows_of(instances: Instances, annotations: Annotations) -> np.ndarray:
    """Row of each task in the instances, int64 [N]; -1 for tasks with neither annotations nor an instance."""
    places = {name: row for row, name in enumerate(name_texts(instances.tasks).tolist())}
    names = name_texts(annotations.tasks).tolist()
    rows = np.array([places.get(name, -1) for name in names], np.int64)
    lost = np.flatnonzero((rows < 0) & (annotations.redundancy > 0))
    if len(lost):
        raise DataError(
            f"{len(lost):,} of the {len(names):,} tasks have no instance, such as {names[lost[0]]!r}. Instances are "
            f"named like {next(iter(places), None)!r}: give those of the same tasks."
        )
    return rows


def _hash(names: np.ndarray, key: bytes) -> np.ndarray:
    """A short keyed hash of each name."""
    secret = hashlib.blake2b(key, digest_size=32).digest()
    texts = (str(name).encode("utf-8", "surrogatepass") for name in names.tolist())
    return np.array([hashlib.blake2b(text, key=secret, digest_size=8).hexdigest() for text in texts], object)


def _round(value: Any) -> Any:
    """Round all numbers of a value, and convert NumPy types to Python types."""
    if isinstance(value, float):
        return None if value != value else round(value, DIGITS)
    if isinstance(value, dict):
        return {name: _round(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_round(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _page(title: str, verdict: Sequence[str], content: dict[str, Any]) -> str:
    """Fill the template; names cannot end the data block, and the browser runs no other script."""
    template = files("crowdzoo.report").joinpath("report_page.html").read_text(encoding="utf-8")
    data = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        data = data.replace(character, f"\\u{ord(character):04x}")
    policy = {}
    for tag in ("style", "script"):
        (inside,) = re.findall(rf"<{tag}>(.*?)</{tag}>", template, flags=re.DOTALL)
        policy[tag] = base64.b64encode(hashlib.sha256(inside.encode("utf-8")).digest()).decode("ascii")
    parts = {
        "TITLE": html.escape(title),
        "VERDICT": html.escape(" ".join(verdict)),
        "POLICY": f"default-src 'none'; img-src data:; style-src 'sha256-{policy['style']}'; "
        f"script-src 'sha256-{policy['script']}'; base-uri 'none'; form-action 'none'",
        "DATA": data,
    }
    return re.sub(r"\{\{([A-Z]+)\}\}", lambda match: parts[match[1]], template)
