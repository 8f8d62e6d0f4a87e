"""Entries of exports of Label Studio in its JSON."""


def choice(name, *labels):
    """What was chosen for a question."""
    return {"from_name": name, "to_name": "text", "type": "choices", "value": {"choices": [*labels]}}


def annotation(who, *results, **more):
    return {"completed_by": who, "result": [*results], **more}


def task(number, *annotations, **more):
    return {"id": number, "data": {"text": f"text {number}"}, "annotations": [*annotations], **more}
