"""helm/monitoring/dashboard.json is written from this list, so that each panel says what it shows in two lines.

`python -m tests.tools.grafana_dashboard` writes it; a test compares it, and another runs each query in Prometheus.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = Path(__file__).resolve().parents[2] / "helm" / "monitoring" / "dashboard.json"
WIDTH, PANEL_WIDTH, PANEL_HEIGHT = 24, 8, 8
FUNNEL = 'max by (stage) (rate(lakewright_funnel_total{stage=~"%s"}[$__rate_interval]))'
SOURCE = {"type": "prometheus", "uid": "${source}"}


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart: `queries` by legend; `unit` is one of Grafana's."""

    title: str
    text: str
    unit: str
    queries: tuple[tuple[str, str], ...]


PANELS = (
    Panel(
        "Commits and rewrites",
        "Commits of writers that were followed, and commits of Lakewright.",
        "cps",
        (("{{stage}}", FUNNEL % "commits|rewrites"),),
    ),
    Panel(
        "Files removed",
        "Files that rewrites replaced less those that they wrote, per second.",
        "cps",
        (
            (
                "files",
                (
                    'max(rate(lakewright_funnel_total{stage="files_replaced"}[$__rate_interval]))'
                    ' - max(rate(lakewright_funnel_total{stage="files_written"}[$__rate_interval]))'
                ),
            ),
        ),
    ),
    Panel(
        "Bytes rewritten per byte ingested",
        "Over the last day, of tables whose backlog is done.",
        "none",
        (
            (
                "write amplification",
                (
                    'max(increase(lakewright_funnel_total{stage="steady_bytes_rewritten"}[1d]))'
                    ' / max(increase(lakewright_funnel_total{stage="steady_bytes_added"}[1d]))'
                ),
            ),
        ),
    ),
    Panel(
        "Files",
        "Live files of all tables, and how many would do for the same bytes.",
        "short",
        (("files", "max(lakewright_files)"), ("would do", "max(lakewright_files_needed)")),
    ),
    Panel(
        "Backlog",
        "Bytes of existing files that are still to be rewritten.",
        "bytes",
        (("backlog", "max(lakewright_backlog_bytes)"),),
    ),
    Panel(
        "Tables by state",
        "Tables by state, as lists show it.",
        "short",
        (("{{state}}", "max by (state) (lakewright_tables_by_state)"),),
    ),
    Panel(
        "Decisions",
        "Evaluated partitions per second, by result.",
        "cps",
        (("{{stage}}", FUNNEL % "partitions_touched|pruned_by_entropy|pruned_by_levels|enqueued|disabled|refused"),),
    ),
    Panel(
        "Core time of runs",
        "Core-seconds per second: cores that runs occupy.",
        "short",
        (("cores", "max(rate(lakewright_core_seconds_total[$__rate_interval]))"),),
    ),
    Panel(
        "Cost of runs",
        "Per day, at the prices that are set; none without.",
        "none",
        (("{{currency}}", "max by (currency) (increase(lakewright_cost_total[1d]))"),),
    ),
    Panel(
        "Budgets",
        "Share of each budget of a tenant or of the queue that is used.",
        "percentunit",
        (("{{scope}} {{name}} {{budget}}", "max by (scope, name, budget) (lakewright_budget_used_ratio)"),),
    ),
    Panel(
        "Jobs",
        "Jobs by state.",
        "short",
        (("{{state}}", "sum by (state) (max by (state, group) (lakewright_jobs))"),),
    ),
    Panel(
        "Oldest wait",
        "Wait of the oldest queued job, and of the oldest table whose log is to be read.",
        "s",
        (
            ("job", "max(lakewright_queue_oldest_wait_seconds)"),
            ("table", "max(lakewright_refresh_queue_oldest_seconds)"),
        ),
    ),
    Panel(
        "Actors",
        "Actors by state, and the slots of each group.",
        "short",
        (
            ("{{state}}", "sum by (state) (max by (state, group) (lakewright_actors))"),
            ("slots {{group}}", "max by (group) (lakewright_slots)"),
        ),
    ),
    Panel(
        "Runs of jobs",
        "Runs per second, those that failed, and groups of files whose commit met a conflict.",
        "cps",
        (("{{stage}}", FUNNEL % "jobs_run|jobs_failed|groups_conflicted"),),
    ),
    Panel(
        "Jobs without an actor",
        "Jobs that no actor can run, by what they need.",
        "short",
        (("{{ability}}", "max by (ability) (lakewright_jobs_without_actor) or vector(0)"),),
    ),
    Panel(
        "Tables",
        "Registered tables, and those that are refused, unreadable or missing.",
        "short",
        (
            ("registered", "max(lakewright_tables)"),
            ("refused", "max(lakewright_tables_refused)"),
            ("partitions with refused files", "max(lakewright_partitions_with_refused_files)"),
        ),
    ),
    Panel(
        "Refreshes of tables",
        "Reads of tables' logs per second, by result.",
        "cps",
        (("{{result}}", "sum by (result) (rate(lakewright_table_refreshes_total[$__rate_interval]))"),),
    ),
    Panel(
        "Duration of a refresh",
        "From the start of a read to the decisions.",
        "s",
        tuple(
            (
                f"{quantile}%",
                (
                    f"histogram_quantile(0.{quantile}, "
                    "sum by (le) (rate(lakewright_table_refresh_seconds_bucket[$__rate_interval])))"
                ),
            )
            for quantile in (50, 95)
        ),
    ),
    Panel(
        "Events",
        "Events per second, by result.",
        "cps",
        (("{{result}}", "sum by (result) (rate(lakewright_events_total[$__rate_interval]))"),),
    ),
    Panel(
        "HTTP requests",
        "Requests per second, by status.",
        "reqps",
        (("{{status}}", "sum by (status) (rate(lakewright_http_requests_total[$__rate_interval]))"),),
    ),
    Panel(
        "Duration of HTTP requests",
        "95% of the requests are faster; the event stream, which never ends, aside.",
        "s",
        (
            (
                "{{route}}",
                (
                    "histogram_quantile(0.95, sum by (le, route) "
                    '(rate(lakewright_http_request_seconds_bucket{route!="/v1/stream"}[$__rate_interval])))'
                ),
            ),
        ),
    ),
    Panel(
        "Object store requests",
        "Requests per second, by kind.",
        "reqps",
        (("{{kind}}", "sum by (kind) (rate(lakewright_object_store_requests_total[$__rate_interval]))"),),
    ),
    Panel(
        "Readers of the event stream",
        "Open pages and `lakewright watch`, per decider.",
        "short",
        (("{{instance}}", "lakewright_stream_readers"),),
    ),
    Panel(
        "Redis",
        "1: Redis responds, and is configured for durability.",
        "short",
        (("responds", "max(lakewright_redis_up)"), ("durable", "max(lakewright_redis_durable)")),
    ),
    Panel(
        "Saved registry",
        "1: the last attempt to save it succeeded; and its generations per hour.",
        "short",
        (
            ("saved", "max(lakewright_registry_saved)"),
            ("generations", "max(increase(lakewright_registry_generation[1h]))"),
        ),
    ),
    Panel(
        "Age of the saved registry",
        "Since everything in Redis was last known to be saved; it is verified every five minutes.",
        "s",
        (("age", "time() - max(lakewright_registry_saved_timestamp_seconds)"),),
    ),
    Panel(
        "Tables file",
        "1: all deciders have the file in force as it is now, all entries; and the tables that it declares.",
        "short",
        (
            ("in force", "min(lakewright_tables_file_accepted)"),
            ("tables", "max(lakewright_tables_file_tables)"),
        ),
    ),
)


def dashboard() -> str:
    """Return the file's text."""
    whole = {
        "uid": "lakewright",
        "title": "Lakewright",
        "description": "What deciders and actors do; docs/monitoring.md explains the metrics.",
        "tags": ["lakewright"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [{"name": "source", "label": "Data source", "type": "datasource", "query": "prometheus"}]
        },
    }
    panels = ",\n".join(json.dumps(_panel(number, panel)) for number, panel in enumerate(PANELS))
    return f'{json.dumps(whole)[:-1]},\n"panels": [\n{panels}\n]}}\n'


def _panel(number: int, panel: Panel) -> dict[str, Any]:
    row, column = divmod(number * PANEL_WIDTH, WIDTH)
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.text,
        "datasource": SOURCE,
        "gridPos": {"x": column, "y": row * PANEL_HEIGHT, "w": PANEL_WIDTH, "h": PANEL_HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + place), "expr": query, "legendFormat": legend, "datasource": SOURCE}
            for place, (legend, query) in enumerate(panel.queries)
        ],
    }


if __name__ == "__main__":
    FILE.write_text(dashboard(), encoding="utf-8")
    print(f"{FILE}: {len(PANELS)} panels")
