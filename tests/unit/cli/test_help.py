"""Help texts speak the field's language: imperative sentences, a stop at the end, no word that needs a glossary."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from services.cli.__main__ import app

RIDDLES = re.compile(
    r"\b(said|says|told|tells?|asked|asks?|looks?|looked|mends?|mended|heeds?|wish(es)?|forgets?|forgotten|dwell|cells?|"
    r"verdict|shape|hand(s|ed)? out|levers?|foresee|whose|who|goes on|take back|ring|rings|place|spelled)\b",
    re.IGNORECASE,
)
"""Words of prose that stand for a term of the field, or for none."""

IMPERATIVES = {
    "Cancel", "Check", "Change", "Dispatch", "Explain", "Keep", "Let", "List", "Make", "Move", "Optimize", "Post",
    "Rebuild", "Register", "Rename", "Replay", "Run", "Set", "Show", "Simulate", "Stop", "Stream", "Unregister",
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
    assert {"lakewright tables add", "lakewright tables scheduled", "lakewright queue sim", "lakewright doctor"} <= set(
        ALL
    )


@pytest.mark.parametrize("name", ALL)
def test_a_help_text_is_an_instruction_in_plain_words(name: str) -> None:
    command = ALL[name]
    assert command.help.split()[0].rstrip(",") in IMPERATIVES, command.help
    texts = [command.help, *(one.help for one in command.params if getattr(one, "help", None))]
    for text in texts:
        assert text.rstrip().endswith("."), text
        assert not RIDDLES.search(text), (RIDDLES.search(text), text)
