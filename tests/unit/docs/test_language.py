"""Texts for users use the field's words, and a class name means one thing; the list is `forbidden_words.txt`.

Held are the help of every command, problem titles and details, metrics, log events and their keys, properties, reasons,
refusals, summaries and descriptions of the API, and the headings of the documents.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from decider.api.budget_view import BudgetView
from decider.api.metrics import GroupHealth, Metrics, MetricsSnapshot
from decider.background.runner import TaskHealth
from decider.background.tables_file_sync import TablesFileStatus
from decider.optimize.on_demand import RequestIgnored
from decider.optimize.property_trigger import TriggerOutcome
from decider.store.fleet_history import FleetSample
from decider.store.registry.saved_registry import SaveStatus
from decider.web.errors import _TYPES as PROBLEMS
from services.cli.__main__ import app as command_line
from shared.layout.eligibility import Reason
from shared.policy.property_table import PROPERTIES
from shared.policy.refused_properties import REFUSED
from shared.prices import Prices
from shared.queue.settings import SETTINGS
from tests.support.live_decider import openapi_document
from tests.support.source_nodes import Nodes, nodes_in, nodes_of

ROOT = Path(__file__).resolve().parents[3]
PRODUCT = ("shared", "decider", "actor", "services")
PAGE = ("page/src", "page/tests")
LIST = Path(__file__).with_name("forbidden_words.txt")
TEXT_CALLS = (
    "ApiError",
    "InvalidInput",
    "respond",
    "try_later",
    "busy",
    "too_fast",
    "InvalidSignature",
    "ForbiddenCall",
)
"""Calls whose text becomes the detail of a problem, in the rooms that speak HTTP."""


SCRIPTS = (".lua", ".java", ".sh", ".tpl", ".yaml", ".ts", ".tsx", ".css")
BUILT = "decider/page/"
"""What `page/build.py` makes: libraries of others in it speak as they like."""

NOT_PROSE = {
    "tests/unit/docs/test_language.py": "names the words",
    "page/src/api/schema.d.ts": "generated from the API",
}
"""Sources that may use a word of the list in another meaning, with the meaning."""


def _words(text: str) -> Mapping[re.Pattern[str], str]:
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    pairs = [line.rpartition(" : ") for line in lines]
    return {re.compile(rf"\b(?:{pattern.strip()})\b", re.IGNORECASE): instead.strip() for pattern, _, instead in pairs}


WORDS, SOURCE_WORDS, PRODUCT_WORDS = (
    _words(part) for part in re.split(r"^\[\w+\]\n", LIST.read_text(), flags=re.MULTILINE)
)


# A page is text for users, but its code uses some of these words as every program in its language does.
IN_CODE = {"place", "quiet", "rung", "color", "heat", "gone"}
WORDS_OF_PAGE = {word: instead for word, instead in WORDS.items() if not any(word.search(one) for one in IN_CODE)}


def _sources(*folders: str) -> Iterator[tuple[Path, Nodes]]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path, nodes_in(path)


def _commands(command: Any, name: str = "lakewright") -> Iterator[tuple[str, str]]:
    yield name, command.help or ""
    for parameter in command.params:
        yield f"{name} {parameter.name}", getattr(parameter, "help", None) or ""
    if hasattr(command, "list_commands"):
        context = command.context_class(command)
        for part in command.list_commands(context):
            yield from _commands(command.get_command(context, part), f"{name} {part}")


def _help() -> Iterator[tuple[str, str]]:
    return _commands(typer.main.get_command(command_line))


def _descriptions(node: Any, path: str = "openapi") -> Iterator[tuple[str, str]]:
    if isinstance(node, dict):
        for name, part in node.items():
            if name in ("summary", "description") and isinstance(part, str):
                yield path, part
            elif name not in ("examples", "example"):
                yield from _descriptions(part, f"{path}.{name}")
    elif isinstance(node, list):
        for index, part in enumerate(node):
            yield from _descriptions(part, f"{path}.{index}")


def _openapi() -> Iterator[tuple[str, str]]:
    return _descriptions(openapi_document())


def _problems() -> Iterator[tuple[str, str]]:
    for status, (kind, title) in PROBLEMS.items():
        yield str(status), f"{kind} {title}"
    for path, nodes in _sources("decider/api", "decider/gateway", "decider/web"):
        for node in nodes[ast.Call]:
            if _name(node.func) in TEXT_CALLS:
                for argument in node.args:
                    for part in ast.walk(argument):
                        if isinstance(part, ast.Constant) and isinstance(part.value, str):
                            yield f"{path.relative_to(ROOT)}:{part.lineno}", part.value


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _log_events() -> Iterator[tuple[str, str]]:
    for path, nodes in _sources(*PRODUCT):
        for node in nodes[ast.Call]:
            if not isinstance(node.func, ast.Attribute):
                continue
            if _name(node.func.value) in ("log", "_log") and node.args and isinstance(node.args[0], ast.Constant):
                place = f"{path.relative_to(ROOT)}:{node.lineno}"
                yield place, str(node.args[0].value).replace("_", " ")
                for key in node.keywords:
                    yield place, (key.arg or "").replace("_", " ")


def _metrics() -> Iterator[tuple[str, str]]:
    empty: dict[str, Any] = {"bool": True, "float": 0.0, "int": 0, "int | None": 0, "Mapping[str, int]": {}, "str": ""}
    empty[str(SaveStatus | None)] = SaveStatus("file:///state", 1, 1, 1, "", ())
    empty[str(TablesFileStatus | None)] = TablesFileStatus("tables.yaml")
    empty[str(FleetSample | None)] = FleetSample(at_ms=1)
    empty[str(Prices | None)] = Prices()
    empty[str(tuple[BudgetView, ...])] = ()
    empty[f"Mapping[str, {TaskHealth.__module__}.TaskHealth]"] = {}
    empty[f"Mapping[str, {GroupHealth.__module__}.GroupHealth]"] = {}
    snapshot = MetricsSnapshot(**{one.name: empty[_typed(one.type)] for one in fields(MetricsSnapshot)})
    for line in Metrics().render(snapshot).decode().splitlines():
        if line.startswith("# HELP "):
            yield line.split()[2], line.removeprefix("# HELP ").replace("_", " ")
        elif "funnel_total{" in line:
            yield "funnel", line.replace("_", " ")


def _typed(annotation: object) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("collections.abc.", "")


def _policy() -> Iterator[tuple[str, str]]:
    for one in PROPERTIES:
        yield one.name, f"{one.name} {one.default} {one.description}"
    yield from REFUSED.items()
    yield from ((name, known.description) for name, known in SETTINGS.items())


def _reasons() -> Iterator[tuple[str, str]]:
    for reason in Reason:
        yield reason.value, f"{reason.value.replace('_', ' ')} {reason.message}"
    for one in (*RequestIgnored, *TriggerOutcome):
        yield one.value, f"{one.value.replace('_', ' ')} {one.message}"


def _source(*folders: str) -> Iterator[tuple[str, str]]:
    """Each file below a line with its path, as plain words: underscores and changes of case separate them in a name."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            place = str(path.relative_to(ROOT))
            if path.suffix not in (".py", *SCRIPTS) or place in NOT_PROSE or place.startswith(BUILT):
                continue
            yield place, _plain_file(path, place)


