"""A large project in Label Studio: seconds and requests of the first round, and of a second one.

    make engines                                            # brings Label Studio
    python benchmarks/label_studio_pull.py                  # 20,000 tasks with 5 answers each
    python benchmarks/label_studio_pull.py --tasks 2000

Texts of 200 characters of four classes; a real server with SQLite on this machine. Tasks and answers are written into
its database by its own models, and dated a day ago, since an import of 1,000 tasks with answers takes minutes. The
first pull, one after nothing changed, and one after ten answers came in. `load` is the machine's load average.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from label_studio_team import CLASSES, CONFIG
from server import PROGRAM, SETTINGS, LabelStudio, label_studio

from crowdzoo.label_studio.project import Project
from crowdzoo.report.tables import print_table

RESULTS = Path(__file__).parent / "results" / "label_studio_pull.json"
ANSWERS, ANNOTATORS = 5, 8
NEW = 10  # answers before the last round


# Runs in Label Studio's own Python: number of tasks, project, then users
FILL = """
import os, random, sys
from datetime import datetime, timedelta, timezone
import label_studio
sys.path.insert(0, os.path.dirname(label_studio.__file__))
os.environ["DJANGO_SETTINGS_MODULE"] = "core.settings.label_studio"
import django
django.setup()
from tasks.models import Annotation, Task
random.seed(0)
number, project, *users = map(int, sys.argv[1:])
for start in range(0, number, 1000):
    tasks = Task.objects.bulk_create([
        Task(data={"text": f"text {place} ".ljust(200, "x")}, project_id=project, overlap=5, is_labeled=True,
             total_annotations=5, inner_id=place + 1)
        for place in range(start, min(start + 1000, number))
    ])
    Annotation.objects.bulk_create([
        Annotation(task=task, project_id=project, completed_by_id=who, lead_time=5.0, result=[{
            "from_name": "kind", "to_name": "text", "type": "choices",
            "value": {"choices": random.choices("abcd", (7, 1, 1, 1))}}])
        for task in tasks for who in random.sample(users, 5)
    ])
earlier = datetime.now(timezone.utc) - timedelta(days=1)
Task.objects.filter(project_id=project).update(updated_at=earlier)
Annotation.objects.filter(project_id=project).update(updated_at=earlier)
"""


def fill(studio: LabelStudio, number: int) -> int:
    """Makes the project."""
    users = [studio.user(f"annotator{place}@example.com").id for place in range(ANNOTATORS)]
    project = studio.project(CONFIG, [], maximum_annotations=ANSWERS)
    environment = {**os.environ, **SETTINGS, "LABEL_STUDIO_BASE_DATA_DIR": str(studio.folder)}
    environment.pop("PYTHONPATH", None)
    command = [PROGRAM.with_name("python"), "-c", FILL, number, project, *users]
    subprocess.run([*map(str, command)], env=environment, check=True, stdout=subprocess.DEVNULL)
    return project


def measure(studio: LabelStudio, number: int, folder: Path) -> dict[str, Any]:
    """Seconds and requests of each round."""
    project = Project(studio.url, number, studio.owner.token, folder=folder)
    found: dict[str, Any] = {}
    user = studio.user("late@example.com")
    for name in ("first", "nothing changed", f"{NEW} answers came in"):
        if name.startswith(str(NEW)):
            for task in project.store.ids()[:NEW]:
                user.choose(task, CLASSES[0])
        begin, requests = time.perf_counter(), project.client.requests
        project.pull()
        found[name] = {
            "seconds": round(time.perf_counter() - begin, 2),
            "requests": project.client.requests - requests,
            "load": round(os.getloadavg()[0], 1),
        }
        print(name, found[name], flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=20_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, label_studio(Path(folder, "server")) as studio:
        project = fill(studio, arguments.tasks)
        found = {"tasks": arguments.tasks, "answers": ANSWERS * arguments.tasks}
        found["rounds"] = measure(studio, project, Path(folder, "pulled"))
    saved = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    saved[str(arguments.tasks)] = found
    RESULTS.write_text(json.dumps(saved, indent=1) + "\n")
    rows = [(name, f"{row['seconds']:,}", f"{row['requests']:,}") for name, row in found["rounds"].items()]
    print_table(f"{found['tasks']:,} tasks, {found['answers']:,} answers", ("round", "seconds", "requests"), rows)


if __name__ == "__main__":
    main()
