"""Deciders that are replaced while writers post events: no call is refused, and each event has its effect.

The writers post to the service themselves, each event once: MinIO would repeat what was refused. Their bucket has no
notifications, and the sweep comes too late to help.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.lake import RELEASE, TOKEN, Lake
from tests.cluster.release import LONG_S, Release
from tests.support.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(0), pytest.mark.long("cluster")]

TABLES, COMMIT_ROWS, ROLLS = 3, 50, 3
STOP, STARTED = "/tmp/stop", "/tmp/started"  # noqa: S108 - in a container
WRITE_AND_POST = """
import json, os, threading, time, urllib.request, pyarrow, deltalake, random
failures, posted, rows = [], [0], [0] * TABLES
lock = threading.Lock()

def post(event):
    headers = {"Authorization": "Bearer TOKEN", "Content-Type": "application/json"}
    url = "http://RELEASE-decider:7420/v1/events"
    try:
        urllib.request.urlopen(urllib.request.Request(url, json.dumps(event).encode(), headers), timeout=20).read()
    except Exception as problem:
        with lock:
            failures.append(f"{time.strftime('%X')} {problem!r}")
    with lock:
        posted[0] += 1

def call_often():
    # Each event again, so that a short time without an answer is noticed; each by a connection of its own.
    while not os.path.exists("STOP"):
        post({"table": "s3://quiet/tables/rolled/0"})
        time.sleep(0.02)

callers = [threading.Thread(target=call_often) for _ in range(2)]
version = 0
while not os.path.exists("STOP"):
    for n in range(TABLES):
        ids = range(rows[n], rows[n] + COMMIT_ROWS)
        part = pyarrow.table({"id": ids, "value": [random.Random(i).random() for i in ids]})
        deltalake.write_deltalake(f"s3://quiet/tables/rolled/{n}", part, mode="append")
        rows[n] += COMMIT_ROWS
        post({"table": f"s3://quiet/tables/rolled/{n}"})
    if not version:
        for caller in callers:
            caller.start()
        open("STARTED", "w").close()
    version += 1
for caller in callers:
    caller.join()
print(json.dumps({"posted": posted[0], "failures": failures, "rows": rows, "commits": version}))
"""


def test_deciders_are_replaced_three_times_and_refuse_no_event(cluster: Cluster, lake: Lake, release: Release) -> None:
    release.install("--set=decider.sweepSeconds=86400")
    words: dict[str, Any] = {"TABLES": TABLES, "COMMIT_ROWS": COMMIT_ROWS, "RELEASE": RELEASE, "TOKEN": TOKEN}
    words |= {"STOP": STOP, "STARTED": STARTED}
    cluster.kubectl("exec", "writer", "--", "rm", "-f", STOP, STARTED)
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(lambda: lake.run(WRITE_AND_POST, seconds=6 * LONG_S, **words))
        try:
            until("the writers post", lambda: writing.done() or exists(cluster, STARTED), seconds=LONG_S)
            for _ in range(ROLLS):
                release.restart_deciders()
        finally:
            cluster.kubectl("exec", "writer", "--", "touch", STOP)
        found = json.loads(writing.result())
    print(f"[cluster] {found['posted']} events, {found['commits']} commits of each table", flush=True)
    assert not found["failures"], f"{len(found['failures'])} of {found['posted']}: {found['failures'][:5]}"
    assert found["commits"] > 20
    for number, rows in enumerate(found["rows"]):
        release.require_compacted(f"rolled/{number}", rows, bucket="quiet", files=16)
    until("each commit is known", lambda: known_versions(lake) == written_versions(lake), seconds=LONG_S)


def known_versions(lake: Lake) -> list[int]:
    """Return the versions of the tables that the deciders have read."""
    listed = {one["name"]: one["version"] for one in lake.call_from_node("/v1/tables")["tables"]}
    return [listed[f"rolled.{number}"] for number in range(TABLES)]


def written_versions(lake: Lake) -> list[int]:
    """Return the versions that the tables have."""
    return [lake.read(f"rolled/{number}", bucket="quiet")["version"] for number in range(TABLES)]


def exists(cluster: Cluster, file: str) -> bool:
    """Return whether the pod of the writers has a file."""
    return "yes" in cluster.kubectl("exec", "writer", "--", "sh", "-c", f"test -e {file} && echo yes || echo no")