@cache
def _plain_file(path: Path, place: str) -> str:
    return _plain(f"{place}\n{path.read_text()}")


def _plain(text: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text.replace("_", " "))


def _headings() -> Iterator[tuple[str, str]]:
    for path in sorted((*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))):
        in_code = False
        for number, line in enumerate(path.read_text().splitlines(), 1):
            in_code ^= line.startswith("```")
            if line.startswith("#") and not in_code:
                yield f"{path.relative_to(ROOT)}:{number}", line


SURFACES = {
    "help of commands": _help,
    "summaries and descriptions of the API": _openapi,
    "problems": _problems,
    "log events": _log_events,
    "metrics": _metrics,
    "properties and settings": _policy,
    "reasons": _reasons,
    "headings": _headings,
}


def _found(texts: Iterable[tuple[str, str]], words: Mapping[re.Pattern[str], str]) -> list[str]:
    """Return what each line of the texts has of the words; one search for any of them is enough for most texts."""
    any_word = re.compile("|".join(_inner(word) for word in words).join((r"\b(?:", r")\b")), re.IGNORECASE)
    return [
        f"{place}{f':{number}' if number else ''}: {match[0]!r} (write: {instead}) in {line!r}"
        for place, text in texts
        if any_word.search(text)
        for number, line in enumerate(text.split("\n"))
        for word, instead in words.items()
        if (match := word.search(line))
    ]


