"""Answers about tables as rows for people: lists, one table, its partitions and its decisions."""

import json
from collections.abc import Callable
from typing import Any

from services.cli.render import (
    Output,
    at,
    backlog_of,
    budget_use,
    compactness,
    counted,
    duration,
    measured_runs,
    per_byte,
    shown,
    size,
    used,
)

STATES = {
    "unread": "not read yet",
    "waiting": "waiting for an actor",
    "backing_off": "retrying",
    "outside_window": "outside its window",
    "over_budget": "over budget",
}
"""Conditions of tables that people read in other words."""

HINTS = {
    "paused": "nothing is rewritten before `lakewright tables resume {name}`",
    "disabled": "`lakewright tables show {name}` shows where lakewright.enabled is set",
    "waiting": "`lakewright actors list` shows whether one takes jobs",
}
"""Next steps by condition of a table."""

UNHEALTHY = frozenset({"refused", "failing", "backing_off", "invalid_properties", "disabled"})
"""Conditions in which a table is not optimized as its owner expects."""

BUSY_SHOWN = 5
"""Partitions under DML that fit into one line."""


def show_tables(out: Output, answer: Any) -> None:
    """Print registered tables by name."""
    _tables(out, answer["tables"], lambda table: (table["location"],), ("location",))
    if answer["next_page_token"]:
        out.line(f"More tables: --page-token {answer['next_page_token']}")


def show_table_rows(out: Output, answer: Any) -> None:
    """Print the tables that are in one state."""
    _tables(out, answer["rows"], lambda _: (), ())
    if (shown_rows := len(answer["rows"])) < answer["matching"]:
        out.line(f"{answer['matching'] - shown_rows:,} more: --limit")


def _tables(
    out: Output,
    tables: list[dict[str, Any]],
    more: Callable[[dict[str, Any]], tuple[str, ...]],
    columns: tuple[str, ...],
) -> None:
    rows = [(table["name"], table["tenant"], _state(table), _layout_of(table), *more(table)) for table in tables]
    out.rows("Tables", ("name", "tenant", "state", "layout", *columns), rows)
    if any(table["condition"] in UNHEALTHY or table.get("error") for table in tables):
        out.line("Why a table is not optimized: lakewright tables show NAME")
    if any(table["condition"] == "paused" for table in tables):
        out.line("Paused tables are rewritten after: lakewright tables resume NAME, or --all")


def show_discovery(out: Output, answer: Any) -> None:
    """Print the progress of discovery below each root."""
    if not answer["roots"]:
        out.line("Discovery has nowhere to search: LAKEWRIGHT_ROOTS of the decider names the roots.")
        return
    rows = [
        (
            one["root"],
            " ".join(filter(None, (one["state"], one["error"]))),
            one["path"],
            one["folders"],
            one["tables"],
            one["new_tables"],
            one["unreadable_folders"],
            at(one["finished_at"]) if one["finished_at"] else "-",
        )
        for one in answer["roots"]
    ]
    heads = ("root", "state", "at", "folders", "tables", "new", "unreadable", "ended (UTC)")
    out.rows("Discovery", heads, rows)
    if found := sum(one["new_tables"] for one in answer["roots"]):
        out.line(
            f"{counted(found, 'new table')}. Review the paused ones: lakewright tables list --paused; start them: "
            "lakewright tables resume --all"
        )


def show_table(out: Output, answer: Any) -> None:
    """Print a table: its policy and the source of each value, and its layout."""
    out.pairs(answer["name"], {name: value for name, value in _summary(answer).items() if value not in (None, "-")})
    _layout(out, answer["layout"])
    _refused_files(out, answer["refused_files"])
    values = answer["policy"]["values"]
    own = [one for one in values if one["source"] != "default"]
    if own:
        rows = [(one["property"], _value(one), f"{one['source']}: {one['set_by']}") for one in own]
        out.rows("Policy", ("property", "value", "from"), rows)
    others = f"{len(values) - len(own)} other" if own else f"All {len(values)}"
    out.line(f"{others} properties have their defaults: lakewright --json tables show {answer['name']}")
    issues = [(one["property"], one["value"], one["reason"]) for one in answer["policy"]["issues"]]
    if issues:
        out.rows("Invalid properties", ("property", "value", "reason"), issues)
    for note in answer["policy"]["notes"]:
        out.line(note)


