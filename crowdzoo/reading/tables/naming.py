"""Identification of a table's columns: task, annotator, label; by given names, our names, or usual names."""

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence

from crowdzoo.errors import DataError, DataWarning, Setting, did_you_mean, short_repr
from crowdzoo.reading.tables.layout import Layout

# Usual names, in lower case without "_", "-" and blanks
_ALIASES = {
    "task": "task taskid item itemid question questionid hit hitid example exampleid image imageid img imageurl url "
    "sample sampleid sentence sentenceid sentid document documentid doc docid unit unitid object objectid "
    "instance instanceid record recordid post postid tweetid",
    "annotator": "annotator annotatorid annotatorname worker workerid workername user userid username rater raterid "
    "ratername judge judgeid coder coderid labeler labelerid labeller labellerid assessor assessorid "
    "annotators annotatorids workers workerids raters raterids "
    "observer observerid contributor contributorid participant participantid respondent respondentid reviewer "
    "reviewerid turker turkerid crowdworker crowdworkerid annotatedby labeledby labelledby",
    "label": "label labels answer answers response category rating class classlabel annotation judgment judgement vote "
    "choice annotatorlabel workerlabel workeranswer givenlabel observedlabel crowdlabel",
    "left": "left leftid lefttask leftitem leftitemid itemleft taska itema modela optiona responsea texta",
    "right": "right rightid righttask rightitem rightitemid itemright taskb itemb modelb optionb responseb textb",
    "winner": "winner winnerid chosen chosenid better",
    "loser": "loser loserid rejected rejectedid worse",
    "ranking": "ranking rankings ranked order ordering orderedlist preferenceorder",
    "position": "position tokenposition tokenindex tokenid",
    "gold": "gold goldlabel goldstandard truth groundtruth true truelabel trueclass",
}
# Columns that are true, or contain a word such as "rejected", if the answer does not count; "_tainted" is Appen's
VOID = "void "  # prefix of such a column's name
_VOID_NAMES = (
    "tainted deleted isdeleted isrejected wasrejected skipped isskipped wasskipped cancelled wascancelled draft "
    "isdraft status assignmentstatus annotationstatus responsestatus"
)
_NO_ANNOTATORS = (
    "split text image title date time timestamp created createdat updated updatedat status url link source comment "
    "comments note notes description confidence language lang topic author index email emailaddress gender sex age "
    "consensus majority majorityvote majoritylabel mode agreement mean median average avg total sum count votes std "
    "final finallabel adjudicated entropy startdate enddate recordeddate ipaddress progress finished"
)
Usual = Mapping[str, Sequence[str]]  # further usual names of columns
ALIASES = {ours: frozenset(names.split()) for ours, names in _ALIASES.items()}


def find_columns(
    source: str, header: Sequence[str], wanted: Sequence[str], layout: Layout, more: Usual | None = None
) -> tuple[dict[str, str], dict[str, str]]:
    """Find columns by given name, else by our name, else by a usual name if only one column has one.

    Case, `_`, `-` and blanks are ignored in usual names.

    Args:
        source: name of the source in error messages.
        header: the source's column names.
        wanted: our names.
        layout: layout with the given names.
        more: our name -> further usual names.

    Returns:
        Our name -> the source's name for the columns found, in the order of `wanted`, including columns that mark
        annotations that do not count, as "void NAME"; and those found by a usual name.

    Raises:
        DataError: a given column does not exist, or a column is duplicate or ambiguous.
    """
    chosen = layout.columns
    columns: dict[str, str] = {}
    guessed: dict[str, str] = {}
    for ours in wanted:
        if chosen.get(ours) == "":
            continue
        if ours in chosen:
            if chosen[ours] not in header:
                raise DataError(column_not_there(source, ours, chosen[ours], header))
            columns[ours] = chosen[ours]
        elif ours in header and ours not in chosen.values():
            columns[ours] = ours
        elif ours == "annotator" and "worker" in header and "worker" not in chosen.values():
            columns[ours] = "worker"
    used = {*columns.values(), *chosen.values()}
    for ours in wanted:
        if ours in columns or ours in chosen:
            continue
        names = usual_columns([name for name in header if name not in used], [ours], more)
        if len(names) > 1:
            candidates = " or ".join(f"'{name}'" for name in names)
            which = f"Say which: {_named(layout.option, {ours: names[0]})}."
            raise DataError(f"{source}: there is no column '{ours}', and it may be {candidates}. {which}")
        if names:
            columns[ours] = guessed[ours] = names[0]
    for name in columns.values():
        if list(header).count(name) > 1:
            raise DataError(f"{source}: column '{name}' is there {list(header).count(name)} times. Keep one.")
    is_of_answers = "annotator" in wanted and len(wanted) > 1
    rest = {*header} - {*columns.values(), *chosen.values()} if is_of_answers else set[str]()
    void = {f"{VOID}{name}": name for name in header if name in rest and _squeezed(name) in _VOID_NAMES.split()}
    return {ours: columns[ours] for ours in wanted if ours in columns} | void, guessed


def usual_columns(header: Sequence[str], wanted: Iterable[str], more: Usual | None = None) -> list[str]:
    """Names in a header that are usual names of the wanted columns."""
    usual = {name for ours in wanted for name in (*ALIASES.get(ours, ()), *(more or {}).get(ours, ()))}
    return [name for name in dict.fromkeys(header) if _squeezed(name) in usual]


def may_be_gold(name: str) -> bool:
    """Whether a column of instances has a usual name for gold."""
    return _squeezed(name) in ALIASES["gold"] | {"label", "labels", "class", "category"}


def is_no_annotator(name: str) -> bool:
    """Whether a column of a wide table has a usual name of something other than an annotator."""
    plain = re.sub(r"unnamed:\d+$", "", _squeezed(name))  # an index, as named by pandas when it reads its own file
    if re.search(r"[\W_](comments?|notes?|time|timestamp|date|confidence|seconds)$", name, re.IGNORECASE):
        return True  # further data of a rater, as in rater1_comment
    return name == "n" or plain in ALIASES["gold"].union(_NO_ANNOTATORS.split(), [""])


def _squeezed(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).casefold()


def column_not_there(source: str, ours: str, theirs: str, header: Sequence[str]) -> str:
    """Error message for a given column that is not in a header."""
    listed = ", ".join(map(short_repr, header[:20])) + (", ..." if len(header) > 20 else "")
    what = f"there is no column {short_repr(theirs)}, which was given for '{ours}'"
    return f"{source}: {what}. The columns are {listed}.{did_you_mean(theirs, header)}"


def warn_of_guess(source: str, guessed: Mapping[str, str], option: str, stacklevel: int) -> None:
    """Warn of columns found by usual names, and suggest the option of this name, if there is one."""
    if guessed:
        fix = "Give that option to be sure" if option else "Rename them to be sure"
        text = f"{source}: columns were found by usual names: {_named(option, guessed)}. {fix}."
        warnings.warn(text, DataWarning, stacklevel=stacklevel + 1)


def _named(option: str, columns: Mapping[str, str]) -> str:
    """Format columns as a setting, or in words without an option."""
    return str(Setting(option, columns)) if option else ", ".join(f"{own!r} as {ours}" for ours, own in columns.items())
