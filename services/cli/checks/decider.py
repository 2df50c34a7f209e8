"""Checks of a running service: the decider is ready, actors take jobs, and no job waits for an ability."""

from collections.abc import Mapping, Sequence
from typing import Any

from services.cli.checks.finding import ANSWER_TIMEOUT_S, Finding, FindingLevel
from services.cli.client import ApiClient, CallFailed
from services.cli.job_progress import failing_jobs, failure_text
from services.cli.render import counted, duration

SHOWN = 5
"""Tables of a condition, and refused files, that are named; the others are counted."""

BAD_CONDITIONS = {
    "refused": "refused tables",
    "failing": "failing tables",
    "invalid_properties": "invalid properties",
}
"""Conditions of tables that a person has to end, with the name of their check."""

START_ACTOR = "start one (`lakewright actor`), or wait: an actor takes jobs about a minute after its start"

SILENT_SHARE = 1 / 3
"""Share of the time in which an actor expires, without a heartbeat: two of six beats are missing."""


def check_service(url: str, token: str | None) -> list[Finding]:
    """The decider is ready; only one that is knows its actors."""
    decider = check_decider(url)
    if decider.status is not FindingLevel.OK:
        return [decider]
    try:
        with ApiClient(url.rstrip("/"), token) as api:
            answer = api.get("/v1/actors")
            tables = [
                finding
                for condition in BAD_CONDITIONS
                for finding in check_tables(
                    api.get("/v1/table-rows", {"condition": condition, "limit": SHOWN}), condition, url
                )
            ]
            files = check_refused(api.get("/v1/refused-files", {"limit": SHOWN}), url)
            jobs = [*check_unserved(answer, url), *check_failing(failing_jobs(api), url)]
            return [decider, check_actors(answer, url), *jobs, *tables, *files]
    except CallFailed as problem:
        action = "set LAKEWRIGHT_TOKEN to a token that may read"
        return [decider, Finding("actors", FindingLevel.WARN, f"not known: {problem}", url, action)]


def may_be_starting(findings: Sequence[Finding]) -> bool:
    """Return True where the decider, or every actor, may only need more time."""
    return any(
        one.action == START_ACTOR or (one.check == "decider" and one.status is FindingLevel.FAIL) for one in findings
    )


def check_actors(answer: Mapping[str, Any], where: str) -> Finding:
    """An actor takes jobs, all of them send heartbeats, and none died; `answer` is the API's list of actors."""
    working = [one for one in answer["actors"] if one["state"] in ("working", "idle")]
    others = [f"{one['id']} {one['state']}" + (f": {one['error']}" if one["error"] else "") for one in answer["actors"]]
    if not working:
        what = "none takes jobs" + (f" ({'; '.join(others)})" if others else "")
        return Finding("actors", FindingLevel.WARN, what, where, START_ACTOR)
    found = f"{counted(len(working), 'actor')} with {counted(sum(one['slots'] for one in working), 'slot')}"
    found += f": {', '.join(one['id'] for one in working)}"
    silent = [
        f"{one['id']} sent no heartbeat for {duration(one['heartbeat_age_s'])}"
        for one in working
        if one["heartbeat_age_s"] > one["expires_after_s"] * SILENT_SHARE
    ]
    died = [text for one, text in zip(answer["actors"], others, strict=True) if one["state"] == "died"]
    if silent or died:
        action = "see whether it still runs; its jobs go to other actors when its lease ends"
        return Finding("actors", FindingLevel.WARN, "; ".join((found, *silent, *died)), where, action)
    return Finding("actors", FindingLevel.OK, found, where)


def check_unserved(answer: Mapping[str, Any], where: str) -> list[Finding]:
    """No job waits for an actor that was never started; `answer` is the API's list of actors."""
    return [
        Finding(
            "jobs",
            FindingLevel.WARN,
            f"{counted(one['jobs'], 'job')} cannot run: no actor can do {one['ability']}",
            where,
            f"start an actor that can do {one['ability']}; `lakewright actors list` shows what each can run",
        )
        for one in answer["unserved"]
    ]


def check_failing(jobs: Sequence[dict[str, Any]], where: str) -> list[Finding]:
    """No job failed and waits for its next try; the first are named."""
    return [
        Finding(
            "failed jobs",
            FindingLevel.WARN,
            f"{job['table_name']}, {failure_text(job)}",
            where,
            f"lakewright tables show {job['table_name']}",
        )
        for job in jobs[:SHOWN]
    ]


def check_tables(answer: Mapping[str, Any], condition: str, where: str) -> list[Finding]:
    """No table is in this condition; `answer` is the API's list of those that are, of which the first are named."""
    check = BAD_CONDITIONS[condition]
    findings = [
        Finding(
            check,
            FindingLevel.WARN,
            f"{one['name']}: {one['refusal']['reason']}" if one["refusal"] else one["name"],
            where,
            f"lakewright tables show {one['name']}",
        )
        for one in answer["rows"]
    ]
    more = answer["matching"] - len(findings)
    if more > 0:
        what, action = f"{more:,} more", f"lakewright tables list --state {condition.replace('_', '-')}"
        findings.append(Finding(check, FindingLevel.WARN, what, where, action))
    return findings


def check_refused(answer: Mapping[str, Any], where: str) -> list[Finding]:
    """No files are refused; `answer` is the API's list of refused files, of which the first are named."""
    findings = [
        Finding(
            "refused files",
            FindingLevel.WARN,
            f"{one['table']}, {one['partition_label']}: {counted(one['files'], 'file')} such as "
            f"{next(iter(one['paths']), 'all of the partition')}: {one['message']}",
            where,
            one["remedy"],
        )
        for one in answer["refused"]
    ]
    more = answer["partitions"] - len({(one["table"], one["partition_key"]) for one in answer["refused"]})
    if more > 0:
        what = f"{counted(more, 'more partition')} with refused files"
        findings.append(Finding("refused files", FindingLevel.WARN, what, where, "lakewright tables show TABLE"))
    return findings


def check_decider(url: str) -> Finding:
    """The decider reports that it is ready."""
    import httpx  # noqa: PLC0415 - a fifth of a second, which --help need not wait for

    address = f"{url.rstrip('/')}/readyz"
    try:
        answer = httpx.get(address, timeout=ANSWER_TIMEOUT_S)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        action = "start it (`lakewright standalone`), or correct LAKEWRIGHT_URL"
        return Finding("decider", FindingLevel.FAIL, f"does not answer: {error}", address, action)
    if answer.status_code == httpx.codes.OK:
        return Finding("decider", FindingLevel.OK, "ready", address)
    action = "read its log: it is running, but something that it needs is not"
    return Finding("decider", FindingLevel.FAIL, f"answers {answer.status_code}: {answer.text[:200]}", address, action)
