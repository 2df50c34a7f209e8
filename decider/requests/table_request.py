"""A request about a whole table: a frozen dataclass, declared in a module of this package.

The API offers each at `POST /v1/tables/{table}/actions/NAME`, and the command line as `lakewright NAME TABLE`, with an
option for each field; neither knows one by name. The modules import `shared` alone, so that a command starts quickly.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    from decider.requests.requested_table import RequestedTable


class JobOptions(Protocol):
    """Options of a job, which its actor decodes."""

    def encode(self) -> Mapping[str, Any]:
        """Write as the options of a job."""
        ...


RequestedJob = tuple[str, JobOptions | None]
"""Kind of a job and its options; None: those that the action proposes by itself."""


def option(text: str, default: Any = False, **bounds: int) -> Any:  # noqa: FBT002 - most options are flags
    """Return a field of a request: its text for people, its default, and its bounds (`ge`, `le` and `lt`)."""
    return field(default=default, metadata={"description": text, **bounds})


def shown(text: str) -> Any:
    """Return a field of an answer with its text for people."""
    return field(metadata={"description": text})


def counted(count: int, noun: str) -> str:
    """Return a number with its noun, in the plural where it is not one."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class RequestPreview:
    """Preview of a request; nothing is changed."""

    version: int = shown("Table version that was examined.")
    message: str = shown("Human-readable outcome.")


@dataclass(frozen=True, slots=True)
class TableRequest:
    """A request about a whole table.

    summary: its name for people. text: one instruction, which the API and the command line show. answer: of a dry run;
    None: there is none, or it runs as a job. is_live: a dry run reads the live files, and not only the table's state.
    """

    # How the API reads it: a field that it does not know is an error.
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid", "hide_input_in_errors": True}
    name: ClassVar[str]
    summary: ClassVar[str]
    text: ClassVar[str]
    answer: ClassVar[type[RequestPreview] | None] = None
    is_live: ClassVar[bool] = True

    @property
    def needs_admin(self) -> bool:
        """True if only the role admin may request it; otherwise operators may, too."""
        return False

    async def jobs(self, table: "RequestedTable") -> Sequence[RequestedJob]:
        """Return the jobs to queue, none where the table is refused.

        Raises InvalidInput for options that contradict the table, and Unsupported where no actor can run the jobs.
        """
        raise NotImplementedError

    async def preview(self, table: "RequestedTable") -> RequestPreview:
        """Return what the jobs would do, and change nothing; raises what `jobs` raises."""
        raise NotImplementedError
