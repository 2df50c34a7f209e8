"""OSV-Scanner on one bill of materials, with databases on disk: what it read and what it found.

It never sends the list of packages anywhere; with `download` it fetches the databases that it needs first.
"""

import json
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.go_programs import OSV_SCANNER
from tests.support.time_limits import scaled
from tests.tools.advisories import ScanError

SCAN_S = 600
"""Longest time for one image: databases of some 100 MB may be downloaded."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A known vulnerability of a package: all its ids, and the versions that fix it."""

    package: str
    version: str
    ids: tuple[str, ...]
    fixed: tuple[str, ...]

    def __str__(self) -> str:
        """Return one line for people."""
        remedy = f"fixed in {', '.join(self.fixed)}" if self.fixed else "no fixed version is known"
        return f"{self.package} {self.version}: {', '.join(self.ids)}, {remedy}"


@dataclass(frozen=True, slots=True)
class OsvScanner:
    """How it is run: the folder of its databases, and the file of accepted findings, which may be missing."""

    databases: Path
    accepted: Path
    download: bool

    def scan(self, bill: Path, ecosystems: Iterable[str]) -> tuple[int, tuple[Finding, ...]]:
        """Return `read_report` of a CycloneDX file; ScanError if a database of these ecosystems was not read."""
        program = OSV_SCANNER.find()
        if program is None:
            raise ScanError("there is no osv-scanner: install Go and run make osv-scanner, or name it by OSV_SCANNER")
        try:
            done = subprocess.run(
                [str(program), *self._arguments(), "--lockfile", str(bill)],
                capture_output=True,
                text=True,
                env={**os.environ, "OSV_SCANNER_LOCAL_DB_CACHE_DIRECTORY": str(self.databases)},
                timeout=scaled(SCAN_S),
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise ScanError(f"OSV-Scanner did not end within {error.timeout:.0f} s: run make scan again") from error
        # It may end as if all was well although it could not read a database.
        missing = [name for name in ecosystems if f"Loaded {name} local db" not in done.stderr]
        if missing or done.returncode not in {0, 1}:
            advice = "\nWithout a network, name a folder of advisories: make scan ADVISORIES=folder"
            raise ScanError(
                f"OSV-Scanner ended with {done.returncode}, databases not read: {', '.join(missing) or 'none'}\n"
                f"{done.stderr.strip()[-2000:]}{advice if self.download else ''}"
            )
        return read_report(json.loads(done.stdout))

    def _arguments(self) -> Iterator[str]:
        yield from ("scan", "source", "--format", "json", "--all-packages", "--all-vulns", "--no-resolve")
        yield from ("--offline-vulnerabilities", "--download-offline-databases") if self.download else ("--offline",)
        if self.accepted.is_file():
            yield from ("--config", str(self.accepted))


def read_report(report: Mapping[str, Any]) -> tuple[int, tuple[Finding, ...]]:
    """Return how many packages the scanner read, and what it found; ids of one vulnerability make one finding."""
    packages = [one for result in report.get("results") or [] for one in result["packages"]]
    return len(packages), tuple(finding for one in packages for finding in _findings(one))


def _findings(examined: Mapping[str, Any]) -> Iterator[Finding]:
    package = examined["package"]
    advisories = {one["id"]: one for one in examined.get("vulnerabilities") or []}
    for group in examined.get("groups") or []:
        ids = dict.fromkeys([*group["ids"], *sorted(group.get("aliases") or [])])
        affected = [one for name in group["ids"] for one in _affected(advisories[name], package["name"])]
        name = affected[0]["package"]["name"] if affected else package["name"]
        fixed = dict.fromkeys(version for one in affected for version in _fixed(one))
        yield Finding(name, package["version"], tuple(ids), tuple(fixed))


def _affected(advisory: Mapping[str, Any], package: str) -> Iterator[Mapping[str, Any]]:
    """Yield what an advisory states of a package, which the scanner names without the group of a jar."""
    for affected in advisory["affected"]:
        name = affected.get("package", {}).get("name", "")
        if name == package or name.endswith(f":{package}"):
            yield affected


def _fixed(affected: Mapping[str, Any]) -> Iterator[str]:
    """Yield fixed versions; a commit is not one."""
    ranges = [one for one in affected.get("ranges") or [] if one["type"] != "GIT"]
    yield from (event["fixed"] for one in ranges for event in one["events"] if "fixed" in event)
