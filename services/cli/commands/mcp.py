"""`lakewright mcp`: a Model Context Protocol server for assistants, which ask and change nothing."""

import typer

from services.cli.cli_context import setting_of
from services.cli.client import CallFailed


def mcp(context: typer.Context) -> None:
    """Run a read-only server of the Model Context Protocol on standard input and output, which assistants start.

    The role viewer of LAKEWRIGHT_TOKEN is enough.
    """
    try:
        from services.cli.mcp_server import serve  # noqa: PLC0415 - optional, and slow to import
    except ModuleNotFoundError as missing:
        raise CallFailed(
            f"the server for assistants needs {missing.name}, which is not installed; "
            "run: pip install 'lakewright[mcp]'"
        ) from missing
    with setting_of(context).api() as api:
        serve(api)
