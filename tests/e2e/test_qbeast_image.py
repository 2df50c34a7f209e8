"""The image of the Qbeast actor runs in compose's profile: a table that the library wrote is optimized, no row changes.

`make test-images` builds the images; LAKEWRIGHT_QBEAST_JAR names the library's jar, which is mounted.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.support.composed import START_S, Composed
from tests.support.qbeast_process import JAR
from tests.support.qbeast_table import index_versions, newest_index
from tests.support.waiting import until

APPENDS, ROWS = 8, 200
WRITE = f"""
import os
from pathlib import Path
from actor.formats.qbeast.spark import QbeastSparkSettings, start_spark
from actor.jvm.java import find_java
from services.paths import ivy_dir, java_search
from services.actor.qbeast import library_jar

settings = QbeastSparkSettings(Path("/tmp/work"), ivy_dir(os.environ), library_jar(os.environ))
spark = start_spark(settings, java_home=find_java(java_search(os.environ)).path)
for n in range({APPENDS}):
    rows = spark.range(n * {ROWS}, (n + 1) * {ROWS}, numPartitions=1).selectExpr("id", "pmod(id * 7919, 1009) AS price")
    write = rows.write.format("qbeast").mode("append").option("columnsToIndex", "id,price").option("cubeSize", 40)
    stats = '{{"id_min":0,"id_max":10000,"price_min":0,"price_max":1009}}'
    write.option("columnStats", stats).save("file:///lake/web/points")
"""

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900), pytest.mark.long("images")]


@pytest.fixture
def composed(tmp_path: Path) -> Iterator[Composed]:
    if not Path(os.environ.get(JAR, "/none")).is_file():
        pytest.skip(f"Qbeast: {JAR} names no jar, and the image has none")
    with Composed(tmp_path / "lake", "qbeast") as services:
        yield services


def test_the_image_optimizes_a_table_of_the_library_and_ends_when_asked(composed: Composed) -> None:
    image = os.environ.get("QBEAST_ACTOR_IMAGE", "lakewright-qbeast-actor")
    composed.run(image, "python", "-c", WRITE, mounts={"/opt/qbeast/library.jar": os.environ[JAR]})
    place = composed.lake / "web" / "points"
    before = newest_index(place).fragmentation
    assert before > 2
    DeltaTable(place).alter.set_table_properties(
        {"lakewright.index": "on", "lakewright.index-every": "0 s"}, raise_if_not_exists=False
    )
    until("all are healthy", lambda: set(composed.states("Health.Status").values()) == {"healthy"}, seconds=START_S)
    assert composed.states("Health.Status").keys() == {"redis", "decider", "actor", "qbeast-actor"}
    composed.call("/v1/tables", {"location": "file:///lake/web/points", "name": "web.points"})

    def is_optimized() -> bool:
        ours = [one for one in index_versions(place) if one.mark is not None and one.mark.mode == "index"]
        return bool(ours) and newest_index(place).is_done

    until("the index is optimized", is_optimized, seconds=START_S)
    assert sorted(DeltaTable(place).to_pyarrow_table()["id"].to_pylist()) == list(range(APPENDS * ROWS))
    after = newest_index(place).fragmentation
    print(f"\nfragmentation {before:.2f}, and {after:.2f} in version {DeltaTable(place).version()}")
    assert after < before
    composed.compose("stop")
    assert composed.states("ExitCode") == dict.fromkeys(("redis", "decider", "actor", "qbeast-actor"), "0")
