"""Export: export of a labelling platform, read entry by entry."""

import os
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from crowdzoo.data.label_kinds import label_kind
from crowdzoo.errors import SHOWN, BadRow, ConfigError, DataError, Setting, did_you_mean, short_repr, unknown
from crowdzoo.files.text import shown
from crowdzoo.plugins import Table
from crowdzoo.reading.platforms.argilla import ARGILLA
from crowdzoo.reading.platforms.brat import BRAT
from crowdzoo.reading.platforms.coco import COCO
from crowdzoo.reading.platforms.csv_records import csv_records
from crowdzoo.reading.platforms.cvat import CVAT
from crowdzoo.reading.platforms.doccano import DOCCANO
from crowdzoo.reading.platforms.export_file import ExportFile, export_files
from crowdzoo.reading.platforms.image_entry import is_image_entry
from crowdzoo.reading.platforms.label_studio import LABEL_STUDIO
from crowdzoo.reading.platforms.labelbox import LABELBOX
from crowdzoo.reading.platforms.mturk import MTURK
from crowdzoo.reading.platforms.panoptes import PANOPTES
from crowdzoo.reading.platforms.platform import Platform, joined_sorts
from crowdzoo.reading.platforms.png_masks import PNG_MASKS
from crowdzoo.reading.platforms.potato import POTATO
from crowdzoo.reading.platforms.prodigy import PRODIGY
from crowdzoo.reading.platforms.record import BadValue, Record
from crowdzoo.reading.platforms.region_record import region_record
from crowdzoo.reading.platforms.sagemaker import SAGEMAKER
from crowdzoo.reading.platforms.toloka import TOLOKA
from crowdzoo.reading.platforms.webanno import WEBANNO
from crowdzoo.reading.tables.layout import Layout

_OWN = (
    LABEL_STUDIO, MTURK, SAGEMAKER, TOLOKA, PRODIGY, DOCCANO, ARGILLA, LABELBOX, POTATO, CVAT, COCO, BRAT, WEBANNO,
    PNG_MASKS, PANOPTES,
)  # fmt: skip
# a package's value that is not a `Platform` has no suffixes, and is rejected
PLATFORMS = Table("platform", {one.name: one for one in _OWN}, lambda one: one if one.suffixes else None)

# Sort of a question -> form of its answers, and the kind of labels that reads it
_ANSWERS = {
    "class": ("classes", "classification"), "number": ("numbers", "regression"),
    "spans": ("spans of a text", "sequence"), "text": ("texts", "free-text"),
    "regions": ("regions", "region"), "pair": ("preferences", "preference"), "ranking": ("rankings", "preference"),
    "linked": ("places in a sound, a video, a series or a text behind a link, which are not read", ""),
}  # fmt: skip
_TABLE = "Give a table of the images, with columns task and image, instead of their folder."


def _answers(sort: str) -> str:
    """Form of the answers to a sort of question, and how to read them; "" for an unknown sort."""
    what, kind = _ANSWERS.get(sort, ("", ""))
    return f"{what}, for {Setting('kind', kind)}" if kind else what


