"""Links of pages and paths in code lead to files, and anchors to headings there."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted((*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")))
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s#]*)(?:#([^)\s]+))?\)")
NAMED_IN_CODE = re.compile(r"\bdocs/([\w/-]+\.md)(?:#([\w-]+))?")
KINDS = {".py", ".java", ".lua", ".yaml", ".json", ".ts", ".tsx"}
CODE = sorted(
    path
    for folder in ("actor", "decider", "services", "shared", "helm", "page/src", "tests/support", "tools")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in KINDS
)


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors of a page's headings as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return frozenset(anchor(heading) for heading in re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE))


def anchor(heading: str) -> str:
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def lost(page: Path, name: str, to: str) -> bool:
    target = page.parent / name if name else page
    return not target.exists() or bool(to and target.suffix == ".md" and to not in anchors(target.resolve()))


def links(page: Path) -> Iterator[tuple[str, str]]:
    yield from ((name, to) for name, to in LINK.findall(page.read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_link_of_a_page_leads_somewhere(page: Path) -> None:
    assert [f"{name}#{to}" for name, to in links(page) if lost(page, name, to)] == []


def test_each_page_and_anchor_that_code_names_exists() -> None:
    named = {(file, name, to) for file in CODE for name, to in NAMED_IN_CODE.findall(file.read_text(encoding="utf-8"))}
    assert len(named) > 20
    base = ROOT / "docs" / "x.md"
    found = [f"{file.relative_to(ROOT)}: {name}#{to}" for file, name, to in named if lost(base, name, to)]
    assert found == []


def test_a_heading_has_the_anchor_that_github_gives_it() -> None:
    assert anchor("Levels, fitted to a table's `files`: T / 8") == "levels-fitted-to-a-tables-files-t--8"
    assert lost(ROOT / "README.md", "docs/queue.md", "no-such-heading")


def test_each_picture_is_shown_by_a_page() -> None:
    shown = {(page.parent / name).resolve() for page in PAGES for name, _ in links(page)}
    assert [str(path.name) for path in (ROOT / "docs" / "pictures").iterdir() if path.resolve() not in shown] == []


PATH = re.compile(r"`((?:services|decider|actor|shared|tests|docs|helm|\.ci)/[\w./-]+?)(?:::\w+)?`")
SOURCES = sorted(
    file
    for folder in ("services", "decider", "actor", "shared", "tests", "docs", "helm")
    for file in (ROOT / folder).rglob("*")
    if file.suffix in {".py", ".md", ".lua", ".java", ".toml", ".yaml"} and "data" not in file.parts
)
WRITTEN = (
    *(file for file in SOURCES if file != Path(__file__).resolve()),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "pyproject.toml")),
)
PLACEHOLDERS = re.compile(r"NAME|FAMILY|\*")


def missing(text: str) -> list[str]:
    paths = (path for path in PATH.findall(text) if not PLACEHOLDERS.search(path))
    return [path for path in paths if not (ROOT / path.rstrip("/")).exists()]


def test_every_path_exists() -> None:
    found = {str(file.relative_to(ROOT)): lost for file in WRITTEN if (lost := missing(file.read_text()))}
    assert not found


@pytest.mark.parametrize("text", ["`decider/no_such_file.py`", "see `shared/queue/lua/none.lua`, which"])
def test_a_path_that_leads_nowhere_is_found(text: str) -> None:
    assert len(missing(text)) == 1
