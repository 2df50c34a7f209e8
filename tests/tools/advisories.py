"""Databases of known vulnerabilities for `make scan`: an archive for each ecosystem, as OSV-Scanner reads it offline.

Advisories are documents of the OSV schema: YAML files, which https://github.com/pypa/advisory-database consists of, or
JSON files. OSV-Scanner silently drops a document with a field that it does not know, so only what it needs is written.
"""

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

import yaml
from packaging.utils import canonicalize_name

TEXT_ONLY = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
"""Takes every value as text: a version 1.10 is not the number 1.1. The one in C is much faster."""

PYPI = "PyPI"
"""The ecosystem in whose packages `-`, `_` and `.` are the same; bills of materials have `-`."""

IN_A_CHECKOUT = "vulns"
"""Folder of the advisories in pypa/advisory-database, whose other folders have YAML files, too."""


class ScanError(Exception):
    """Why nothing can be said about an image, and what to do."""


@dataclass(frozen=True, slots=True)
class Database:
    """What an archive holds, without withdrawn advisories; `newest` is the day when the last one was published."""

    advisories: int
    newest: str


def archive(databases: Path, ecosystem: str) -> Path:
    """Return where OSV-Scanner keeps the database of an ecosystem."""
    return databases / "osv-scalibr" / ecosystem / "all.zip"


def write_databases(sources: Iterable[Path], databases: Path) -> None:
    """Replace a folder of databases by what folders of advisories name; ScanError if a document is not an advisory."""
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for source in sources:
        advisories = [_advisory(file) for file in _files(source)]
        if not advisories:
            raise ScanError(
                f"there is no YAML or JSON file in {source}: name a folder of advisories, such as a checkout of "
                "https://github.com/pypa/advisory-database"
            )
        for advisory in advisories:
            for affected in advisory["affected"]:
                found.setdefault(affected["package"]["ecosystem"], {})[advisory["id"]] = advisory
    shutil.rmtree(databases, ignore_errors=True)
    for ecosystem, by_id in found.items():
        path = archive(databases, ecosystem)
        path.parent.mkdir(parents=True)
        with ZipFile(path, "w", ZIP_DEFLATED) as whole:
            for name, advisory in by_id.items():
                whole.writestr(f"{name}.json", json.dumps(advisory))


def read_database(databases: Path, ecosystem: str) -> Database | None:
    """Return what the database of an ecosystem holds, or None if there is none; ScanError if it is damaged."""
    path = archive(databases, ecosystem)
    if not path.is_file():
        return None
    try:
        with ZipFile(path) as whole:
            advisories = [json.loads(whole.read(name)) for name in whole.namelist() if name.endswith(".json")]
    except (BadZipFile, ValueError) as error:
        raise ScanError(f"the database {path} is damaged ({error}): delete it and run make scan again") from error
    days = [str(one.get("published") or one["modified"])[:10] for one in advisories if not one.get("withdrawn")]
    return Database(len(days), max(days, default="never"))


def _files(source: Path) -> list[Path]:
    folder = source / IN_A_CHECKOUT
    folder = folder if folder.is_dir() else source
    return sorted(file for file in folder.rglob("*") if file.suffix in {".yaml", ".yml", ".json"})


def _advisory(file: Path) -> Mapping[str, Any]:
    text = file.read_text(encoding="utf-8")
    try:
        # As text, no tag of YAML makes an object.
        whole = json.loads(text) if file.suffix == ".json" else yaml.load(text, TEXT_ONLY)  # noqa: S506
        return dict(_needed(whole))
    except (ValueError, KeyError, TypeError, AttributeError, yaml.YAMLError) as error:
        raise ScanError(
            f"{file} is not an advisory of the OSV schema ({error!r}): repair it, or name a folder without it"
        ) from error


def _needed(whole: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the fields by which packages are matched, and aliases, by which findings are joined and accepted."""
    yield "id", whole["id"]
    for name in ("modified", "published", "withdrawn"):
        if name == "modified" or whole.get(name):
            datetime.fromisoformat(whole[name])  # The scanner drops the document otherwise.
            yield name, whole[name]
    yield "aliases", whole.get("aliases") or []
    yield "affected", [_affected(one) for one in whole.get("affected") or [] if one.get("package")]


def _affected(whole: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return one affected package, without ranges of commits: the scanner reads no range that follows one of these."""
    ecosystem, name = whole["package"]["ecosystem"], whole["package"]["name"]
    ranges = [{"type": one["type"], "events": one["events"]} for one in whole.get("ranges") or []]
    return {
        "package": {"ecosystem": ecosystem, "name": canonicalize_name(name) if ecosystem == PYPI else name},
        "ranges": [one for one in ranges if one["type"] != "GIT"],
        "versions": whole.get("versions") or [],
    }