class Export:
    """An export of a labelling platform. Files are read entry by entry, and several times.

    Args:
        path: a file, a zip archive, or a folder of these.
        platform: a name in `PLATFORMS`.
        kind: kind of the labels.
        field: name of the question; may be None if the export has only one of this kind. A `*` stands for the number of
            an item if entries have several: `X*` reads X1, X2 as separate tasks, whose data columns such as url1, url2
            become url. If an export contains several groups, such as Zooniverse's workflows, the group, optionally with
            its version, precedes the name: `10/T0`, `10.16/T0`.
        image: name a task after the file of its image, without its ending: the column of the image, or True to find
            it. None keeps the platform's own names.
        layout: encoding of its text, separator between the values of CSV, and for preferences the columns, which name
            the tasks that are compared, see `Platform.pairs`.

    Attributes:
        name: the path, for messages.
        files: files of the export.
        left_out: descriptions of entries skipped in the last iteration -> counts.
        empty: the same for answers without a label.

    Raises:
        ConfigError: an unknown platform, or an encoding or separator for files that have none.
        DataError: no such file, or no file with a suffix of the platform.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        platform: str,
        kind: str = "classification",
        field: str | None = None,
        image: str | bool | None = None,
        layout: Layout | None = None,
    ):
        if platform not in PLATFORMS:
            words = {word: one.name for one in PLATFORMS.values() for word in one.title.casefold().split()}
            raise ConfigError(unknown("platform", platform, PLATFORMS, words))
        self.platform = PLATFORMS[platform]
        self.path = Path(path)
        self.name = os.fspath(path)
        self._sorts = label_kind(kind).sorts
        self.spans, self.regions, self.pairs = (sort in self._sorts for sort in ("spans", "regions", "ranking"))
        self.left_out: Counter[str] = Counter()
        self.empty: Counter[str] = Counter()
        if self.pairs and self.platform.pairs is None:
            fix = "Write them as a table with the columns left, right, annotator, label (docs/platforms.md has code)."
            raise ConfigError(f"crowdzoo does not read preferences of {self.platform.title}. {fix}")
        self._images: dict[str, set[str]] = {}  # name of an image -> the platform's ids for it
        self._items: dict[str, str] = {}  # for entries with several items: number -> question
        self._field, self._image = field, image
        layout = layout or Layout()
        self._columns = layout.columns
        self._kept: set[str] = set()  # groups of entries that count
        is_csv, is_text = self.platform.records is csv_records, self.platform.suffixes[0] not in _ENDINGS
        for name, fits in (("encoding", is_text), ("separator", is_csv)):
            if getattr(layout, name) is not None and not fits:
                raise ConfigError(f"{Setting(name)}: exports of {self.platform.title} have none. Leave it out.")
        files = export_files(path, self.platform.suffixes)
        self.files = [replace(file, encoding=layout.encoding, separator=layout.separator) for file in files]
        if not self.files:
            endings = " or ".join(self.platform.suffixes)
            raise DataError(
                f"{self.name}: exports of {self.platform.title} end in {endings}. {self._other(ExportFile(self.path))}"
            )

    @cached_property
    def question(self) -> str:
        """Name of the question to read.

        Raises:
            ConfigError: the export lacks the field, or has several questions and no field was given.
            DataError: the export has no entries, is from another platform, or has no question of this kind.
        """
        of_groups: dict[str, dict[str, str]] = {}  # group of entries -> question -> sort
        bad: list[BadRow] = []
        first: Mapping[str, Any] | None = None
        for file in self.files:
            is_first = True
            for number, entry in self.platform.records(file):
                if isinstance(entry, BadRow):
                    bad.append(entry)
                    continue
                if is_first and not self.platform.is_own(entry):
                    lacking = self.platform.lacking(entry, "task", "annotator", "label")
                    what = f"does not look like an export of {self.platform.title}{lacking}"
                    raise DataError(f"{file.name}: {what}. {self._other(file)}")
                is_first, first = False, entry if first is None else first
                if is_image_entry(entry) and entry["of"]:
                    self._images.setdefault(str(entry["image"]), set()).add(entry["of"])
                sorts = of_groups.setdefault(self._group(entry), {})
                try:
                    for name, sort in self.platform.questions(entry):
                        sorts[name] = joined_sorts(sorts.get(name, sort), sort)
                except BadValue as value:
                    bad.append(_bad_row(file, number, value))
                del bad[SHOWN:]
        if several := [name for name, ids in self._images.items() if len(ids) > 1]:
            ids = " and ".join(sorted(self._images[several[0]])[:2])
            text = f"different images have one name, such as {several[0]!r} with the ids {ids}"
            named = Setting("image", "image")
            advice = f"Tasks are named after both. If they are one image, name tasks after its file: {named}."
            warnings.warn(f"{self.name}: {text}. {advice}", UserWarning, stacklevel=2)
        sorts = self._of_one_group(of_groups)
        if bad and not sorts:
            raise DataError(f"{self.name}: no entry can be read.", bad)
        if first is None:
            raise DataError(f"{self.name}: holds no entries of {self.platform.title}. {self._other(self.files[0])}")
        if not sorts and (lacking := self.platform.lacking(first, "label")):
            raise DataError(f"{self.name}: has no answers{lacking}. {self.platform.menu}")
        sorts = {name: sort.partition("\n")[0].replace("order", "class") for name, sort in sorts.items()}
        question = self._chosen(sorts)
        self._warn_of_versions(question, of_groups)
        return question

    def _group(self, entry: Mapping[str, Any]) -> str:
        return "" if self.platform.group is None else self.platform.group(entry)

    def _of_one_group(self, of_groups: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
        """Questions of the selected group, in all its versions or in one, with their sorts.

        Raises:
            ConfigError: the group is ambiguous.
        """
        if self.platform.group is None:
            return dict(of_groups.get("", {}))
        head, slash, field = (self._field or "").partition("/")
        names = {group: group.partition(".")[0] for group in of_groups}
        if slash and head in (*names, *names.values()):
            self._field = field
            kept = [group for group, name in names.items() if head in (group, name)]
        else:
            fits = {group: [*filter(partial(self._fits, sorts), sorts)] for group, sorts in of_groups.items()}
            kept = [group for group in names if fits[group]] or [*names]
            if len(several := list(dict.fromkeys(names[group] for group in kept))) > 1:
                question = f"{several[0]}/{min(fits[kept[0]] or of_groups[kept[0]], default='QUESTION')}"
                listed = f"the {self.platform.groups}s {' and '.join(several[:SHOWN])}"
                fix = Setting("field", question)
                raise ConfigError(f"{self.name}: has the answers of {listed}. Choose one, such as {fix}.", fix=fix)
        self._kept = {*kept}
        merged: dict[str, str] = {}
        for group in kept:
            for name, sort in of_groups[group].items():
                merged[name] = joined_sorts(merged.get(name, sort), sort)
        return merged

    def _fits(self, sorts: Mapping[str, str], name: str) -> bool:
        sort = sorts[name].partition("\n")[0]
        return sort in self._sorts if self._field is None else name == self._field and self._reads(sort)

    def _warn_of_versions(self, question: str, of_groups: Mapping[str, Mapping[str, str]]) -> None:
        asked = [group for group in of_groups if group in self._kept and question in of_groups[group]]
        if len(asked) > 1:
            versions = f"{len(asked)} versions of its {self.platform.groups}: {', '.join(asked[:SHOWN])}"
            advice = f"If its answers changed, choose one, such as {Setting('field', f'{asked[-1]}/{question}')}."
            text = f"{self.name}: {question!r} was asked in {versions}. {advice}"
            warnings.warn(text, UserWarning, stacklevel=3)

    def _chosen(self, sorts: Mapping[str, str]) -> str:
        if self.regions and self._field is None and self.platform.group is None:
            return ""
        listed = ", ".join([f"'{name}'" for name in sorts][:20] + ["..."] * (len(sorts) > 20)) or "none"
        if self._field is not None and "*" in self._field:
            before, _, after = self._field.partition("*")
            ends = {
                name[len(before) : len(name) - len(after)]: name for name in sorts if fnmatchcase(name, self._field)
            }
            self._items = {item: name for item, name in ends.items() if item}
            if self._items:
                return self._field
        chosen = {sorts.get(name, "") for name in ([*sorts] if self._field is None else [self._field])}
        if chosen == {"ranking"} and not self.pairs:
            kind = Setting("kind", "preference")
            raise DataError(f"{self.name}: the answers are rankings. Read them with {kind}.")
        if self._field is not None and self._field in sorts:
            if self._reads(sort := sorts[self._field]):
                return self._field
            what = _answers(sort) or f"something else than {self._wanted}"
            raise ConfigError(f"{self.name}: {Setting('field', self._field)} is answered with {what}.")
        if self._field is not None:
            raise ConfigError(
                f"{self.name}: {Setting('field', self._field)} is not a question of this export; there are: {listed}."
                f"{did_you_mean(self._field, sorts)}"
            )
        for sort in self._sorts:
            names = [name for name, own in sorts.items() if own == sort]
            if len(names) == 1:
                return names[0]
            if names:
                shown_names = ", ".join(f"'{name}'" for name in names)
                pattern = re.sub(r"\d+$", "*", names[0])
                is_pattern = "*" in pattern and self.platform.group is None
                items = f" If they are items of a task: {Setting('field', pattern)}." if is_pattern else ""
                raise ConfigError(
                    f"{self.name}: answers several questions: {shown_names}. Choose one, such as "
                    f"{Setting('field', names[0])}.{items}"
                )
        hints = [f"'{name}'" + (f" ({_answers(sort)})" if sort in _ANSWERS else "") for name, sort in sorts.items()]
        listed = ", ".join(hints[:20] + ["..."] * (len(hints) > 20)) or "none"
        if self.platform.regions and not hints:
            listed += f". Its regions are read with {Setting('kind', 'region')}"
        what = f"has no question that is answered with {self._wanted}; the questions are: {listed}."
        raise DataError(f"{self.name}: {what}")

    @property
    def _wanted(self) -> str:
        wanted = {self.spans: "spans of a text", self.pairs: "preferences", self.regions: "regions"}
        return wanted.get(True, "classes or numbers")

    def _reads(self, sort: str) -> bool:
        """Whether a question of a sort can be read if it is named."""
        if self.spans or self.pairs:
            return sort in self._sorts
        return sort not in ("spans", "ranking", "linked") and (sort != "regions" or self.regions)

    @cached_property
    def image(self) -> str | None:
        """Column of the images that tasks are named after; None if tasks have the platform's names.

        Raises:
            ConfigError: the export lacks the column, or has no or several candidates.
            DataError: see `question`.
        """
        if not self._image:
            return None
        values: dict[str, list[str]] = {}  # values of each column that are not images
        for record in self._records():
            if not isinstance(record, BadRow):
                for name, value in record.data.items():
                    links = values.setdefault(name, [])
                    if value and not is_picture(str(value)) and not links:
                        links.append(str(value))
        if not values:
            lacking = self.platform.lacking((), "data") if self.platform.columns else ""
            raise DataError(f"{self.name}: does not name the images of the tasks{lacking}. {_TABLE}")
        listed = ", ".join(f"'{name}'" for name in values)
        if isinstance(self._image, str):
            matching = [
                name for name in values if name == self._image or self._image.endswith((f".{name}", f":{name}"))
            ]
            if not matching:
                raise ConfigError(
                    f"{self.name}: {Setting('image', self._image)} is not a column of what annotators saw; there are: "
                    f"{listed}.{did_you_mean(self._image, values)}"
                )
            return matching[0]
        pictures = [name for name, links in values.items() if not links]
        for names in (pictures, list(values)):
            if len(names) == 1:
                return names[0]
        example = (pictures or [*values, "image"])[0]
        raise ConfigError(
            f"{self.name}: which column names the image of a task? What annotators saw has the columns {listed}. Give "
            f"it, such as {Setting('image', example)}."
        )

    def records(self) -> Iterator[Record | BadRow]:
        """Iterate over the entries; see `image` for the names of tasks.

        Yields:
            The record of an entry, or its problem, which includes an image with the file name of another one, as both
            would be the same task. Rows of `Record` count over all files.

        Raises:
            ConfigError, DataError: see `question`.
        """
        column, images = self.image, dict[str, str]()
        for record in self._records():
            yield record if column is None or isinstance(record, BadRow) else self._named(record, column, images)

    def _named(self, record: Record, column: str, images: dict[str, str]) -> Record | BadRow:
        """Name the record's task after its image; updates `images`, task -> image."""
        value = str(record.data.get(column) or "")
        task, reason = task_of_picture(value), "names no image. Fill it in."
        if task:
            first = images.setdefault(task, value)
            if place_of_picture(first) == place_of_picture(value):
                record.task = task
                return record
            reason = (
                f"has the file name of {short_repr(shown(first))}, and a task is named after the file of its image. "
                f"{_TABLE}"
            )
        return BadRow(self.name, record.row, self.platform.column("data", column), shown(value), reason)

    def _records(self) -> Iterator[Record | BadRow]:
        """Yield the entries with the platform's names of tasks."""
        question, start, sizes = self.question, 0, dict[str, Any]()
        self.left_out.clear()
        self.empty.clear()
        if self.platform.suffixes[0] in _ENDINGS:
            unread = {file.name for file in export_files(self.path, _ENDINGS)} - {file.name for file in self.files}
            self.left_out.update([f"images that are no {self.platform.suffixes[0]}"] * len(unread))
        for file in self.files:
            number = 0
            for number, entry in self.platform.records(file):
                if isinstance(entry, BadRow):
                    yield entry
                    continue
                if self._kept and self._group(entry) not in self._kept:
                    self.left_out[f"answers of other {self.platform.groups}s or versions"] += 1
                    continue
                if is_image_entry(entry) and entry["of"] and len(self._images.get(str(entry["image"]), ())) > 1:
                    entry["task"] = f"{entry['of']}/{entry['image']}"
                for place, (item, name) in enumerate((self._items or {"": question}).items()):
                    try:
                        if self.pairs and self.platform.pairs is not None:
                            record = self.platform.pairs(entry, name, self._columns)
                        else:
                            read = partial(region_record, self.platform, sizes) if self.regions else self.platform.read
                            record = read(entry, name, self.spans, file.annotator)
                    except BadValue as bad:
                        yield _bad_row(file, number, bad)
                        break
                    self.left_out.update([] if place else record.left_out)
                    self.empty.update(record.empty)
                    yield from (_bad_row(file, number, bad) for bad in record.bad)
                    record.row, record.entry, record.place = start + number, entry, (file.name, number)
                    if item:
                        record.task, record.data = f"{record.task}/{item}", _of_item(record.data, item, self._items)
                    yield record
            start += number

    def warn_of(self, left_out: Mapping[str, int]) -> None:
        """Warn of skipped contents, with counts."""
        if left_out:
            warnings.warn(f"{self.name}: left out: {counted(left_out)}", UserWarning, stacklevel=3)

    def _other(self, file: ExportFile) -> str:
        """End of a message: the platform that a file seems to be from, or what to choose."""
        for other in PLATFORMS.values():
            if other is not self.platform and _looks_like(file, other):
                return f"It looks like an export of {other.title}: write {Setting('platform', other.name)}."
        return self.platform.menu


