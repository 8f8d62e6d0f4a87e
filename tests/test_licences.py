"""Licences of the packages that the extras install: each is known, and none binds those who build on crowdzoo.

`make licences` prints them as a table, and `make sbom` writes them into the bill of materials. Both read what the
installed packages say of themselves, so they cover the packages of this Python's stack.
"""

import json
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

import crowdzoo

ROOT = Path(__file__).resolve().parents[1]
# words in what a package says -> the licence's SPDX name, or its family; from the special to the general
FAMILIES = {
    r"\bAGPL|Affero": "AGPL",
    r"\bLGPL|Lesser General": "LGPL",
    r"\bGPL|General Public": "GPL",
    r"\bMPL|Mozilla": "MPL-2.0",
    r"Apache": "Apache-2.0",
    r"\bBSD\b|FreeBSD|BSD-[23]|0BSD|3-Clause": "BSD",
    r"\bMIT(-CMU)?\b|HPND": "MIT",
    r"\bISC\b": "ISC",
    r"\bPSF|Python Software Foundation": "PSF-2.0",
    r"Unlicense|\bCC0|Public Domain|Zlib": "public domain or Zlib",
}
PERMISSIVE = {"Apache-2.0", "BSD", "MIT", "ISC", "PSF-2.0", "public domain or Zlib"}
# package -> (licence that it has, why it may be there); another licence of the package is refused
LISTED = {
    "certifi": ("MPL-2.0", "a list of certificates, used as it is; the licence covers its own files"),
    "fqdn": ("MPL-2.0", "used as it is; the licence covers its own files"),
    "orjson": ("MPL-2.0", "used as it is; the licence covers its own files"),
    "tqdm": ("MPL-2.0", "used as it is; the licence covers its own files"),
    "pysimdjson": (
        "unknown",
        "its metadata say nothing; the file LICENSE that it brings is MIT, simdjson's Apache-2.0",
    ),
    "namex": ("unknown", "its metadata say nothing; the file LICENSE that it brings is Apache-2.0; Keras needs it"),
}
# NVIDIA's libraries, which the extra `gpu` alone brings
NVIDIA = ("unknown", "NVIDIA's own licence; only the extra gpu installs it, and nothing of it is passed on here")


def listed(name: str) -> tuple[str, str] | None:
    """The licence that a package has and why it may be there; None where there is no exception for it."""
    return LISTED.get(name) or (NVIDIA if name.startswith("nvidia-") else None)


def canonical(name: str) -> str:
    """The name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def said(package: metadata.PackageMetadata) -> str:
    """What a package says of its licence: the expression, else the classifiers, else the first line of the field."""
    classifiers = [
        line.split("::")[-1].strip() for line in package.get_all("Classifier") or [] if line.startswith("License ::")
    ]
    named = ", ".join(each for each in classifiers if each != "OSI Approved")
    field = (package.get("License") or "").strip().split("\n")[0]
    return package.get("License-Expression") or named or field


def families(text: str) -> set[str]:
    """The licences that a text names; {"unknown"} for none. Of a choice (A OR B) the permissive ones are taken."""
    parts = [_named(part) for part in re.split(r"\s+OR\s+|/", text)] if " AND " not in text else [_named(text)]
    free = [part for part in parts if part and part <= PERMISSIVE]
    return (free[0] if free else set().union(*parts)) or {"unknown"}


def _named(text: str) -> set[str]:
    found = set()
    for words, family in FAMILIES.items():
        if re.search(words, text, re.I):
            found.add(family)
            text = re.sub(words, "", text, flags=re.I)
    return found


def refused(name: str, text: str) -> str | None:
    """Why a package may not be a dependency; None if it may."""
    strict = families(text) - PERMISSIVE
    if not strict or strict == {(listed(name) or ("", ""))[0]}:
        return None
    return f"{name}: {', '.join(sorted(strict))} ({text or 'says nothing'})"


def packages() -> Iterator[tuple[str, str, str]]:
    """Name, version and licence text of the installed packages that the extras bring."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    wanted = {canonical(line.split("==")[0]) for line in lines if "==" in line}
    for each in sorted(metadata.distributions(), key=lambda each: canonical(each.name)):
        if canonical(each.name) in wanted:
            yield canonical(each.name), each.version, said(each.metadata)


def with_licences(bill: dict) -> dict:
    """A bill of materials of uv, CycloneDX, with crowdzoo's version and the licences of the installed packages."""
    version, licence = crowdzoo.__version__, said(metadata.metadata("crowdzoo"))
    bill["metadata"]["component"] |= {
        "version": version, "purl": f"pkg:pypi/crowdzoo@{version}", "licenses": [{"expression": licence}]
    }  # fmt: skip
    texts = {(name, version): text for name, version, text in packages()}
    for component in bill["components"]:
        if text := texts.get((component["name"], component["version"])):
            component["licenses"] = [{"license": {"name": text}}]
    return bill


def test_the_licence_of_every_dependency_is_permissive_or_listed_with_a_reason():
    found = list(packages())
    assert len(found) > 30
    assert [reason for name, _, text in found if (reason := refused(name, text))] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("GNU General Public License v3 (GPLv3)", {"GPL"}),
        ("GNU Lesser General Public License v2 or later (LGPLv2+)", {"LGPL"}),
        ("AGPL-3.0-only", {"AGPL"}),
        ("GPL-2.0-only OR MIT", {"MIT"}),
        ("MIT AND GPL-3.0-or-later", {"MIT", "GPL"}),
        ("MPL-2.0 AND (Apache-2.0 OR MIT)", {"MPL-2.0", "Apache-2.0", "MIT"}),
        ("BSD 3-Clause License or Apache License, Version 2.0", {"BSD", "Apache-2.0"}),
        ("Proprietary", {"unknown"}),
        ("", {"unknown"}),
    ],
)
def test_the_licences_that_a_text_names(text, expected):
    assert families(text) == expected


def test_the_bill_of_materials_has_the_version_and_the_licences():
    components = [{"name": "numpy", "version": metadata.version("numpy")}, {"name": "numpy", "version": "0.1"}]
    bill = with_licences({"metadata": {"component": {"name": "crowdzoo"}}, "components": components})
    main = bill["metadata"]["component"]
    assert (main["name"], main["version"]) == ("crowdzoo", crowdzoo.__version__)
    assert main["purl"] == f"pkg:pypi/crowdzoo@{crowdzoo.__version__}"
    assert main["licenses"] == [{"expression": "Apache-2.0 AND CC-BY-4.0"}]
    installed, other = bill["components"]
    assert "BSD" in installed["licenses"][0]["license"]["name"]
    assert "licenses" not in other


if __name__ == "__main__":
    if sys.argv[1:]:
        path = Path(sys.argv[1])
        path.write_text(json.dumps(with_licences(json.loads(path.read_text(encoding="utf-8"))), indent=2))
        sys.exit()
    print("| package | version | licence | note |\n|---|---|---|---|")
    for name, version, text in packages():
        note = refused(name, text) or (listed(name) or ("", ""))[1]
        print(f"| {name} | {version} | {text or 'says nothing'} | {note} |")
