"""A group is copied by one task where nothing speaks against it; otherwise the reason is known as early as can be."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="Spark is in the extra `actor`")

from actor.formats.iceberg.inputs import InputGroup, LiveInput
from actor.formats.iceberg.row_group_copy import CopiedFile, IcebergCopier
from actor.formats.parquet.classes import ICEBERG_SOURCES, SOURCES, ParquetClasses
from actor.formats.parquet.copy_rules import CopyLimits, CopyRule, EncodeReason, NotCopied
from actor.formats.parquet.footer_summary import FooterSummary
from actor.jvm import java_sources
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from tests.support.fake_delta import JavaError
from tests.unit.actor.formats.iceberg.test_iceberg_inputs import VECTOR, live

FOOTER = FooterSummary(schema="s", codecs=("zstd",), rows=100, row_groups=1, data_bytes=9)
ANY_SIZE = CopyLimits(0, 0)
DONE = {"place": "t/data/out.parquet", "size": 20, "attempt": 0}


@pytest.fixture(autouse=True)
def _classes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_sources, "compile_sources", lambda *_: [])
    monkeypatch.setattr(java_sources, "ship", lambda *_: None)
    monkeypatch.setattr(java_sources, "load_class", lambda *_: None)


class Tasks:
    """What the JVM says of two files; `end`: of the task. `calls`: what was asked of it."""

    session = SimpleNamespace(conf=SimpleNamespace(get=lambda *_: "/work/classes"), version="4.1.0")

    def __init__(self, end: dict[str, Any] | Exception, *, second: FooterSummary = FOOTER, mismatch: str = "") -> None:
        self.end, self.second, self._mismatch = end, second, mismatch
        self.calls: list[str] = []
        self.end_bytes = -1
        self.describes = True

    def footers(self, inputs: Sequence[LiveInput]) -> tuple[FooterSummary, ...]:
        self.calls.append("footers")
        return FOOTER, self.second

    def mismatch(self, inputs: Sequence[LiveInput]) -> str:
        self.calls.append("mismatch")
        return self._mismatch

    def copy(self, inputs: Sequence[LiveInput], end_bytes: int) -> dict[str, Any]:
        self.calls.append("copy")
        self.end_bytes = end_bytes
        if isinstance(self.end, Exception):
            raise self.end
        return self.end

    def describe(self, inputs: Sequence[LiveInput], path: str, size_bytes: int) -> Any:
        if not self.describes:
            raise OSError("the footer cannot be read")
        return path, size_bytes


class Bench:
    """Two files of a table of format version 2."""

    def __init__(self, tasks: Tasks, rule: CopyRule | None = None, *deletes: Any) -> None:
        self.tasks = tasks
        self.deleted: list[str] = []
        self.classes = ParquetClasses(ICEBERG_SOURCES, "j.jar")
        inputs = (live("a"), live("b", *deletes))
        self.live = InputGroup(FileGroup(WHOLE_TABLE, tuple(one.file for one in inputs), RewriteMode.MINOR), inputs)
        table = SimpleNamespace(delete=lambda paths: self.deleted.extend(paths))
        head = SimpleNamespace(
            protocol=SimpleNamespace(min_writer=2), metadata=SimpleNamespace(configuration={"owner": "x"})
        )
        made: Any = (table, head, tasks, self.classes, rule or CopyRule(limits=ANY_SIZE))
        self.copier = IcebergCopier(*made)

    def copy(self) -> Any:
        end = self.copier.copy(self.live)
        return end.reason if isinstance(end, NotCopied) else end


def test_an_output_is_what_iceberg_says_of_the_file_that_the_task_made() -> None:
    bench = Bench(Tasks(DONE))
    assert bench.copy() == CopiedFile(("t/data/out.parquet", 20))
    assert (bench.tasks.calls, bench.deleted) == (["footers", "mismatch", "copy"], [])


def test_each_reason_is_known_before_what_costs_more() -> None:
    off = Bench(Tasks(DONE), CopyRule(is_allowed=False))
    assert (off.copy(), off.tasks.calls) == (EncodeReason.SWITCHED_OFF, [])
    deleted = Bench(Tasks(DONE), None, VECTOR)
    assert (deleted.copy(), deleted.tasks.calls) == (EncodeReason.DELETE_FILES, [])
    other = Bench(Tasks(DONE, second=FooterSummary(schema="t", codecs=("zstd",))))
    assert (other.copy(), other.tasks.calls) == (EncodeReason.SCHEMA, ["footers"])
    dropped = Bench(Tasks(DONE, mismatch="columns"))
    assert (dropped.copy(), dropped.tasks.calls) == (EncodeReason.COLUMNS, ["footers", "mismatch"])


def test_without_the_classes_no_footer_is_read() -> None:
    bench = Bench(Tasks(DONE))
    bench.classes.are_usable(bench.tasks.session)  # type: ignore[arg-type]
    bench.classes.give_up()
    assert (bench.copy(), bench.tasks.calls) == (EncodeReason.UNAVAILABLE, [])


@pytest.mark.parametrize(("limits", "end_bytes"), [(CopyLimits(), 250), (ANY_SIZE, 0)])
def test_the_task_keeps_an_output_of_small_row_groups_below_the_full_size(limits: CopyLimits, end_bytes: int) -> None:
    bench = Bench(Tasks(DONE), CopyRule(full_bytes=250, limits=limits))
    assert isinstance(bench.copy(), CopiedFile)
    assert bench.tasks.end_bytes == end_bytes


def test_what_is_found_while_copying_sends_the_group_to_the_encoder() -> None:
    assert Bench(Tasks({"obstacle": "damaged"})).copy() is EncodeReason.DAMAGED
    grown = Bench(Tasks({"obstacle": "full"}), CopyRule(full_bytes=250))
    assert grown.copy() is EncodeReason.SMALL_ROW_GROUPS


def test_an_output_that_cannot_be_described_is_deleted() -> None:
    bench = Bench(Tasks(DONE))
    bench.tasks.describes = False
    with pytest.raises(OSError, match="footer"):
        bench.copy()
    assert bench.deleted == ["t/data/out.parquet"]


def test_a_jvm_that_refuses_the_classes_sends_the_group_to_the_encoder_and_other_failures_are_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("actor.formats.parquet.classes.warn_unavailable", lambda *_: None)
    refused = JavaError("SparkException", message="ClassNotFoundException: io.lakewright.IcebergStore")
    assert Bench(Tasks(refused)).copy() is EncodeReason.UNAVAILABLE
    with pytest.raises(JavaError, match="No space left"):
        Bench(Tasks(JavaError("SparkException", message="No space left on device"))).copy()


def test_only_the_sources_that_need_icebergs_jar_are_left_out_for_delta() -> None:
    assert set(ICEBERG_SOURCES) - set(SOURCES) == {"IcebergStore", "IcebergFiles", "IcebergScan"}
    assert [name for name in ICEBERG_SOURCES if name in SOURCES] == [
        name for name in SOURCES if name in set(ICEBERG_SOURCES)
    ]
