"""A percent sign follows its number without a space, as in American English: on pages, in charts, in printed text."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.support.source_nodes import nodes_of

ROOT = Path(__file__).resolve().parents[3]
SPACED = re.compile(r"\d\s+%(?![\w(])")
MAY_BE_SPACED = re.compile(r"""[\d}]["\'\s\\nrtbf]+%""")
"""What a source with such a text has, parts of a text on several lines included; the others need not be parsed."""


def pages() -> Iterator[tuple[str, str]]:
    for path in sorted((*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("docs/**/*.svg"))):
        yield str(path.relative_to(ROOT)), path.read_text()


def printed() -> Iterator[tuple[str, str]]:
    """Yield the texts of the source; a formatted value stands as 0."""
    for folder in ("shared", "decider", "actor", "services", "tests"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            if not MAY_BE_SPACED.search(source):
                continue
            nodes = nodes_of(source)
            for node in (*nodes[ast.Constant], *nodes[ast.JoinedStr]):
                text = written(node)
                if text and "%" in text:
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", text


def written(node: ast.expr) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(written(part) if isinstance(part, ast.Constant) else "0" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def test_no_page_has_a_space_before_a_percent_sign() -> None:
    texts = list(pages())
    assert len(texts) > 30
    assert not [f"{place}: {found[0]!r}" for place, text in texts for found in SPACED.finditer(text)]


def test_no_text_of_the_source_has_a_space_before_a_percent_sign() -> None:
    texts = list(printed())
    assert texts
    assert not [f"{place}: {text!r}" for place, text in texts if SPACED.search(text)]


def test_a_value_in_a_text_counts_as_a_number() -> None:
    for source in ('f"{share} % of bytes"', 'f"{share} "\n    "% of bytes"', '"5\\n%"'):
        assert MAY_BE_SPACED.search(source)
    (text,) = nodes_of('f"{share} % of bytes"')[ast.JoinedStr]
    assert SPACED.search(written(text))
    assert not SPACED.search("100 %s and 5% of 7")