def _inner(word: re.Pattern[str]) -> str:
    return word.pattern.removeprefix(r"\b").removesuffix(r"\b")


@pytest.mark.parametrize("surface", SURFACES)
def test_no_text_for_users_has_a_forbidden_word(surface: str) -> None:
    texts = list(SURFACES[surface]())
    assert len(texts) > 5, "the surface is read"
    found = _found(texts, WORDS)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("folders", "words", "lines"),
    [
        ((*PRODUCT, *PAGE, "tests", "helm"), SOURCE_WORDS, 50_000),
        ((*PRODUCT, *PAGE), PRODUCT_WORDS, 20_000),
        (PAGE, WORDS_OF_PAGE, 2_000),
    ],
    ids=["all", "product", "page"],
)
def test_no_source_has_a_word_that_was_removed_from_it(
    folders: tuple[str, ...], words: Mapping[re.Pattern[str], str], lines: int
) -> None:
    texts = list(_source(*folders))
    assert sum(text.count("\n") for _, text in texts) > lines, "the source is read"
    found = _found(texts, words)
    assert not found, "\n".join(found)


def test_a_name_in_source_is_read_as_its_words() -> None:
    found = _found([("x", _plain("def wishesOf(all_wishes): pass"))], SOURCE_WORDS)
    assert len(found) == 1
    assert all((ROOT / place).exists() for place in NOT_PROSE if not place.endswith(".d.ts"))


def test_the_list_has_words_and_each_of_them_can_be_met() -> None:
    assert len(WORDS) > 40
    for word in ("wish", "Told", "settled", "looked at", "mended"):
        assert any(one.search(f"x {word} y") for one in WORDS), word


def _docstrings(nodes: Nodes) -> Iterator[ast.Constant]:
    """Yield texts that stand alone as a statement: docstrings, and texts below an attribute or a constant."""
    for node in nodes[ast.Expr]:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value


@pytest.mark.parametrize("folder", PRODUCT)
def test_no_docstring_begins_like_a_riddle(folder: str) -> None:
    """A noun or a verb first: "Return whether ...", "Status of ...", not "Whether ..." or "What ..."."""
    found = [
        f"{path.relative_to(ROOT)}:{one.lineno}: {one.value!r:.80}"
        for path, nodes in _sources(folder)
        for one in _docstrings(nodes)
        if re.match(r"(What|Which|Whether|Of)\b", str(one.value))
    ]
    assert found == []


def test_those_of_and_that_of_are_rare() -> None:
    """They make a reader search for the noun; a repeated noun or a genitive says it at once."""
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path, _ in _sources(*PRODUCT)
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"\b(those|that) of\b", line)
    ]
    assert len(found) < 20, "\n".join(found)


def test_no_two_classes_of_the_product_have_one_name() -> None:
    """Private ones count, too: a reader meets them by name alone."""
    found = defaultdict(list)
    for path, nodes in _sources(*PRODUCT):
        for node in nodes[ast.ClassDef]:
            found[node.name].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert {name: places for name, places in found.items() if len(places) > 1} == {}


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
