"""Answers about tables as rows for people: lists, one table, its partitions and its decisions."""

import json
from typing import Any

from services.cli.render import Output, at, counted, duration, measured_runs, shown, size

BUSY_SHOWN = 5
"""Partitions under DML that fit into one line."""


def show_tables(out: Output, answer: Any) -> None:
    """Print registered tables by name."""
    rows = [(table["name"], table["tenant"], table["location"], _state(table)) for table in answer["tables"]]
    out.rows("Tables", ("name", "tenant", "location", "state"), rows)
    if any(table["refusal"] or table["error"] for table in answer["tables"]):
        out.line("Why a table is not optimized: lakewright tables show NAME")
    if answer["next_page_token"]:
        out.line(f"More tables: --page-token {answer['next_page_token']}")


def show_discovery(out: Output, answer: Any) -> None:
    """Print the progress of discovery below each root."""
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


def show_table(out: Output, answer: Any) -> None:
    """Print a table: its policy and the source of each value, and its layout."""
    out.pairs(answer["name"], _summary(answer))
    _layout(out, answer["layout"])
    policy = [(one["property"], one["value"], one["unit"], _origin(one)) for one in answer["policy"]["values"]]
    out.rows("Policy", ("property", "value", "unit", "from"), policy)
    issues = [(one["property"], one["value"], one["reason"]) for one in answer["policy"]["issues"]]
    if issues:
        out.rows("Invalid properties", ("property", "value", "reason"), issues)
    for note in answer["policy"]["notes"]:
        out.line(note)


def show_partitions(out: Output, answer: Any) -> None:
    """Print the partitions of a table with their decisions."""
    rows = [
        (
            one["partition_label"],
            one["layout"]["files"],
            one["layout"]["small_files"],
            size(one["layout"]["bytes"]),
            f"{one['layout']['rms_shortfall']:.0%}",
            made["action"],
            made["decision"],
            made["reason"],
        )
        for one in answer["partitions"]
        for made in one["decisions"]
    ]
    columns = ("partition", "files", "small", "bytes", "entropy", "action", "decision", "reason")
    out.rows(f"Partitions at version {answer['version']}", columns, rows)


def show_reads(out: Output, answer: Any) -> None:
    """Print how often a table is read, and its readers' filters."""
    rows = [(one["times"], json.dumps(one["filter"])) for one in answer["filters"]]
    out.rows(
        f"{answer['reads_per_hour']:g} reads per hour, weight {answer['read_weight']:g}", ("times", "filter"), rows
    )


def show_decisions(out: Output, answer: Any) -> None:
    """Print decisions, newest first."""
    rows = [(at(one["at"]), one["action"], one["decision"], one["message"]) for one in answer["decisions"]]
    out.rows("Decisions", ("at (UTC)", "action", "decision", "why"), rows)


def show_change(out: Output, answer: Any) -> None:
    """Print the overrides of a table after a change."""
    overrides = shown(answer["properties"]) if answer["properties"] else "no overrides"
    out.line(f"{answer['name']} of {answer['tenant']}: {overrides}")


def _state(table: dict[str, Any]) -> str:
    if table["refusal"]:
        return _listed(table["refusal"])
    if table["version"] is None:
        return "cannot be read" if table["error"] else "not read yet"
    return f"version {table['version']}"


def _summary(answer: dict[str, Any]) -> dict[str, object]:
    cursor, decision, job = answer["state"], answer["last_decision"], answer["last_job"]
    return {
        "location": answer["location"],
        "tenant": answer["tenant"],
        "refused": _refusal(answer["refusal"]) if answer["refusal"] else "no",
        "version": cursor["version"] if cursor else "not yet read",
        "applied at (UTC)": at(cursor["applied_at"]) if cursor else "-",
        "lag": duration(cursor["lag_s"]) if cursor else "-",
        "rebuilds": cursor["rebuilds"] if cursor else 0,
        "partitions": f"{answer['partitions']}, {answer['eligible_partitions']} of them eligible",
        "last decision": decision["message"] if decision else "-",
        "last job": f"{job['id']} {job['state']} {job['result']}" if job else "-",
        "manual run": answer["manual_run"]["message"] if answer["manual_run"] else "-",
        "MERGE, UPDATE, DELETE": _contention(answer["write_contention"]),
        "predicted and measured": _calibration(answer["calibration"]),
        "counters": shown(answer["counters"]),
    }


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
    return "missing" if refusal["missing"] else str(refusal["code"] or "unreadable")


def _refusal(refusal: dict[str, Any]) -> str:
    return f"{'missing' if refusal['missing'] else 'yes'}, since {at(refusal['since'])} UTC: {refusal['reason']}"


def _origin(value: dict[str, Any]) -> str:
    return str(value["set_by"]) if value["source"] == "default" else f"{value['source']}: {value['set_by']}"


def _layout(out: Output, layout: dict[str, Any]) -> None:
    title = (
        f"Layout: {counted(layout['files'], 'file')}, {size(layout['bytes'])}, {layout['small_files']} small; "
        f"entropy {layout['rms_shortfall']:.0%} of the target (root of MSE)"
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
