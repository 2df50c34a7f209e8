"""The catalog of mutants: one-line changes that each break one rule, with the tests that must notice.

A mutant is a table of a file in `changes/`, one file per area, whose head names the source: `["path".name]`. It is
called `area.name`. The old line is written without its indentation and must be found exactly once in its source, or be
the first such line below the line `after`. The rule that it breaks is stated where the name of its test does not say
it. A mutant that no longer applies is an error, because it shows nothing any more.
"""

import ast
import builtins
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_NAMED = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler | ast.MatchAs | ast.MatchStar

TREE = Path(__file__).parents[2]
CHANGES = Path(__file__).parent / "changes"

_KEYS = {"old", "new", "rule", "tests", "after"}


class DoesNotApply(Exception):  # noqa: N818 - the name says what happened
    """The old line of a mutant, or a test that it names, is not there, or there more than once."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One line changed: `old` becomes `new` (empty: the line is deleted), which breaks `rule`.

    `tests` are pytest's node ids without parameters; each of them must fail. `after` is a line above the old one that
    tells it from others like it.
    """

    name: str
    file: str
    old: str
    new: str
    rule: str
    tests: tuple[str, ...]
    after: str | None = None

    @property
    def spark(self) -> bool:
        """Whether any of its tests needs Spark, or lies beside one that does."""
        return any(_needs_spark(test.partition("::")[0]) for test in self.tests)

    def mutated(self, text: str) -> str:
        """Return the text of its file with the line changed; raises DoesNotApply."""
        lines = text.split("\n")
        begin = 0 if self.after is None else self._only(lines, self.after, 0) + 1
        at = self._only(lines, self.old, begin)
        indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
        changed = [indent + self.new] if self.new else []
        return "\n".join([*lines[:at], *changed, *lines[at + 1 :]])

    def _only(self, lines: list[str], wanted: str, begin: int) -> int:
        found = [number for number in range(begin, len(lines)) if lines[number].strip() == wanted]
        if not found or (len(found) > 1 and (self.after is None or wanted == self.after)):
            raise DoesNotApply(f"{self.name}: {self.file} has {len(found)} lines {wanted!r}; expected one")
        return found[0]


def load(changes: Path = CHANGES) -> tuple[Mutant, ...]:
    """Read all mutants, area by area; raises ValueError for one that is not complete, or a name used twice."""
    mutants = tuple(
        _mutant(f"{path.stem}.{name}", file, entry)
        for path in sorted(changes.glob("*.toml"))
        for file, entries in tomllib.loads(path.read_text(encoding="utf-8")).items()
        for name, entry in entries.items()
    )
    names = [mutant.name for mutant in mutants]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"two mutants are called {sorted(twice)}")
    return mutants


def _mutant(name: str, file: str, entry: object) -> Mutant:
    if not isinstance(entry, dict):
        raise ValueError(f'{name} of {file} is no mutant; expected ["path".name]')  # noqa: TRY004 - of a file's text
    if unknown := entry.keys() - _KEYS:
        raise ValueError(f"{name} has unknown keys {sorted(unknown)}; expected some of {sorted(_KEYS)}")
    if missing := {"old", "new", "tests"} - entry.keys():
        raise ValueError(f"{name} lacks {sorted(missing)}")
    tests = entry["tests"]
    if not isinstance(tests, list) or not tests:
        raise ValueError(f"{name} names no tests")
    after = entry.get("after")
    return Mutant(
        name=name,
        file=file,
        old=str(entry["old"]),
        new=str(entry["new"]),
        rule=str(entry.get("rule") or tests[0].partition("::test_")[2].replace("_", " ")),
        tests=tuple(map(str, tests)),
        after=None if after is None else str(after),
    )


@cache
def _needs_spark(file: str) -> bool:
    path = TREE / file
    return path.is_file() and "mark.spark" in path.read_text(encoding="utf-8")


def check(mutant: Mutant, tree: Path) -> None:
    """Raise DoesNotApply unless the line can be changed in this source tree, parses then, and its tests are there."""
    path = tree / mutant.file
    if not path.is_file():
        raise DoesNotApply(f"{mutant.name}: there is no file {mutant.file}")
    text = path.read_text(encoding="utf-8")
    changed = mutant.mutated(text)
    if changed == text:
        raise DoesNotApply(f"{mutant.name} changes nothing")
    if path.suffix == ".py":
        try:
            unknown = _unknown_names(changed) - _unknown_names(text)
        except SyntaxError as error:
            raise DoesNotApply(f"{mutant.name}: the changed {mutant.file} does not parse: {error}") from error
        if unknown:
            # Any test would fail of it, which shows nothing about the rule.
            raise DoesNotApply(f"{mutant.name}: the new line in {mutant.file} uses unknown names {sorted(unknown)}")
    for test in mutant.tests:
        file, _, name = test.partition("::")
        if not name or name not in _functions(tree / file):
            raise DoesNotApply(f"{mutant.name} names the test {test}, which does not exist")


def not_applying(mutants: Iterable[Mutant], tree: Path) -> list[str]:
    """Return why mutants do not apply to this source tree, all at once."""
    wrong = []
    for mutant in mutants:
        try:
            check(mutant, tree)
        except DoesNotApply as problem:
            wrong.append(str(problem))
    return wrong


@cache
def _unknown_names(text: str) -> frozenset[str]:
    """Return the names that a module reads and neither binds anywhere nor finds among the builtins."""
    nodes = list(ast.walk(ast.parse(text)))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    bound = {name.id for name in names if not isinstance(name.ctx, ast.Load)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    bound |= {node.name for node in nodes if isinstance(node, _NAMED) and node.name}
    bound |= {
        (alias.asname or alias.name).partition(".")[0]
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    return frozenset(name.id for name in names if name.id not in bound and not hasattr(builtins, name.id))


@cache
def _functions(path: Path) -> frozenset[str]:
    """Return the names under which a test file's tests can be requested; each file is parsed once."""
    if not path.is_file():
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    # A state machine of Hypothesis is a class with a `TestCase`.
    targets = [node.targets[0] for node in tree.body if isinstance(node, ast.Assign)]
    return frozenset(found | {target.id for target in targets if isinstance(target, ast.Name)})
