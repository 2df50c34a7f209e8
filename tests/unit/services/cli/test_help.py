"""Help texts are instructions in whole sentences; tests/unit/docs/test_language.py holds the words they may use."""

from collections.abc import Iterator
from typing import Any

import pytest
import typer

from services.cli.__main__ import app

IMPERATIVES = {
    "Cancel", "Check", "Change", "Delete", "Dispatch", "Explain", "Keep", "Let", "List", "Make", "Move", "Optimize",
    "Post", "Rebuild", "Register", "Rename", "Replay", "Run", "Set", "Show", "Simulate", "Sort", "Stop", "Stream",
    "Unregister", "Write",
}  # fmt: skip


def commands(command: Any, name: str = "lakewright") -> Iterator[tuple[str, Any]]:
    yield name, command
    if hasattr(command, "list_commands"):
        context = typer.Context(command)
        for child in command.list_commands(context):
            yield from commands(command.get_command(context, child), f"{name} {child}")


ALL = dict(commands(typer.main.get_command(app)))


def test_every_command_is_covered() -> None:
    assert len(ALL) > 35
    assert {"lakewright tables add", "lakewright tables optimizations", "lakewright doctor"} <= set(ALL)


@pytest.mark.parametrize("name", ALL)
def test_a_help_text_is_an_instruction(name: str) -> None:
    command = ALL[name]
    assert command.help.split()[0].rstrip(",") in IMPERATIVES, command.help
    texts = [command.help, *(one.help for one in command.params if getattr(one, "help", None))]
    for text in texts:
        assert text.rstrip().endswith("."), text
