"""What crowdzoo relies on of Label Studio's server, asked of the server itself."""

import pytest
from server import CHOICES

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("label_studio")]
CONFIG = CHOICES.format('<Choice value="cat"/><Choice value="dog"/>')


def test_users_answer_with_tokens_of_their_own_and_the_export_says_who(studio):
    ann, bob = studio.user("ann@example.com"), studio.user("bob@example.com")
    project = studio.project(CONFIG, [{"data": {"text": "purrs"}}], maximum_annotations=2)
    for user, label in ((ann, "cat"), (bob, "dog")):
        user.choose(user.next_task(project)["id"], label)
    [task] = studio.owner.json("GET", f"/api/projects/{project}/export", exportType="JSON")
    said = {row["completed_by"]: row["result"][0]["value"]["choices"] for row in task["annotations"]}
    assert said == {ann.id: ["cat"], bob.id: ["dog"]}
    assert ann.next_task(project) is None
