"""Decider and actor agree on what can be done with tables of each format."""

import pytest

pytest.importorskip("pyspark", reason="Spark is in the extra `actor`")

from actor.engines import RUNNABLE_KINDS
from actor.formats.delta.engine import DeltaEngine
from actor.formats.iceberg.engine import IcebergEngine
from actor.ports import TableEngine
from decider.decide.actions import ACTIONS
from decider.state.format_limits import limit
from shared.formats.registry import support_of
from shared.jobs.payload import MERGE_DELETES, REWRITE_MANIFESTS
from shared.policy.policy import Policy


@pytest.mark.parametrize("engine", [DeltaEngine, IcebergEngine])
def test_the_decider_plans_exactly_the_kinds_on_whole_tables_that_the_engine_runs(engine: type[TableEngine]) -> None:
    support = support_of(engine.format)
    policy, _ = limit(Policy(), support, {})
    never = () if support.has_manifests else (REWRITE_MANIFESTS, MERGE_DELETES)
    planned = [kind for kind in ACTIONS.table_kinds if policy.runs(kind) and kind not in never]
    assert sorted(planned) == sorted(engine.table_kinds)
    assert {kind for kind in ACTIONS.partition_kinds if policy.runs(kind)} <= {*RUNNABLE_KINDS}


@pytest.mark.parametrize("engine", [DeltaEngine, IcebergEngine])
def test_an_owner_reads_what_to_do_instead_of_each_kind_that_is_not_run(engine: type[TableEngine]) -> None:
    support = support_of(engine.format)
    policy, _ = limit(Policy(), support, {})
    assert {kind for kind in ACTIONS.table_kinds if not policy.runs(kind)} == {*support.instead}
    assert support.title
