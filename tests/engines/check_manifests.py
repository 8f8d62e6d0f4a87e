"""Checks files of `crowdzoo deploy` against the official schemas; run by the Python that `make engines` makes.

check_manifests.py FOLDER...        # prints a line for each file, and ends with 1 where one does not fit
"""

import json
import sys
from pathlib import Path

import jsonschema
import kubernetes_validate
import yaml

SCHEMAS = Path(sys.prefix)
CUSTOM = ("InferenceService", "Gateway", "HTTPRoute", "PodMonitor", "PrometheusRule")
KUBERNETES = ("1.29", "1.37")  # the oldest and the newest release that are looked at


def closed(schema):
    """A schema in which a name that it does not have is an error; the cluster drops it without a word."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: closed(value) for key, value in schema.items()}
    if isinstance(found.get("properties"), dict) and not schema.get("x-kubernetes-preserve-unknown-fields"):
        found.setdefault("additionalProperties", False)
    return found


def custom_schema(content):
    """The schema of an object that a cluster does not know by itself."""
    group, _, name = content["apiVersion"].partition("/")
    definition = yaml.safe_load((SCHEMAS / f"{group}_{content['kind'].lower()}s.yaml").read_text())
    version = next(one for one in definition["spec"]["versions"] if one["name"] == name)
    schema = closed(version["schema"]["openAPIV3Schema"])
    schema["properties"]["metadata"] = {"type": "object"}  # Kubernetes' own, which the definition leaves open
    return schema


def faults(path):
    """What does not fit in a file."""
    for content in yaml.safe_load_all(path.read_text()):
        yield from faults_of(content, path.name)


def faults_of(content, name):
    if name == "compose.yaml":
        schema = json.loads((SCHEMAS / "compose-spec.json").read_text())
    elif content["kind"] in CUSTOM:
        schema = custom_schema(content)
    else:
        for version in KUBERNETES:
            try:
                kubernetes_validate.validate(content, version, strict=True)
            except kubernetes_validate.ValidationError as error:
                yield f"Kubernetes {version}: {'.'.join(map(str, error.path))}: {error.message}"
        return
    for error in jsonschema.Draft7Validator(schema).iter_errors(content):
        yield f"{'.'.join(map(str, error.absolute_path))}: {error.message}"


if __name__ == "__main__":
    failed = False
    for folder in sys.argv[1:]:
        for path in sorted(Path(folder).glob("*.yaml")):
            found = list(faults(path))
            failed |= bool(found)
            print(f"{path.name}: {'; '.join(found) or 'fits'}")
    sys.exit(failed)