def counted(left_out: Mapping[str, int]) -> str:
    """Format skipped contents and counts for messages."""
    return "; ".join(f"{what}: {count:,}" for what, count in left_out.items())


def _of_item(data: Mapping[str, Any], item: str, items: Mapping[str, str]) -> dict[str, Any]:
    """Data of one item, without its number in column names, and data shared by all items."""
    names = {name.removesuffix(item): name for name in data if name.endswith(item)}
    own = {base: data[name] for base, name in names.items() if all(f"{base}{other}" in data for other in items)}
    siblings = {f"{base}{other}" for base in own for other in items}
    return {name: value for name, value in data.items() if name not in siblings} | own


def _bad_row(file: ExportFile, number: int, bad: BadValue) -> BadRow:
    return BadRow(file.name, number, bad.key, shown(bad.value), bad.reason)


def _looks_like(file: ExportFile, platform: Platform) -> bool:
    try:
        entry: Any = next((entry for _, entry in platform.records(file) if not isinstance(entry, BadRow)), None)
    except (ConfigError, DataError):  # another format, or a folder
        return False
    return entry is not None and platform.is_own(entry)


def platform_of(path: str | os.PathLike[str]) -> str | None:
    """Name of the platform whose export a file, an archive or a folder looks like; None if none."""
    for name, platform in PLATFORMS.items():
        files = export_files(path, platform.suffixes)
        if files and _looks_like(files[0], platform):
            return name
    return None


_ENDINGS = (".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp", ".tif", ".tiff")


def is_picture(value: str) -> bool:
    """Whether a value is the path or URL of an image, by its suffix."""
    return _file_name(value).suffix.lower() in _ENDINGS


def task_of_picture(value: str) -> str:
    """File name of a path or URL, without the suffix of images."""
    name = _file_name(value)
    return name.stem if is_picture(value) else name.name


def place_of_picture(value: str) -> str:
    """A path or URL without its query, such as a signature that differs between rows."""
    return value.partition("?")[0]


def _file_name(value: str) -> PurePosixPath:
    path = place_of_picture(value)
    try:
        path = unquote(urlsplit(path).path) if "://" in path else path
    except ValueError:  # not a URL
        path = value
    return PurePosixPath(PurePosixPath(path.replace("\\", "/")).name)
