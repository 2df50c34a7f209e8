"""An advisory about a made-up package, and bills of materials that list packages, for tests of `make scan`."""

import json
from pathlib import Path

ADVISORY = """
id: PYSEC-2030-1
details: The made-up package parcel opens what it should not.
aliases: [CVE-2030-0001]
affected:
- package: {name: Par_cel, ecosystem: PyPI, purl: pkg:pypi/par-cel}
  ranges:
  - type: GIT
    repo: https://example.com/parcel
    events: [{introduced: "0"}, {fixed: 195caac172690456dcdc8cc7a6ca50e05abf8182}]
  - type: ECOSYSTEM
    events:
    - introduced: "0"
    - fixed: 1.10
  versions:
  - 1.8
  - 1.10a1
  - 1.0
references:
- {type: OF_A_LATER_SCHEMA, url: https://example.com}
modified: 2030-03-01T10:00:00.123456Z
published: 2030-02-01T10:00:00Z
"""
"""Versions without quotes, a name that is not the canonical one, and a field that no scanner of today knows."""


def write_bill(folder: Path, image: str, *components: str) -> Path:
    """Write the bill of materials of an image; a component is a package URL, or the name of a file without one."""
    listed = []
    for one in components:
        name, _, version = one.rpartition("/")[2].partition("@")
        purl = {"purl": one} if one.startswith("pkg:") else {}
        listed.append({"type": "library", "bom-ref": one, "name": name, "version": version, **purl})
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{image}.cdx.json"
    file.write_text(json.dumps({"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "components": listed}))
    return file
