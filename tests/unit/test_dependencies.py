"""What a service imports is installed with its extra: an image has nothing else, and would not start."""

import ast
import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest

from tests.support.source_nodes import nodes_in

ROOT = Path(__file__).resolve().parents[2]
OURS = ("shared", "decider", "actor", "services")
OPTIONAL = {"boto3", "botocore", "confluent_kafka", "opentelemetry"}
"""Modules of extras that a setting switches on; the errors without them name the extra."""


def file_of(module: str) -> Path | None:
    """Return the source of a module of ours, or None."""
    plain = ROOT.joinpath(*module.split("."))
    return next((one for one in (plain.with_suffix(".py"), plain / "__init__.py") if one.is_file()), None)


def is_for_types(node: ast.AST, source: Path) -> bool:
    """Return whether an import is below `if TYPE_CHECKING:`."""
    return any(
        isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING" and node in ast.walk(block)
        for block in nodes_in(source)[ast.If]
    )


def imports_of(source: Path) -> set[str]:
    """Return the modules that a file imports; of `from a import b` also `a.b`, which may be one."""
    found: set[str] = set()
    for node in nodes_in(source)[ast.Import]:
        found |= {alias.name for alias in node.names} if not is_for_types(node, source) else set()
    for node in nodes_in(source)[ast.ImportFrom]:
        if not is_for_types(node, source):
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def foreign_modules(start: str) -> dict[str, str]:
    """Return the top-level modules of others that are imported from `start` on, each with a file that does so."""
    todo, seen, found = [start], {start}, dict[str, str]()
    while todo:
        source = file_of(todo.pop())
        if source is None:
            continue
        for module in imports_of(source):
            top = module.partition(".")[0]
            if top not in OURS:
                found.setdefault(top, str(source.relative_to(ROOT)))
            # A module runs the packages that it is in, too.
            parts = module.split(".") if top in OURS else []
            ours = {".".join(parts[:length]) for length in range(1, len(parts) + 1)} - seen
            seen |= ours
            todo += ours
    return {top: file for top, file in found.items() if top not in sys.stdlib_module_names}


_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[([^]]*)\])?")


def _applies(requirement: str, extras: list[str]) -> bool:
    """Return whether a package requires this with these extras."""
    asked = re.search(r"extra == [\"']([^\"']+)", requirement)
    return asked is None or asked[1] in extras


def installed_with(extra: str) -> set[str]:
    """Return the distributions that an extra brings, and theirs; names in lower case with hyphens."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    todo = [*project["dependencies"], *project["optional-dependencies"][extra]]
    found: set[str] = set()
    while todo:
        line = todo.pop()
        name, extras = _REQUIREMENT.match(line).groups("")
        name = name.lower().replace("_", "-")
        if name in found:
            continue
        found.add(name)
        try:
            todo += [one for one in requires(name) or () if _applies(one, extras.split(","))]
        except PackageNotFoundError:  # Of another platform or another Python.
            continue
    return found


@pytest.mark.parametrize("service", ["decider", "actor"])
def test_the_extra_of_a_service_brings_all_that_it_imports(service: str) -> None:
    brought, owners = installed_with(service), packages_distributions()
    found = foreign_modules(f"services.{service}.__main__")
    assert len(found) > 3
    missing = {
        module: file
        for module, file in found.items()
        if module not in OPTIONAL and not {name.lower().replace("_", "-") for name in owners.get(module, ())} & brought
    }
    assert missing == {}


@pytest.mark.parametrize("lock", ["tests/interop/engines.lock", "tests/jepsen/engines.lock"])
def test_a_version_without_hashes_in_a_lock_has_them_in_the_locked_environment(lock: str) -> None:
    heads = re.compile(r"^(\w\S+==\S+)(.*)$", re.MULTILINE)
    others, locked = (
        {version: rest.endswith("\\") for version, rest in heads.findall((ROOT / name).read_text())}
        for name in (lock, "requirements.lock")
    )
    bare = {version for version, has_hashes in others.items() if not has_hashes}
    assert bare == others.keys() & locked.keys()
    assert bare
    assert all(locked.values())
