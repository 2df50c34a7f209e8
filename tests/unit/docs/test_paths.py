"""A path in backticks, in a page, a docstring or a comment, leads to a file of this project."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PATH = re.compile(r"`((?:services|decider|actor|shared|tests|docs|helm|\.ci)/[\w./-]+?)(?:::\w+)?`")
SOURCES = sorted(
    file
    for folder in ("services", "decider", "actor", "shared", "tests", "docs", "helm")
    for file in (ROOT / folder).rglob("*")
    if file.suffix in {".py", ".md", ".lua", ".java", ".toml", ".yaml"} and "data" not in file.parts
)
PAGES = (
    *(file for file in SOURCES if file != Path(__file__).resolve()),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "pyproject.toml")),
)
PLACEHOLDERS = re.compile(r"NAME|FAMILY|\*")


def missing(text: str) -> list[str]:
    paths = (path for path in PATH.findall(text) if not PLACEHOLDERS.search(path))
    return [path for path in paths if not (ROOT / path.rstrip("/")).exists()]


def test_every_path_exists() -> None:
    found = {str(file.relative_to(ROOT)): lost for file in PAGES if (lost := missing(file.read_text()))}
    assert not found


@pytest.mark.parametrize("text", ["`decider/no_such_file.py`", "see `shared/queue/lua/none.lua`, which"])
def test_a_path_that_leads_nowhere_is_found(text: str) -> None:
    assert len(missing(text)) == 1