def _value(one: dict[str, Any]) -> str:
    value, unit = one["value"], one["unit"]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return shown(value)
    if unit in ("bytes", "seconds"):
        return size(value) if unit == "bytes" else duration(value)
    return shown(value) if unit in ("", "ratio", "share") else f"{shown(value)} {unit}"


def _refused_files(out: Output, refused: list[dict[str, Any]]) -> None:
    rows = [
        (one["partition_label"], one["files"], ", ".join(one["paths"]), one["reason"], one["message"], one["remedy"])
        for one in refused
    ]
    if rows:
        out.rows("Refused files", ("partition", "files", "first", "reason", "why", "what to do"), rows)


def show_refused(out: Output, answer: Any) -> None:
    """Print refused files of all tables."""
    rows = [
        (one["table"], one["partition_label"], one["files"], ", ".join(one["paths"]), one["message"], one["remedy"])
        for one in answer["refused"]
    ]
    title = f"Refused files, in {counted(answer['partitions'], 'partition')}"
    out.rows(title, ("table", "partition", "files", "first", "why", "what to do"), rows)


def show_partitions(out: Output, answer: Any) -> None:
    """Print the partitions of a table with their decisions."""
    rows = [
        (
            one["partition_label"],
            one["layout"]["files"],
            one["layout"]["small_files"],
            size(one["layout"]["bytes"]),
            one["layout"]["files_needed"],
            made["action"],
            made["decision"],
            made["reason"],
        )
        for one in answer["partitions"]
        for made in one["decisions"]
    ]
    columns = ("partition", "files", "small", "bytes", "would do", "action", "decision", "reason")
    out.rows(f"Partitions at version {answer['version']}", columns, rows)


def show_reads(out: Output, answer: Any) -> None:
    """Print how often a table is read, and its readers' filters."""
    rows = [(one["times"], json.dumps(one["filter"])) for one in answer["filters"]]
    out.rows(
        f"{answer['reads_per_hour']:g} reads per hour, weight {answer['read_weight']:g}; filters",
        ("times", "filter"),
        rows,
    )


def show_decisions(out: Output, answer: Any) -> None:
    """Print decisions, newest first."""
    rows = [(at(one["at"]), one["action"], one["decision"], one["message"]) for one in answer["decisions"]]
    out.rows("Decisions", ("at (UTC)", "action", "decision", "why"), rows)
    show_refusals(out, answer)


def show_refusals(out: Output, answer: Any) -> None:
    """Print what is refused of a table."""
    if answer["refusal"]:
        out.line(f"The table is refused: {_refusal(answer['refusal'])}")
    _refused_files(out, answer["refused_files"])


def show_change(out: Output, answer: Any) -> None:
    """Print the overrides of a table after a change."""
    overrides = shown(answer["properties"]) if answer["properties"] else "no overrides"
    out.line(f"{answer['name']} of {answer['tenant']}: {overrides}")


def _state(table: dict[str, Any]) -> str:
    if table["refusal"]:
        return _listed(table["refusal"])
    if table.get("error"):
        return "cannot be read"
    return condition_text(table["condition"])


def condition_text(condition: str) -> str:
    """Return the state of a table in the words of lists."""
    return STATES.get(condition, condition.replace("_", " "))


def state_text(table: dict[str, Any]) -> str:
    """Return the state of one table, and what to do about it."""
    condition = "paused" if table["paused"] else table["condition"]  # which a pause reaches a moment later
    hint = HINTS.get(condition, "").format(name=table["name"])
    return ": ".join(filter(None, (condition_text(condition), hint)))


def _layout_of(table: dict[str, Any]) -> str:
    return "-" if table["files"] is None else compactness(table["files"], table["files_needed"])


