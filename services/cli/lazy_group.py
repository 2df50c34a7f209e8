"""Commands are imported when they are called: one call pays for its own command and not for the other thirty.

Each command also takes `--json`, which the group knows once, so that it works before and behind the command's name.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from services.cli.cli_context import CliContext


def lazy_group(
    commands: Mapping[str, str], *, at_end: bool = False, also: str = "", panel: str = "", within: Collection[str] = ()
) -> type[TyperGroup]:
    """Return a group class that also has these commands: `module:attribute` by name; `--help` lists them first or last.

    The attribute is a Typer application for a group of commands, or a function for one command. `also`: where further
    functions by name are, which are imported for a name that is not known otherwise. `panel`: the heading in
    `--help` of these and of the commands `within` it.
    """

    class LazyGroup(TyperGroup):
        def list_commands(self, ctx: Any) -> list[str]:
            own = [name for name in super().list_commands(ctx) if name not in commands]
            listed = [*commands, *(_attribute(also) if also else ())]
            return [*own, *listed] if at_end else [*listed, *own]

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            if cmd_name not in self.commands:
                found = _attribute(commands[cmd_name]) if cmd_name in commands else None
                if found is None and also:
                    found = _attribute(also).get(cmd_name)
                if found is not None:
                    command = _load(cmd_name, found)
                    command.rich_help_panel = panel if cmd_name in within or cmd_name not in commands else None
                    self.add_command(command, cmd_name)
            return super().get_command(ctx, cmd_name)

    return LazyGroup


def _attribute(target: str) -> Any:
    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)


def _load(name: str, found: Any) -> Any:
    if isinstance(found, typer.Typer):
        command: Any = typer.main.get_group(found)
        command.name = name
        for child in command.commands.values():
            child.params.append(_json_option())
        return command
    command = _single(name, found)
    command.params.append(_json_option())
    return command


def _single(name: str, function: Any) -> Any:
    alone = typer.Typer(add_completion=False)
    alone.command(name)(function)
    return typer.main.get_command(alone)


def _json_option() -> Any:
    def print_json(context: typer.Context, value: bool) -> bool:  # noqa: FBT001 - the form of a callback
        setting: CliContext = context.obj
        if value:
            context.obj = replace(setting, as_json=True)
        return value

    def flag(
        as_json: Annotated[  # noqa: FBT002 - a flag
            bool,
            typer.Option("--json", callback=print_json, expose_value=False, help="Print the API's JSON."),
        ] = False,
    ) -> None:
        """Carry the option, which is taken from here."""

    return _single("flag", flag).params[0]
