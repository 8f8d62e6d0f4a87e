"""`crowdzoo next`: which annotator to ask about which task next, or which tasks to give to an expert."""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdzoo import process
from crowdzoo.commands import options
from crowdzoo.commands.options import add_options, group, integer, number, path
from crowdzoo.commands.outputs import Output, fitted, marked
from crowdzoo.data.annotations import Annotations
from crowdzoo.data.crowd_sequences import annotations_of, with_annotations
from crowdzoo.errors import ConfigError, DataError, option_text, shorten
from crowdzoo.files.writing import atomic_file, write_rows
from crowdzoo.kinds import KINDS, Kind
from crowdzoo.kinds.questions import Opened, askable, pooled
from crowdzoo.quality.copies import copy_families, counted_once, family_names
from crowdzoo.quality.first_round import PER_TASK, first_annotations
from crowdzoo.quality.model_agreement import codes_of
from crowdzoo.quality.next_annotation import ALTERNATIVES, SURE, class_gains, next_questions
from crowdzoo.quality.settled import WORTH, can_be_settled, settlement, with_range, worth_asking
from crowdzoo.report.tables import print_table

if TYPE_CHECKING:
    from crowdzoo.kinds.questions import Questions
    from crowdzoo.quality import NextAnnotations, PeopleAndModels
    from crowdzoo.reading.instances.annotator_table import AnnotatorTable
    from crowdzoo.reading.instances.instances import Instances
    from crowdzoo.reading.tables.layout import Layout

MATRICES = "hierarchical-dawid-skene"  # used if the default method has no confusion matrices
CAMPS = (
    "Two camps of annotators contradict each other, and answers do not tell which is right: crowdzoo report shows "
    "them. Label some tasks yourself before you ask for more."
)
NEVER_STOPS = "not known here: some tasks are never sure; stop when a batch adds few sure tasks"
ENDINGS = (".csv", ".json")
Asked = tuple[tuple[Any, ...], Any, float, float]  # names of the task (or both sides) and annotator; gain; cost
# Open tasks, the maximum number of questions per open task, whether any task may need answers, and rows of the table on
# the state of the labels
Round = tuple[Opened, np.ndarray, bool, list[tuple[str, str]]]
BUDGET = 100.0
# start of a file of questions
BATCH = r'^(task|left,right),annotator,gain,cost$|^\[\s+{\s+"data": {.*"annotators": \['


