"""Answers become tables for people, or stay the API's own JSON for machines; nothing is computed here."""

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

from services.visible_text import visible, visible_json

_SECOND, _MINUTE, _HOUR = 1, 60, 3600


@dataclass(frozen=True, slots=True)
class Output:
    """Form of the answers; `width` is the number of columns, None for the terminal's."""

    width: int | None
    as_json: bool

    @property
    def console(self) -> "Console":
        """Return a console on standard output; JSON needs none, and so does not wait for Rich."""
        from services.cli.visible_console import VisibleConsole  # noqa: PLC0415 - a tenth of a second, for people only

        return VisibleConsole(width=self.width, soft_wrap=False, highlight=False)

    def raw(self, answer: object) -> None:
        """Print the API's answer as JSON, one document."""
        sys.stdout.write(visible_json(json.dumps(answer, indent=2, ensure_ascii=False)) + "\n")

    def one_line(self, answer: object) -> None:
        """Print JSON in one line, at once, for a reader that follows the output."""
        sys.stdout.write(visible_json(json.dumps(answer, ensure_ascii=False)) + "\n")
        sys.stdout.flush()

    def rows(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Print rows under their columns; words of others are never read as markup."""
        from rich.table import Table  # noqa: PLC0415 - as above
        from rich.text import Text  # noqa: PLC0415

        if not rows:
            return self.line(f"{title}: none")
        # No title of the table: Rich breaks that at the width of the columns, which may be narrow.
        self.console.print(Text(visible(title), style="italic"))
        table = Table(box=None, pad_edge=False, header_style="bold", show_header=any(columns))
        for column in columns:
            table.add_column(column, overflow="fold")
        for row in rows:
            table.add_row(*(Text(shown(value)) for value in row))
        return self.console.print(table)

    def pairs(self, title: str, pairs: Mapping[str, object]) -> None:
        """Print names and values."""
        self.rows(title, ("", ""), list(pairs.items()))

    def lines(self, texts: Iterable[str]) -> None:
        """Print lines, each as it is."""
        for text in texts:
            self.line(text)

    def line(self, text: str) -> None:
        """Print one line as it is, broken between words at the width of the terminal."""
        from rich.text import Text  # noqa: PLC0415 - for people only

        self.console.print(Text(visible(text)))


def shown(value: object) -> str:
    """Return a value as people read it, in one line."""
    return visible(_shown(value))


def _shown(value: object) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:g}"
        case dict():
            return ", ".join(f"{name}={figure(name, one)}" for name, one in value.items()) or "-"
        case _:
            return str(value)


def figure(name: str, value: object) -> str:
    """Return a value by its name: bytes with a binary unit, milliseconds as a time span, all others as `shown`."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        words = name.split("_")
        if "bytes" in words and "groups" not in words:  # groups_proofread_by_bytes counts groups
            return size(value)
        if words[-1] == "ms":
            return duration(value / 1000)
    return shown(value)


def size(count_bytes: float) -> str:
    """Return a number of bytes with a binary unit."""
    if count_bytes < 1024:  # noqa: PLR2004 - the step between binary units
        return f"{count_bytes:.0f} B"
    step = min(int(math.log(count_bytes, 1024)), 5)
    return f"{count_bytes / 1024**step:.1f} {('B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB')[step]}"


def duration(seconds: float | None) -> str:
    """Return a time span in its two largest units."""
    if seconds is None:
        return "-"
    whole = int(seconds)
    if whole < _MINUTE:
        return f"{seconds:.1f} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE} s"
    return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} min"


def measured_runs(learned: Mapping[str, Any]) -> str:
    """Return what a table's finished runs read and removed, against what was predicted of them."""
    removed = counted(learned["measured_files_removed"], "file")
    return (
        f"over {counted(learned['runs'], 'run')}: read {size(learned['measured_bytes'])} of "
        f"{size(learned['predicted_bytes'])} predicted, removed {removed} of {learned['predicted_files_removed']:,}"
    )


def budget_use(budget: dict[str, Any]) -> str:
    """Return what is used of a budget, and until when that counts."""
    used = "no prices in its currency, so nothing starts" if budget["used"] is None else f"{budget['used']:.3g} used"
    if budget["scope"] == "amplification" and budget["used"] is None:
        used = "rewritten, and nothing added"
    return f"{budget['budget']}: {used}, until {at(budget['renewed_at'])} UTC"


def counted(count: int, noun: str) -> str:
    """Return a number with its noun, in the plural where it is not one."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def compactness(files: int, needed: int) -> str:
    """Return what merging could still gain: how many files there are, and how many would do."""
    return "as compact as it can be" if files == needed else f"{counted(files, 'file')}, {needed:,} would do"


def used(usage: Mapping[str, Any]) -> str:
    """Return what runs used, and what that costs where prices are set."""
    cost = f"{usage['cost']} {usage['currency']}: " if usage["currency"] else ""
    return (
        f"{cost}{duration(usage['core_s'])} of core time, read {size(usage['bytes_read'])} in "
        f"{counted(usage['reads'], 'request')}, wrote {size(usage['bytes_written'])} in "
        f"{counted(usage['writes'], 'request')}"
    )


def backlog_of(amplification: Mapping[str, Any]) -> str:
    """Return how much of the existing files is still to be rewritten, once."""
    left, found = amplification["backlog_bytes_left"], amplification["backlog_bytes_found"]
    return f"{size(left)} of {size(found)} left" if left else "done"


def per_byte(amplification: Mapping[str, Any]) -> str:
    """Return the bytes rewritten per byte added since the backlog was done, in two digits."""
    steady = amplification["steady_write_amplification"]
    return "-" if steady is None else f"{steady:.2f}"


def time_span(seconds: float) -> str:
    """Return a time span in the unit that suits it, with one decimal below ten of it: for tables and axes."""
    for unit_s, unit in ((86_400, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= unit_s:
            return f"{_short(seconds / unit_s)} {unit}"
    return f"{_short(seconds) if seconds >= 1 else f'{seconds:.2g}'} s"


def _short(number: float) -> str:
    return f"{number:,.1f}".removesuffix(".0") if number < 9.95 else f"{number:,.0f}"  # noqa: PLR2004 - no 10.0


def at(moment: Any) -> str:
    """Return an RFC 3339 time without fractions."""
    return "-" if moment is None else str(moment)[:19].replace("T", " ")


def mean(number: float) -> str:
    """Return a mean with three digits, or all before the point."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"  # noqa: PLR2004 - three digits before the point
