"""`lakewright status`: the state of the service."""

from typing import Any

import typer

from services.cli.cli_context import print_answer
from services.cli.render import Output, at, backlog_of, counted, duration, per_byte, size, used

STAGES = {
    "commits": "commits by writers",
    "partitions_touched": "partitions touched by them",
    "pruned_by_entropy": "expected gain below the tolerance",
    "pruned_by_levels": "a merge now would be repeated later",
    "deferred": "deferred to the writers of the table",
    "enqueued": "eligible for a rewrite",
    "rewrites": "rewrites committed",
}
"""The counters of the funnel that people read, as on the page."""


def status(context: typer.Context) -> None:
    """Show the state of the service: Redis, tables, queue, actors and savings."""
    print_answer(context, lambda api: api.get("/v1/status"), _show_status)


def _show_status(out: Output, answer: Any) -> None:
    out.pairs("Lakewright", _status(answer))
    stages = [(text, f"{answer['funnel'][name]:,}") for name, text in STAGES.items() if name in answer["funnel"]]
    out.rows("From commits to rewrites", ("", "count"), stages)


def _status(answer: dict[str, Any]) -> dict[str, object]:
    redis, backlog, queue, saved = answer["redis"], answer["backlog"], answer["queue"], answer["savings"]
    return {
        "version": answer["version"],
        "uptime": duration(answer["uptime_s"]),
        "redis": f"{redis['name']} {redis['version']}" if redis["reachable"] else "unreachable",
        "redis issues": "; ".join(redis["issues"]) or "none",
        "saved registry": _registry(answer["registry"]),
        **_tables_file(answer["tables_file"]),
        "tables": answer["tables"],
        "tables refused": answer["tables_refused"],
        "partitions with refused files": answer["partitions_with_refused_files"],
        "tables waiting": f"{backlog['tables_waiting']}, the oldest for {duration(backlog['oldest_wait_s'])}",
        "jobs": queue["depth"],
        "actors": answer["actors"] or "none",
        "oldest wait": duration(queue["oldest_wait_s"]),
        "files removed": saved["files_removed"],
        "bytes rewritten": size(saved["bytes_rewritten"]),
        "used by runs": used(answer["usage"]),
        "backlog": backlog_of(saved["amplification"]),
        "rewritten per byte added since": per_byte(saved["amplification"]),
        "partitions pruned": saved["partitions_pruned_ratio"],
    }


def _registry(saved: dict[str, Any] | None) -> str:
    if saved is None:
        return "none: LAKEWRIGHT_STATE is not set"
    problem = "; ".join([*filter(None, [saved["error"]]), *saved["damaged"]])
    tables = counted(saved["tables"], "table")
    return problem or f"generation {saved['generation']} with {tables}, {at(saved['saved_at'])} UTC"


def _tables_file(found: dict[str, Any] | None) -> dict[str, str]:
    if found is None:
        return {}
    problem = "; ".join([*filter(None, [found["error"]]), *found["problems"]])
    return {"tables file": problem or f"{found['path']} with {counted(found['tables'], 'table')}"}
