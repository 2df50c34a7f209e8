"""What a call sets for a while, in its session and on its thread, is afterwards as it was before."""

from contextlib import suppress
from typing import Any

import pytest

from actor.jvm.scala import Scala, jvm_context, jvm_session
from actor.jvm.sessions import Sessions, changed
from tests.support.delta_lab import DeltaLab

pytestmark = pytest.mark.spark

POOL = "spark.scheduler.pool"


def test_a_setting_that_was_there_has_its_value_again_and_one_that_was_not_is_gone(spark: Any) -> None:
    session, values = spark.newSession(), {"spark.sql.caseSensitive": "false", "spark.lakewright.of-a-test": "1"}
    session.conf.set("spark.sql.caseSensitive", "true")
    with suppress(ZeroDivisionError), changed(Scala(spark), session, values):
        assert {name: session.conf.get(name) for name in values} == values
        1 / 0  # noqa: B018 - whatever fails meanwhile
    assert session.conf.get("spark.sql.caseSensitive") == "true"
    assert session.conf.get("spark.lakewright.of-a-test", None) is None


def test_a_thread_that_was_bound_twice_has_the_outer_session_again(lab: DeltaLab) -> None:
    """One thread owns a session, writes a group and commits: Delta signs a commit with what the active session says."""
    scala, sessions = lab.engine._scala, lab.engine._sessions
    of_thread = scala.resolve("org.apache.spark.sql.classic.SparkSession").getActiveSession
    context, before = jvm_context(lab.spark), of_thread()
    with sessions.lease(tag="outer") as outer, sessions.lease(tag="inner") as inner, sessions.bound(outer):
        with sessions.bound(inner):
            assert of_thread().get().equals(jvm_session(inner.session))
            assert context.getLocalProperty(POOL) == inner.pool
        assert of_thread().get().equals(jvm_session(outer.session))
        assert context.getLocalProperty(POOL) == outer.pool
    assert of_thread().equals(before)
    assert context.getLocalProperty(POOL) is None


@pytest.mark.parametrize("way", ["read", "write"])
def test_a_session_that_has_analyzed_no_query_finds_columns_by_id(spark: Any, way: str) -> None:
    """Delta turns it on with the first query that a session analyzes, and its first rewrite comes before that."""
    with Sessions(Scala(spark), spark).lease(tag="first") as owned:
        assert owned.session.conf.get(f"spark.sql.parquet.fieldId.{way}.enabled") == "true"