def _summary(answer: dict[str, Any]) -> dict[str, object]:
    cursor, decision, job = answer["state"], answer["last_decision"], answer["last_job"]
    return {
        "location": answer["location"],
        "tenant": answer["tenant"],
        "group": answer["group"],
        "state": state_text(answer),
        **({"refused": _refusal(answer["refusal"])} if answer["refusal"] else {}),
        "version": cursor["version"] if cursor else "not yet read",
        "applied at (UTC)": at(cursor["applied_at"]) if cursor else "-",
        "from commit to decision": duration(cursor["lag_s"]) if cursor else "-",
        "rebuilds": cursor["rebuilds"] if cursor else 0,
        "partitions": f"{answer['partitions']}, {answer['eligible_partitions']} of them eligible",
        "last decision": decision["message"] if decision else "-",
        "last job": f"{job['id']} {job['state']} {job['result']}" if job else "-",
        "manual run": answer["manual_run"]["message"] if answer["manual_run"] else "-",
        "MERGE, UPDATE, DELETE": _contention(answer["write_contention"]),
        "predicted and measured": _calibration(answer["calibration"]),
        "used by runs": used(answer["usage"]),
        **_storage_cost(answer),
        "backlog": backlog_of(answer["amplification"]),
        "rewritten per byte added since": per_byte(answer["amplification"]),
        "work window": _window(answer["work_window"]),
        **_target(answer["target"]),
        "budget": "; ".join(f"{one['scope']}: {budget_use(one)}" for one in answer["budgets"]) or "none",
    }


def _target(target: dict[str, Any] | None) -> dict[str, str]:
    if target is None:
        return {}
    newest = next((f", since {at(one['at'])} UTC: {one['reason']}" for one in reversed(target["changes"])), "")
    return {"target file size": f"chosen: {size(target['bytes'])}{newest}"}


def _window(window: dict[str, Any] | None) -> str:
    if window is None:
        return "none: jobs start at any time"
    change = at(window["changes_at"]) if window["changes_at"] else "an unknown time"
    state = f"open until {change} UTC" if window["is_open"] else f"closed until {change} UTC"
    return f"{state}, for {window['applies_to']} work: {window['windows']}"


def _storage_cost(answer: dict[str, Any]) -> dict[str, str]:
    if answer["storage_cost_per_month"] is None:
        return {}
    return {"stored for a month": f"{answer['storage_cost_per_month']} {answer['usage']['currency']}"}


def _contention(busy: list[dict[str, Any]]) -> str:
    busiest = (f"{one['partition_label']} {one['busy_ratio']:.0%}" for one in busy[:BUSY_SHOWN])
    more = f" and {len(busy) - BUSY_SHOWN} more" if len(busy) > BUSY_SHOWN else ""
    return ", ".join(busiest) + more + " of the last hour" if busy else "no DML in the last hour"


def _calibration(learned: dict[str, Any]) -> str:
    if not learned["runs"]:
        return "no rewrites yet"
    groups = learned["groups_not_promoted"] + learned["groups_promoted"]
    return (
        f"{measured_runs(learned)}; outputs are {learned['shrink']:.0%} of their inputs; "
        f"{learned['groups_not_promoted']} of {counted(groups, 'group')} stayed below their target level"
    )


def _listed(refusal: dict[str, Any]) -> str:
    return "missing" if refusal["missing"] else f"refused: {refusal['code'] or 'unreadable'}"


def _refusal(refusal: dict[str, Any]) -> str:
    return f"{'missing' if refusal['missing'] else 'yes'}, since {at(refusal['since'])} UTC: {refusal['reason']}"


def _layout(out: Output, layout: dict[str, Any]) -> None:
    files, needed = layout["files"], layout["files_needed"]
    title = (
        f"Layout: {counted(files, 'file')}, {size(layout['bytes'])}, {layout['small_files']:,} small; "
        f"{compactness(files, needed) if files == needed else f'{needed:,} would do'}; "
        f"file size entropy (MSE) {layout['rms_shortfall']:.0%} of the target, as a root"
    )
    rows = [
        (
            "full" if level["below_bytes"] is None else level["level"],
            size(level["from_bytes"]),
            "" if level["below_bytes"] is None else size(level["below_bytes"]),
            level["files"],
            size(level["bytes"]),
        )
        for level in layout["levels"]
    ]
    out.rows(title, ("level", "from", "below", "files", "bytes"), rows)
