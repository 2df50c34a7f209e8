"""What a rewrite gives to Delta's transaction, which refuses it if others removed a file that it was made from."""

import json

import pytest

from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.log import TableLog
from tests.support.delta_lab import DeltaLab

pytestmark = pytest.mark.spark


def test_a_replacement_reads_and_removes_its_inputs_and_changes_no_data(lab: DeltaLab) -> None:
    table = lab.directory / "t"
    for number in range(2):
        lab.spark.range(number, number + 1).coalesce(1).write.format("delta").mode("append").save(str(table))
    scala = DeltaScala(lab.spark)
    log = TableLog(scala, lab.spark, table.as_uri())
    snapshot = log.snapshot()
    txn, inputs = log.transaction(snapshot), json.loads(log.files(snapshot))
    output = {**inputs[0], "path": "output.parquet", "dataChange": False}

    actions = scala.replacement(txn, json.dumps(inputs), json.dumps([output]), 5_000)

    paths = {one["path"] for one in inputs}
    assert {one["path"] for one in json.loads(scala.to_json(txn.readFiles()))} == paths
    added, *removed = (json.loads(actions.apply(at).json()) for at in range(actions.size()))
    assert added["add"]["path"] == "output.parquet"
    assert {one["remove"]["path"] for one in removed} == paths
    assert {(one["remove"]["dataChange"], one["remove"]["deletionTimestamp"]) for one in removed} == {(False, 5_000)}