def describe(command: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    columns = f"what was said so far: columns task, annotator, label ({options.LABEL_FORMATS})"
    command.add_argument("annotations", type=path, help=columns)
    tasks = (
        "all tasks, also those that nobody labelled: column task, and perhaps text, which is copied to a .json batch "
        "(.parquet, .csv); or a folder of images. With --platform, those of the export are known without it"
    )
    command.add_argument("instances", type=path, nargs="?", help=tasks)
    default = KINDS[options.CLASSES].aggregation.default
    method = {
        "--method NAME": f"aggregation method with confusion matrices (default {default}; "
        "where --annotator-table says who is a model, people's answers decide what a model's is worth)",
    }
    add_options(command, method)
    options.add_values(command, "--set", "setting of the method, such as prior=0.1")
    options.add_seed(command, "the method, or of --gold-sample")
    prior = {
        "--prior DIR": "earlier result of crowdzoo aggregate with the same classes: what it knows of annotators "
        "counts in addition to their annotations here",
    }
    add_options(command, prior, type=path, dest="earlier")
    sure = {
        "--sure P": "do not ask about tasks whose label is this sure, from 0 to 1. Classes: settled with this "
        "probability (default: as --worth says). Other kinds, people and models: tasks with two answers or more "
        f"(default {SURE:g}), by each tag of a sentence; by the share of the variance of ratings that is not error; "
        "by the confidence of texts and regions, for these also by the mean Dice coefficient of two answers; by the"
        " rank of a task among preferences",
    }
    add_options(command, sure, type=number(0, 1))
    questions = group(command, "number and cost of questions")
    budget = {"--budget X": "most that all questions may cost together (default 100: a hundred answers that cost 1)"}
    add_options(questions, budget, type=number(0), default=BUDGET)
    pay = {"--pay X": "price of an answer by annotators whom --cost does not name (default 1)"}
    add_options(questions, pay, type=number(0), default=1.0)
    costs = {"--cost NAME=X": "price of an answer by this annotator (default: --pay); may be given several times"}
    add_options(questions, costs, action="append", default=[], dest="costs")
    people = {
        "--annotators A,B,…": "annotators who can be asked (default: all in the annotations except "
        "volunteers of Zooniverse without an account)",
        "--new A,B,…": "annotators without answers who can be asked as well; they count as usual annotators, or as "
        "--prior knows them",
    }
    add_options(questions, people)
    answers = {"--per-task N": f"most questions about one task (default 1; in the first round {PER_TASK})"}
    add_options(questions, answers, type=integer(1, options.MOST))
    per_annotator = {
        "--per-annotator N": "most questions for one annotator (default: twice an even share among those who can "
        "answer more, of 64 at most)",
    }
    add_options(questions, per_annotator, type=integer(1, options.MOST))
    first = {
        "--first": "plan the first round, before any answer: the only file is that of the tasks, and --annotators "
        "names who answers. They get equal loads, every two share tasks, and a tenth of the questions are tasks of "
        "--gold",
    }
    add_options(questions, first, action="store_true")
    out = {
        "--out FILE": "file for the questions: .csv (task, annotator, gain: what the answer is expected to tell, cost; "
        "for preferences left and right in place of task), or .json, an object per task",
    }
    add_options(group(command, options.OUTPUT), out, type=path)
    options.add_spreadsheet(command)
    sample = {
        "--gold-sample N": "instead of questions, write N answered tasks to --out for you to label yourself, drawn at "
        "random, each with the same probability: columns task and gold, which is empty, and text (from instances). "
        "Filled in, the .csv is what --gold of crowdzoo aggregate reads",
    }
    add_options(group(command, options.INSTANCES), sample, type=integer(1, options.MOST))
    gold = {
        "--gold FILE": "with --gold-sample: tasks that have gold in this file are not drawn again; with --first: they "
        "are asked of all annotators in turn (.csv, .parquet)"
    }
    add_options(group(command, options.INSTANCES), gold, type=path)
    options.add_reading(command)
    options.add_image(command)
    options.add_kinds(command)
    options.add_annotator_table(command, "what answers cost, in place of --cost")
    accepted = {
        "--accepted FILE": "labels that crowdzoo aggregate --accept-error wrote (.csv or .parquet): do not ask about "
        "accepted ones",
    }
    add_options(group(command, options.CLASSES), accepted, type=path)
    options.add_worth(command, "asked about", ": with it, no further question is asked")
    options.add_multi_label(command, ", as in `crowdzoo aggregate`")
    inputs = ("annotations", "instances", "annotator_table", "earlier", "accepted", "gold")
    options.add_outputs(command, inputs, Output("out", "--out", marked(BATCH)), options.REJECTS)


def run(arguments: argparse.Namespace) -> None:
    """Choose the questions and write them."""
    from crowdzoo.reading.instances.export_instances import named_by_image
    from crowdzoo.reading.tables.layout import Layout

    anywhere = Layout.of_second(None, {**vars(arguments), "outside_images": True}, "")  # images are not shown or copied
    kind, questions = _check(arguments)
    if arguments.first:
        _plan(arguments, kind, questions, _instances_of(arguments.annotations, anywhere))
        return
    settings = options.given(arguments, kind.options.scale) | options.settings_of(arguments.settings)
    aggregator = kind.aggregation.create(arguments.method, seed=arguments.seed, **settings)
    instances = None if arguments.instances is None else _instances_of(arguments.instances, anywhere)
    reading = options.reading_options(arguments, kind)
    if instances is not None:
        reading = {**named_by_image(reading, arguments.instances), "tasks": instances.tasks}
    elif arguments.platform is not None and kind.labels.one_label:
        reading["all_tasks"] = True
    crowd = _with_new(kind.reading.read(arguments.annotations, **reading), arguments.new)
    table = annotations_of(crowd)
    if arguments.gold_sample is not None:
        _sample_gold(arguments, table, instances)
        return
    if not len(table):
        raise DataError(
            "there are no annotations: crowdzoo next TASKS --first --annotators A,B,… plans the first round."
        )
    known = None
    if arguments.annotator_table is not None:
        known = options.annotator_table(arguments, table)
        if known.costs is not None:
            options.refuse(arguments, ["pay"], "costs in --annotator-table", usual=1)
    costs = _costs(arguments.costs, arguments.pay, table) if known is None or known.costs is None else known.costs
    who = _asked(arguments.annotators, arguments.new, table)
    without_account = 0 if arguments.annotators else table.num_annotators - len(who)
    mixed = _mixed(arguments, table, known)
    everybody, stands = crowd, np.arange(table.num_annotators)
    settles = kind.labels.one_class and not arguments.multi_label and mixed is None and can_be_settled(crowd)
    if mixed is None:
        stands = _stand_for_copies(len(costs), *questions.answers(crowd), who=who, costs=costs)
        who = who[stands[who] == who]
        # of all, as in `crowdzoo quality`, where `settlement` counts copies once; sentences and pairs are kept whole
        if kind.labels.one_label and not settles:
            crowd = counted_once(crowd, stands)
    result = fitted(aggregator, crowd) if mixed is None else mixed.aggregation
    skills = questions.skills(result, slice(None))
    if skills is None and arguments.method is None:
        skills = fitted(kind.aggregation.create(MATRICES, seed=arguments.seed), crowd).confusions
    if skills is None:
        raise ConfigError(
            f"--method {arguments.method}: has no confusion matrices, so it does not say which annotator to ask; "
            f"use {questions.methods}."
        )
    earlier = None if arguments.earlier is None else _earlier(arguments.earlier, result, questions)
    skills = pooled(skills, questions.weights(result), earlier)
    cells = skills[0].size
    if mixed is not None:
        skills = replace(mixed, aggregation=replace(result, confusions=skills)).next_confusions
    most = min(options.MOST, math.floor(arguments.budget / costs[who].min() + 1e-9))
    if most < 1:
        raise ConfigError(f"--budget {arguments.budget:g}: is less than one answer costs, {costs[who].min():g}.")
    accepted = _accepted(arguments.accepted, table)
    if settles:
        task_round = _by_settlement(arguments, everybody, result, skills, accepted, float(costs[who].mean()))
    else:
        options.refuse(arguments, ("worth", "target"), "several labels from an annotator, models, or so many tasks")
        task_round = _by_sureness(arguments, crowd, result, questions, skills, accepted, most)
    (table, gains, done), per_task, is_open, state = task_round
    if mixed is None:
        table = counted_once(table, stands)
    share = arguments.per_annotator or 2 * math.ceil(most / min(max(_able(table, done, who), 1), ALTERNATIVES))
    found = next_questions(
        gains, table.num_tasks, most, annotators=who, cells=cells, annotations=table, per_task=per_task,
        per_annotator=share, costs=costs, budget=arguments.budget, sure=done,
    )  # fmt: skip
    rows = [
        *kind.reading.size_rows(everybody),
        *[("copies, asked as one", names) for names in dict.fromkeys(family_names(table.annotators, stands)) if names],
        *([("annotators without an account, not asked", f"{without_account:,}")] if without_account else []),
        *([] if mixed is None else [("correlation of models' errors", str(mixed.correlation))]),
        *state,
        *([("accepted tasks", f"{accepted.sum():,}")] if accepted.any() else []),
        ("questions", f"{len(found.tasks):,}"),
        ("cost", f"{found.costs.sum():g} of {arguments.budget:g}"),
        ("annotators asked", f"{len(np.unique(found.annotators)):,}"),
        *_asked_by_source(found, known),
        ("expected gain, all together", f"{found.gains.sum():.4g}"),
        ("gain of an answer", questions.gain_meaning),
        *_why_stopped(found, costs[who], is_open, per_task[~done], share, arguments),
    ]
    names = annotations_of(crowd).tasks
    tasks = [tuple(map(_plain, names[codes])) for codes in questions.sides(table, found.tasks, len(names))]
    asked = list(zip(tasks, map(_plain, table.annotators[found.annotators]), found.gains, found.costs, strict=True))
    notes = [*result.notes]
    if kind.labels.one_class:
        from crowdzoo.quality import camps_of, data_notes

        notes += [CAMPS] if mixed is None and camps_of(everybody, seed=arguments.seed) is not None else []
        notes += data_notes(everybody, result.method, models_named=known is not None and known.sources is not None)
    rows += [("note", note) for note in dict.fromkeys(notes) if not process.is_reported(note)]
    _hand_out(arguments, kind, asked, instances, f"next, by {result.method}", rows)


def _by_settlement(
    arguments: argparse.Namespace, crowd: Annotations, result: Any, skills: Any, accepted: np.ndarray, price: float
) -> Round:
    """Tasks whose label is worth further answers, for classes; `price` is the typical price of an answer."""
    labels, answered = settlement(crowd, result), crowd.redundancy > 0
    worth = WORTH if arguments.worth is None else arguments.worth / price
    done = accepted | ~worth_asking(labels.settled, labels.further, worth=worth, target=arguments.target)
    if arguments.sure is not None:
        done |= labels.settled >= arguments.sure
    consensus, per_task = labels.consensus, np.minimum(arguments.per_task or 1, labels.further)  # as promised
    answers = (consensus if arguments.earlier is None else replace(consensus, confusions=skills)).answers
    state = [
        ("settled labels (estimated)", f"{labels.settled[answered].mean():.1%}"),
        ("tasks worth further answers", f"{(~done).sum():,} of {crowd.num_tasks:,}"),
        ("answers to settle them, about", with_range(labels.further[~done].sum())),
    ]
    opened = Opened(crowd, class_gains(consensus.posteriors, answers), done)
    return opened, per_task, not done.all(), state


def _by_sureness(
    arguments: argparse.Namespace, crowd: Any, result: Any, questions: Questions, skills: Any, accepted: Any, most: int
) -> Round:
    """Tasks with an uncertain label, or pairs of them; `most` is the number of questions."""
    sure, answered = arguments.sure or SURE, annotations_of(crowd).redundancy > 0
    done = questions.find_sure(result, sure, crowd) | accepted
    state = [
        (f"sure tasks ({sure:g} or more)", f"{(done & answered).sum():,} of {answered.sum():,}"),
        ("when to stop", NEVER_STOPS),
    ]
    opened = questions.opened(result, skills, crowd, done, most)
    return opened, np.full(opened.table.num_tasks, arguments.per_task or 1), not done.all(), state


def _able(table: Annotations, done: np.ndarray, who: np.ndarray) -> int:
    """Number of available annotators who have not answered all open tasks."""
    pairs = np.unique(table.annotator_ids.astype(np.int64) * table.num_tasks + table.task_ids)
    pairs = pairs[~done[pairs % table.num_tasks]]  # an annotator may have several labels for a task
    answers_to_open = np.bincount(pairs // table.num_tasks, minlength=table.num_annotators)[who]
    return int((answers_to_open < (~done).sum()).sum())


def _instances_of(path: Path, layout: Layout) -> Instances:
    """The tasks of a file, with texts if it has any; images may be links, and names alone are enough."""
    from crowdzoo.data.instance_kinds import TEXTS
    from crowdzoo.reading.instances.instances import Instances, read_instances
    from crowdzoo.reading.instances.readers import recognised
    from crowdzoo.reading.instances.table import find_instance_columns, read_table, task_names
    from crowdzoo.reading.tables.layout import own_encoding
    from crowdzoo.reading.tables.suffixes import column_names

    kind = recognised(path, layout=layout)
    if path.is_file() and kind != TEXTS:
        header = column_names(path, own_encoding(path, layout))
        if "task" in {*header, *find_instance_columns(str(path), header, layout)[0]}:
            tasks = task_names(read_table(path, ["task"], layout=layout))
            return Instances(tasks, kind, np.zeros((len(tasks), 0), np.float32))
    return read_instances(path, layout=layout)


def _hand_out(
    arguments: argparse.Namespace, kind: Kind, asked: list[Asked], instances: Instances | None, title: str, rows: Any
) -> None:
    """Print a table of facts, and write the questions to --out or print the first ones."""
    if arguments.out is not None:
        _write(arguments.out, asked, kind, instances)
        rows = [*rows, ("questions written to", str(arguments.out))]
    print_table(title, ("", ""), rows)
    if arguments.out is not None or not asked:
        return
    print()
    shown = [(*map(str, task), str(who), f"{gain:.4f}", f"{cost:g}") for task, who, gain, cost in asked[:10]]
    print_table("the first questions (--out FILE writes all)", _columns(kind), shown)


def _columns(kind: Kind) -> tuple[str, ...]:
    """Columns of a file of questions."""
    return (*kind.labels.sides, "annotator", "gain", "cost")


def _plan(arguments: argparse.Namespace, kind: Kind, questions: Questions, instances: Instances) -> None:
    """Write the questions of the first round, and print how balanced they are."""
    people, tasks = options.names_of(arguments.annotators, "annotators"), np.asarray(instances.tasks)
    crowd = Annotations.from_arrays([], [], [], annotators=people, tasks=tasks, classes=["any"])
    costs, per_task = _costs(arguments.costs, arguments.pay, crowd), arguments.per_task or PER_TASK
    affordable = arguments.budget / costs.mean() / min(per_task, len(people))
    names = [tuple(map(_plain, tasks[codes])) for codes in questions.first(len(tasks), affordable, arguments.seed)]
    gold = np.zeros(len(names), bool) if arguments.gold is None else _has_gold(arguments, crowd)
    found = first_annotations(
        len(names), len(people), per_task=per_task, per_annotator=arguments.per_annotator, gold=gold, costs=costs,
        budget=arguments.budget, seed=arguments.seed,
    )  # fmt: skip
    if not len(found.tasks):
        raise ConfigError(f"--budget {arguments.budget:g}: is less than the answers to one task cost (--per-task).")
    answers = np.zeros((len(names), len(people)))
    answers[found.tasks, found.annotators] = 1
    loads, shared = answers.sum(axis=0), (answers.T @ answers)[np.triu_indices(len(people), 1)]
    rows = [
        (questions.subject, f"{len(names):,}"),
        ("of them asked about", f"{len(np.unique(found.tasks)):,}"),
        ("questions", f"{len(found.tasks):,}"),
        ("cost", f"{found.costs.sum():g} of {arguments.budget:g}"),
        ("questions per annotator", f"{loads.min():g} to {loads.max():g}"),
        *([("gold questions", f"{gold[found.tasks].sum():,}")] if gold.any() else []),
        *([("tasks that two annotators share", f"{shared.min():g} to {shared.max():g}")] if len(shared) else []),
        *_why_shorter(found, gold, costs, min(per_task, len(people)), arguments),
    ]
    if len(shared) and not shared.min():
        note = "some annotators share no task: raise --budget or --per-task, or ask fewer annotators first"
        rows.append(("note", note))
    columns = [names[task] for task in found.tasks], [people[who] for who in found.annotators], found.gains, found.costs
    _hand_out(arguments, kind, list(zip(*columns, strict=True)), instances, "a first round", rows)


def _why_shorter(
    found: NextAnnotations, gold: np.ndarray, costs: np.ndarray, answers: int, arguments: argparse.Namespace
) -> list[tuple[str, str]]:
    """A row that explains why a first round costs less than the budget, or lacks tasks.

    Args:
        found: questions.
        gold: tasks that have gold, bool [N]; questions are about the others, as far as the budget allows.
        costs: price per answer of each annotator, [R].
        answers: number of answers per task without gold.
        arguments: arguments of the command.
    """
    most, open_tasks = arguments.per_annotator, np.flatnonzero(~gold)
    left, price = arguments.budget - found.costs.sum(), answers * costs.mean()
    if np.isin(open_tasks, found.tasks).all():
        if left < costs.min():
            return []
        each = "each task has one answer by every annotator"
        each = each if answers == len(costs) else f"each task has {answers} answer{'s' * (answers > 1)} (--per-task)"
        return [("why not more", each)]
    if most is not None and (np.bincount(found.annotators, minlength=len(costs)) < most).sum() < answers:
        return [("why not more", f"the annotators have {most:,} questions each (--per-annotator)")]
    return [("why not all tasks", f"--budget {arguments.budget:g}: all of them cost about {price * len(open_tasks):g}")]


def _has_gold(arguments: argparse.Namespace, crowd: Annotations) -> np.ndarray:
    """Which tasks have gold in --gold, bool [N]."""
    from crowdzoo.reading.instances.gold import check_shared, gold_by_task
    from crowdzoo.reading.tables.layout import Layout

    texts = gold_by_task(arguments.gold, Layout.of_second(None, vars(arguments), ""))
    known = {task for task, text in texts.items() if text}
    check_shared(arguments.gold, known, crowd.tasks)
    return np.array([str(task) in known for task in crowd.tasks.tolist()], bool)


def _stand_for_copies(number: int, *answers: np.ndarray, who: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """For each annotator, the cheapest available one among those who copy each other, codes [R]."""
    families = copy_families(number, *answers)
    order = np.lexsort((costs, ~np.isin(np.arange(len(costs)), who)))
    found, first = np.unique(families[order], return_index=True)
    return order[first][np.searchsorted(found, families)]


def _sample_gold(arguments: argparse.Namespace, crowd: Annotations, instances: Instances | None) -> None:
    """Write answered tasks without gold in random order, all with the same probability, and print their number."""
    answered = crowd.redundancy > 0
    if arguments.gold is not None:
        answered &= ~_has_gold(arguments, crowd)
    able = np.flatnonzero(answered)
    if not able.size:
        raise DataError(f"--gold-sample {arguments.gold_sample}: no answered task without gold is left to draw.")
    drawn = np.random.default_rng(arguments.seed).permutation(able)[: arguments.gold_sample]
    names = [_plain(crowd.tasks[task]) for task in drawn]
    texts = _texts(instances)
    if arguments.out.suffix == ".csv":
        header = ("task", "gold", *(("text",) if texts else ()))
        write_rows(arguments.out, header, [(name, "", *((texts.get(name, ""),) if texts else ())) for name in names])
    else:
        _write_entries(
            arguments.out,
            [{"data": {"task": name} | ({"text": texts[name]} if name in texts else {})} for name in names],
        )
    rows = [
        ("answered tasks without gold", f"{able.size:,}"),
        ("tasks drawn", f"{drawn.size:,}"),
        ("probability of each", f"{drawn.size / able.size:.4g}"),
        ("tasks to label written to", str(arguments.out)),
    ]
    print_table("a random sample for gold", ("", ""), rows)


def _mixed(arguments: argparse.Namespace, crowd: Annotations, table: AnnotatorTable | None) -> PeopleAndModels | None:
    """Aggregate with people's answers as the reference if annotators are both models and people; else None."""
    if arguments.method is not None or arguments.settings or table is None or table.sources is None:
        return None
    if len(np.unique(table.sources)) < 2:
        return None
    from crowdzoo.quality import people_and_models

    models = crowd.annotators[table.sources == "model"].tolist()
    return people_and_models(crowd, models, seed=arguments.seed)


def _asked_by_source(found: NextAnnotations, table: AnnotatorTable | None) -> list[tuple[str, str]]:
    """Rows with the number and cost of questions to models and to people."""
    if table is None or table.sources is None:
        return []
    rows = []
    for source, title in (("model", "questions to models"), ("person", "questions to people")):
        chosen = table.sources[found.annotators] == source
        rows.append((title, f"{int(chosen.sum()):,} (cost {found.costs[chosen].sum():g})"))
    return rows


def _accepted(file: Path | None, crowd: Annotations) -> np.ndarray:
    """Which tasks have an accepted label in a table of labels, bool [N]."""
    if file is None:
        return np.zeros(crowd.num_tasks, bool)
    from crowdzoo.reading.instances.gold import read_gold
    from crowdzoo.reading.tables.layout import Layout

    layout = Layout.of_second("gold=accepted", {})
    return read_gold(file, crowd.tasks, np.array(["false", "true"], object), layout) == 1


def _with_new(crowd: Any, names: str | None) -> Any:
    """The crowd with additional annotators who have not answered yet."""
    if names is None:
        return crowd
    table = annotations_of(crowd)
    there, new = table.annotators.tolist(), options.names_of(names, "new")
    for place, name in enumerate(new):
        if not name or name in [*map(str, there), *new[:place]]:
            raise ConfigError(f"--new {shorten(names)}: {name!r} is empty, named twice, or has answered: leave it out.")
    return with_annotations(crowd, replace(table, annotators=np.array([*there, *new], object)))


def _earlier(folder: Path, result: Any, questions: Questions) -> tuple[Any, np.ndarray]:
    """Skills of this result's annotators according to an earlier one, [R, …], and their numbers of annotations, [R]."""
    earlier = type(result).from_parquet(folder)
    if not len(earlier.annotators):
        raise DataError(f"--prior {folder}: has no annotators. Give a result of annotations, or leave --prior out.")
    places: Any = slice(None)
    if questions.names:
        then, now = ([str(name) for name in getattr(each, questions.names)] for each in (earlier, result))
        if sorted(then) != sorted(now):
            raise DataError(
                f"--prior {folder}: is about {', '.join(then[:5])}, and these annotations about {', '.join(now[:5])}. "
                "Use a result with the same classes."
            )
        places = [then.index(name) for name in now]
    skills = questions.skills(earlier, places)
    if skills is None:
        raise DataError(f"--prior {folder}: {earlier.method} has no confusion matrices; aggregate with {MATRICES}.")
    place_of = {str(name): place for place, name in enumerate(earlier.annotators.tolist())}
    rows = np.array([place_of.get(str(name), -1) for name in result.annotators.tolist()])
    return skills[rows], np.where(rows < 0, 0, questions.weights(earlier)[rows])


def _check(arguments: argparse.Namespace) -> tuple[Kind, Questions]:
    """The kind and its questions; rejects incompatible options before reading anything."""
    others = ("classes", "wide", "annotator_table", "accepted", "no_label", "worth", "target")
    kind = options.checked_kind(arguments, others)
    if kind.questions is None:
        raise ConfigError(f"--kind {kind.name}: crowdzoo next does not know what to ask about {kind.title}.")
    if not kind.labels.one_class:
        options.refuse(arguments, ("annotator_table", "accepted", "worth", "target"), f"--kind {kind.name}")
    if "instances" not in kind.options.inputs and arguments.instances is not None:
        raise ConfigError(f"{arguments.instances}: sentences are in the file of annotations; leave this file out.")
    of_labels = ("method", "settings", "earlier", "sure", "accepted", "worth", "target")
    if arguments.first:
        known = {*kind.options.reading, *kind.options.scale, "only", "exclude", "instances", "new"}
        of_answers = sorted(known - {"gold", "encoding", "decimal"})  # gold and these two also apply to other files
        options.refuse(arguments, (*of_labels, *of_answers, "annotator_table", "gold_sample"), "--first", "error")
        if arguments.annotators is None:
            raise ConfigError("--first: add --annotators A,B,…, who answers.")
        if kind.labels.has_pairs:
            options.refuse(arguments, ["gold"], f"--first --kind {kind.name}")
    elif arguments.gold_sample is not None:
        if not kind.labels.one_label:
            raise ConfigError(f"--gold-sample: draws tasks with one answer; leave it out with --kind {kind.name}.")
        of_questions = ("annotators", "new", "costs", "per_annotator", "annotator_table", "per_task")
        options.refuse(arguments, (*of_labels, *of_questions), "--gold-sample")
        for name, usual in (("budget", BUDGET), ("pay", 1)):
            options.refuse(arguments, [name], "--gold-sample", usual)
        if arguments.out is None:
            raise ConfigError(f"--gold-sample {arguments.gold_sample}: add --out FILE.csv, the tasks to label.")
    elif arguments.gold is not None:
        reason = "which draws N of the other tasks for you to label, or --first, which asks annotators about them"
        raise ConfigError(f"--gold: add --gold-sample N, {reason}.")
    if arguments.pay == 0:
        raise ConfigError("--pay 0: write what an answer costs, above 0, such as 0.04.")
    if arguments.costs and arguments.annotator_table is not None:
        raise ConfigError("--cost and --annotator-table both say what answers cost; leave one out.")
    if arguments.out is not None and arguments.out.suffix not in ENDINGS:
        fix = option_text("--out", str(arguments.out.with_suffix(".csv")))
        raise ConfigError(f"--out {arguments.out}: is written as .csv or .json, by the ending of its name. Give {fix}.")
    for name in options.given(arguments, options.TIMES):
        raise ConfigError(f"--{name}: answers that are left out would be asked for again; leave the option out.")
    if arguments.sure == 0:
        raise ConfigError("--sure 0: every task would be sure; write a probability above 0, such as .95.")
    return kind, kind.questions


def _why_stopped(
    found: NextAnnotations,
    costs: np.ndarray,
    is_open: bool,
    limits: np.ndarray,
    share: int,
    arguments: argparse.Namespace,
) -> list[tuple[str, str]]:
    """A row that explains why the budget was not used up.

    Args:
        found: questions.
        costs: price per answer of each available annotator.
        is_open: whether a task may need answers.
        limits: maximum number of answers per open task; for preferences, per pair that not everyone has compared.
        share: maximum number of questions per annotator.
        arguments: arguments of the command.
    """
    if found.costs.sum() + costs.min() > arguments.budget + 1e-9:
        return []
    if not is_open:
        reason = "no task is worth a further answer: stop here"
    elif limits.size and len(found.tasks) == limits.sum():
        most = arguments.per_task or 1
        each = "one question" if most == 1 else f"{most:,} questions"
        fewer = ", or as many as settle it" if (limits < most).any() else ""
        reason = f"each open task has {each}{fewer} (--per-task)"
    elif (np.bincount(found.annotators) >= share).any():
        reason = f"everyone who could answer more has {share:,} questions (--per-annotator) or costs more than is left"
    else:
        reason = "everybody who can be asked has answered the rest, or costs more than is left; --new NAME adds others"
    return [("why not more", reason)]


def _costs(words: list[str], pay: float, crowd: Annotations) -> np.ndarray:
    """Price per answer of each annotator, [R]."""
    costs = np.full(crowd.num_annotators, pay)
    for word in words:
        name, equals, text = word.rpartition("=")
        try:
            cost = float(text)
        except ValueError:
            cost = math.nan
        if not equals or not (cost > 0 and math.isfinite(cost)):
            raise ConfigError(f"--cost {shorten(word)}: write NAME=X with X above 0, as in expert=5.")
        costs[codes_of(crowd, [name], "--cost ")] = cost
    return costs


def _asked(text: str | None, new: str | None, crowd: Annotations) -> np.ndarray:
    """Codes of the available annotators, from --annotators and --new."""
    if text is None:
        if not crowd.num_annotators:
            raise DataError("there are no annotations, so nothing is known of any annotator.")
        if not len(who := askable(crowd)):
            raise DataError(
                "no annotator has an account, so nobody can be asked again: name who can with --new A,B,…, or "
                "--annotators A,B,…."
            )
        return who
    names = [*options.names_of(text, "annotators"), *([] if new is None else options.names_of(new, "new"))]
    return np.unique(codes_of(crowd, names, "--annotators: "))


def _write(place: Path, asked: list[Asked], kind: Kind, instances: Instances | None) -> None:
    """Write the questions, best first; for Label Studio, with one entry per task."""
    columns = _columns(kind)
    rows = [(*task, who, round(float(gain), 6), float(cost)) for task, who, gain, cost in asked]
    if place.suffix == ".csv":
        write_rows(place, columns, rows)
        return
    texts, sides = _texts(instances), columns[:-3]
    entries: dict[Any, dict[str, Any]] = {}
    for (task, who, _, _), row in zip(asked, rows, strict=True):
        data = dict(zip(sides, task, strict=True)) | {"annotators": []}
        for side, name in zip(sides, task, strict=True):
            data |= {"text" if side == "task" else f"{side}_text": texts[name]} if name in texts else {}
        entry = entries.setdefault(task, {"data": data, "meta": {"gain": row[-2]}})
        entry["data"]["annotators"].append(who)
    _write_entries(place, list(entries.values()))


def _write_entries(place: Path, entries: list[dict[str, Any]]) -> None:
    """Write one object per task in Label Studio's format."""
    text = json.dumps(entries, indent=1, ensure_ascii=False) + "\n"
    with atomic_file(place) as file:
        file.write(text.encode())


def _plain(name: Any) -> Any:
    """Convert a name to a JSON value."""
    return name.item() if isinstance(name, np.generic) else name


def _texts(instances: Instances | None) -> dict[Any, str]:
    from crowdzoo.data.instance_kinds import TEXTS

    if instances is None or instances.kind != TEXTS:
        return {}
    return {_plain(task): str(text) for task, text in zip(instances.tasks, instances.values, strict=True)}
