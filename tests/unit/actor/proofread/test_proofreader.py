"""What is compared, by which reader and in which mode; what follows from a difference, a crash, an unknown type."""

import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from actor.proofread.locations import is_local
from actor.proofread.model import DeleteForm, Deletes, Field, FoundBy, ProofFile, Reading, Rewritten
from actor.proofread.proofreader import COPIES_PER_CHECK, Proofreader, ProofreadSettings
from actor.proofread.task import Answer, ReadEnding, Task, Work
from shared.errors import Difference, RefusedFiles, RetryableError
from shared.policy.policy import Proofread
from tests.support.proofread_groups import group_of, stored
from tests.support.time_limits import scaled
from tests.support.waiting import is_running, until

COLUMNS = [Field("a", "int64"), Field("s", "string", shown="secret column")]


@pytest.fixture(scope="module")
def proofreader() -> Iterator[Proofreader]:
    made = Proofreader()
    yield made
    made.close()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Work]:
    """What processes are asked to do, in order."""
    works: list[Work] = []
    original = Proofreader._ask

    def noted(self: Proofreader, work: Work, *args: object, **options: object) -> Answer:
        works.append(work)
        return original(self, work, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Proofreader, "_ask", noted)
    return works


def rows(*texts: str | None) -> pa.Table:
    return pa.table({"a": [*range(len(texts))], "s": pa.array(texts, pa.string())})


def group(tmp_path: Path, given: pa.Table, made: pa.Table, *, copied: bool = False) -> Rewritten:
    files = stored(tmp_path / "in.parquet", given), stored(tmp_path / "out.parquet", made)
    return group_of(COLUMNS, files[:1], files[1:], copied=copied, table="s3://b/orders")


def test_a_difference_names_table_column_file_and_number_of_rows_but_no_value(
    proofreader: Proofreader, tmp_path: Path
) -> None:
    wrong = group(tmp_path, rows("password", "b", None), rows("password", "b", "b"))
    with pytest.raises(Difference) as found:
        proofreader.check(wrong, Proofread.NEW)
    text = str(found.value)
    for part in ("s3://b/orders", "secret column", "1 rows of", "out.parquet", "nothing was committed"):
        assert part in text
    assert "password" not in text
    assert (found.value.columns, found.value.reason) == (("secret column",), "difference")
    assert found.value.files == (str(tmp_path / "in.parquet"),)


def test_a_difference_is_never_read_again(proofreader: Proofreader, tmp_path: Path, asked: list[Work]) -> None:
    with pytest.raises(Difference):
        proofreader.check(group(tmp_path, rows("a"), rows("b")), Proofread.STRICT)
    assert asked == [Work.ROWS]


def test_switched_off_nothing_is_read_and_that_is_said(
    proofreader: Proofreader, tmp_path: Path, asked: list[Work]
) -> None:
    proof = proofreader.check(group(tmp_path, rows("a"), rows("b")), Proofread.NEVER)
    assert (proof.reading, proof.unverified_because, asked) == (Reading.NONE, "switched off", [])


def test_a_copy_is_compared_as_bytes_and_the_first_of_its_kind_by_rows_too(tmp_path: Path, asked: list[Work]) -> None:
    proofreader = Proofreader()
    same = group(tmp_path, rows("a", None), rows("a", None), copied=True)
    readings = [proofreader.check(same, Proofread.NEW, fingerprint=kind).reading for kind in ("x", "x", "y")]
    always = proofreader.check(same, Proofread.ALWAYS, fingerprint="x")
    proofreader.close()
    assert readings == [Reading.ROWS, Reading.BYTES, Reading.ROWS]
    assert always.reading is Reading.ROWS
    assert asked == [Work.BYTES, Work.ROWS, Work.BYTES, Work.BYTES, Work.ROWS, Work.ROWS]


def test_where_bytes_differ_rows_decide_and_name_the_column(
    proofreader: Proofreader, tmp_path: Path, asked: list[Work]
) -> None:
    with pytest.raises(Difference) as found:
        proofreader.check(group(tmp_path, rows("a"), rows("b"), copied=True), Proofread.NEW)
    assert found.value.columns == ("secret column",)
    encoded = group(tmp_path, rows("a"), rows("a"), copied=True)
    other = stored(tmp_path / "z.parquet", rows("a"), compression="zstd")
    assert proofreader.check(replace(encoded, outputs=(other,)), Proofread.NEW).reading is Reading.ROWS
    assert asked == [Work.BYTES, Work.ROWS] * 2


def test_bytes_that_differ_are_a_difference_even_if_no_reader_reads_the_rows(
    proofreader: Proofreader, tmp_path: Path
) -> None:
    wrong = group(tmp_path, rows("a"), rows("b"), copied=True)
    with pytest.raises(Difference, match="row group"):
        proofreader.check(replace(wrong, columns=(Field("a", "geometry"),)), Proofread.NEW)


def test_of_copies_on_object_stores_the_first_and_one_in_a_hundred_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proofreader = Proofreader()
    monkeypatch.setattr("actor.proofread.proofreader.is_local", lambda path: is_local(path) and False)
    answers = {Work.FINGERPRINT: Answer(ReadEnding.SAME, fingerprint="f"), Work.ROWS: Answer(ReadEnding.SAME, rows=1)}
    monkeypatch.setattr(Proofreader, "_ask", lambda _self, work, *_args, **_options: answers[work])
    same = group(tmp_path, rows("a"), rows("a"), copied=True)
    readings = [proofreader.check(same, Proofread.NEW).reading for _ in range(2 * COPIES_PER_CHECK)]
    assert [at for at, reading in enumerate(readings) if reading is Reading.ROWS] == [0, COPIES_PER_CHECK]
    assert proofreader.check(same, Proofread.STRICT).reading is Reading.ROWS


def test_a_kind_of_copies_on_object_stores_is_known_only_once_one_was_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proofreader = Proofreader()
    monkeypatch.setattr("actor.proofread.proofreader.is_local", lambda path: is_local(path) and False)
    answers = {Work.FINGERPRINT: Answer(ReadEnding.SAME, fingerprint="f")}
    unreadable = Answer(ReadEnding.UNREADABLE, "gone")
    monkeypatch.setattr(Proofreader, "_ask", lambda _self, work, *_args, **_options: answers.get(work, unreadable))
    same = group(tmp_path, rows("a"), rows("a"), copied=True)
    reasons = {proofreader.check(same, Proofread.NEW).unverified_because for _ in range(3)}
    assert (reasons, len(proofreader._kinds)) == ({"gone; gone"}, 0)


def test_a_kind_of_copies_that_was_forgotten_is_compared_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actor.proofread.proofreader.MOST_KINDS", 1)
    proofreader = Proofreader()
    monkeypatch.setattr(Proofreader, "_ask", lambda *_args, **_options: Answer(ReadEnding.SAME, rows=1))
    same = group(tmp_path, rows("a"), rows("a"), copied=True)
    readings = [proofreader.check(same, Proofread.NEW, fingerprint=kind).reading for kind in "xxyx"]
    assert readings == [Reading.ROWS, Reading.BYTES, Reading.ROWS, Reading.ROWS]


def test_a_group_for_which_memory_does_not_suffice_is_read_once_more_with_the_most_that_may_be_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proofreader, given = Proofreader(ProofreadSettings(most_mib=700)), []

    def ask(_self: Proofreader, _work: Work, *_args: object, memory_mib: int = 256) -> Answer:
        given.append(memory_mib)
        return Answer(ReadEnding.NO_MEMORY, "too large") if len(given) == 1 else Answer(ReadEnding.SAME, rows=1)

    monkeypatch.setattr(Proofreader, "_ask", ask)
    assert proofreader.check(group(tmp_path, rows("a"), rows("a")), Proofread.NEW).reader == "duckdb"
    assert given == [256, 478]
    given.clear()
    assert proofreader.check_deletes(group(tmp_path, rows("a"), rows("a")), Proofread.NEW, "job").rows == 1
    assert given == [256, 478]


def test_ids_of_rows_are_compared_wherever_a_table_of_ids_gives_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Rewritten] = []

    def ask(_self: Proofreader, _work: Work, group: Rewritten, *_args: object, **_options: object) -> Answer:
        seen.append(group)
        return Answer(ReadEnding.SAME, rows=1)

    monkeypatch.setattr(Proofreader, "_ask", ask)
    plain = group(tmp_path, rows("a"), rows("a"), copied=True)
    given = replace(plain, found_by=FoundBy.ID, inputs=(replace(plain.inputs[0], first_row_id=0),))
    Proofreader().check(given, Proofread.NEW)
    assert [column.kind for column in seen[0].columns] == ["int64", "string", "row_id", "row_version"]


def test_what_duckdb_refuses_the_second_reader_compares(proofreader: Proofreader, tmp_path: Path) -> None:
    bad = pa.table({"a": [1], "s": pa.array([b"\xff\xfe"], pa.binary()).view(pa.string())})
    proof = proofreader.check(group(tmp_path, bad, bad), Proofread.STRICT)
    assert (proof.reading, proof.reader, proof.rows) == (Reading.ROWS, "pyarrow", 1)
    other = pa.table({"a": [1], "s": pa.array([b"\xff\xff"], pa.binary()).view(pa.string())})
    with pytest.raises(Difference):
        proofreader.check(group(tmp_path, bad, other), Proofread.NEW)


def test_an_output_that_a_reader_of_the_inputs_cannot_read_is_a_difference(
    proofreader: Proofreader, tmp_path: Path, asked: list[Work]
) -> None:
    cut = group(tmp_path, rows("a"), rows("a"))
    os.truncate(cut.outputs[0].path, cut.outputs[0].size_bytes // 2)
    with pytest.raises(Difference, match="the inputs can be read, the outputs cannot: ") as found:
        proofreader.check(cut, Proofread.NEW)
    assert found.value.files == (str(tmp_path / "in.parquet"),)
    assert asked == [Work.ROWS] * 2, "of the outputs, then of the inputs alone"


def test_what_no_reader_reads_is_unverified_and_in_mode_strict_refused(
    proofreader: Proofreader, tmp_path: Path
) -> None:
    unknown = replace(group(tmp_path, rows("a"), rows("a")), columns=(Field("a", "geometry"),))
    proof = proofreader.check(unknown, Proofread.ALWAYS)
    assert (proof.reading, "geometry" in proof.unverified_because) == (Reading.NONE, True)
    with pytest.raises(RefusedFiles, match="geometry") as refused:
        proofreader.check(unknown, Proofread.STRICT)
    assert (refused.value.reason, refused.value.files) == ("unverified", (str(tmp_path / "in.parquet"),))


def test_deletes_are_compared_by_the_rows_that_they_name(proofreader: Proofreader, tmp_path: Path) -> None:
    file = ProofFile(str(tmp_path / "a.parquet"), 1)
    text = json.dumps([1])
    stored(tmp_path / "a.parquet", rows("a", "b"))
    deleted = replace(file, deletes=(Deletes(DeleteForm.OTHERS, text=text),))
    same = Rewritten("t", "", (), FoundBy.ID, (deleted,), (deleted,))
    assert proofreader.check_deletes(same, Proofread.STRICT, "job").reading is Reading.ROWS
    with pytest.raises(Difference, match=r"merged delete files .* 1 deleted rows would be visible again"):
        proofreader.check_deletes(replace(same, outputs=(file,)), Proofread.ALWAYS, "job")
    gone = replace(same, inputs=(replace(deleted, path=str(tmp_path / "gone")),))
    assert "DuckDB cannot read" in proofreader.check_deletes(gone, Proofread.ALWAYS, "job").unverified_because
    gone = replace(gone, outputs=gone.inputs)
    with pytest.raises(RefusedFiles, match="DuckDB cannot read") as refused:
        proofreader.check_deletes(gone, Proofread.STRICT, "job")
    assert "always" not in str(refused.value), "as it is no other mode for merged deletes"
    assert proofreader.check_deletes(gone, Proofread.NEVER, "job").unverified_because == "switched off"


@pytest.mark.parametrize("mode", [Proofread.NEW, Proofread.ALWAYS])
def test_a_copy_of_a_page_that_no_reader_decodes_is_refused_and_its_file_alone_is_named(
    proofreader: Proofreader, tmp_path: Path, mode: Proofread
) -> None:
    """Joined to others, it would take their rows along where readers skip damaged files."""
    whole = group(tmp_path, rows("a"), rows("a"), copied=True)
    path = tmp_path / f"{mode}.parquet"
    stored(path, rows(*map(str, range(99))), use_dictionary=False)
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(1)
    content = bytearray(path.read_bytes())
    content[chunk.data_page_offset + 60 : chunk.data_page_offset + 76] = b"\xff" * 16
    path.write_bytes(content)
    broken = ProofFile(path.as_uri(), len(content))
    copy = replace(whole, inputs=(*whole.inputs, broken), outputs=(whole.outputs[0], replace(broken, path=f"{path}2")))
    Path(f"{path}2").write_bytes(content)
    with pytest.raises(RefusedFiles, match="decode") as refused:
        proofreader.check(copy, mode, fingerprint="a kind of its own")
    assert (refused.value.reason, refused.value.files) == ("damaged", (broken.path,))
    encoded = replace(copy, copied=False)
    assert proofreader.check(encoded, Proofread.NEW).reading is Reading.NONE, "whoever encoded it could decode it"


def test_outputs_in_a_format_that_no_reader_reads_are_unverified_and_no_difference(
    proofreader: Proofreader, tmp_path: Path
) -> None:
    same = group(tmp_path, rows("a"), rows("a"))
    orc = tmp_path / "out.orc"
    orc.write_bytes(b"ORC")
    (output,) = same.outputs
    proof = proofreader.check(replace(same, outputs=(replace(output, path=str(orc)),)), Proofread.NEW)
    assert proof.reading is Reading.NONE


def test_columns_that_are_unclear_are_refused_in_every_mode(proofreader: Proofreader, tmp_path: Path) -> None:
    unclear = replace(group(tmp_path, rows("a"), rows("a")), columns=(Field("A", "int64"),))
    for mode in (Proofread.NEW, Proofread.ALWAYS, Proofread.STRICT):
        with pytest.raises(RefusedFiles, match="for the column") as refused:
            proofreader.check(unclear, mode)
        assert refused.value.reason == "columns_unclear"


def processes(proofreader: Proofreader) -> set[int]:
    readers = proofreader._readers
    return {reader._process.pid for reader in (*readers._idle, *readers._busy)}


@pytest.fixture
def slow(tmp_path: Path) -> Rewritten:
    """A group that is read for ever: its input is a pipe without a writer."""
    os.mkfifo(tmp_path / "pipe.parquet")
    waiting = ProofFile(str(tmp_path / "pipe.parquet"), 0)
    return group_of(COLUMNS, [waiting], [waiting])


@contextmanager
def checking(proofreader: Proofreader, group: Rewritten) -> Iterator[list[Exception]]:
    """Check a group that waits for ever on another thread; what it ended with is there after the block."""
    ended: list[Exception] = []

    def check() -> None:
        try:
            proofreader.check(group, Proofread.NEW, tag="job")
        except Exception as failure:  # noqa: BLE001 - it is what the test looks at
            ended.append(failure)

    thread = threading.Thread(target=check)
    thread.start()
    until("a process reads", lambda: bool(proofreader._readers._busy))
    yield ended
    thread.join()


def test_a_canceled_job_ends_its_process_and_no_other(tmp_path: Path, slow: Rewritten) -> None:
    proofreader = Proofreader()
    with checking(proofreader, slow) as ended:
        proofreader.cancel("another")
        assert len(proofreader._readers._busy) == 1
        proofreader.cancel("job")
    assert [type(failure) for failure in ended] == [RetryableError]
    assert proofreader.check(group(tmp_path, rows("a"), rows("a")), Proofread.NEW, tag="job").rows == 1
    proofreader.close()
    assert not proofreader._readers._busy


def test_what_a_process_read_that_died_goes_to_the_second_reader(slow: Rewritten, asked: list[Work]) -> None:
    proofreader = Proofreader()
    with checking(proofreader, slow) as ended:
        (process,) = processes(proofreader)
        os.kill(process, signal.SIGSEGV)
        until("the second reader reads", lambda: asked == [Work.ROWS, Work.ROWS_AGAIN])
        until("in another process", lambda: processes(proofreader) - {process})
        (another,) = processes(proofreader)
        proofreader.close()
    assert [type(failure) for failure in ended] == [RetryableError]
    assert not is_running(another)


def test_a_process_that_died_between_groups_is_replaced(tmp_path: Path) -> None:
    proofreader, same = Proofreader(), group(tmp_path, rows("a"), rows("a"))
    proofreader.check(same, Proofread.NEW)
    (process,) = processes(proofreader)
    os.kill(process, signal.SIGKILL)
    # As the product sees it: the last of its threads can end after the process counts as a zombie.
    until("it is dead", lambda: not proofreader._readers._idle[0].is_alive())
    assert proofreader.check(same, Proofread.STRICT).reader == "duckdb"
    proofreader.close()


def test_processes_are_kept_between_groups_and_one_is_there_for_each_caller(tmp_path: Path) -> None:
    proofreader, same = Proofreader(), group(tmp_path, rows("a"), rows("a"))
    (process,) = [processes(proofreader) for _ in range(3) if proofreader.check(same, Proofread.NEW)][-1]
    assert is_running(process)
    proofreader.close()


def test_a_process_ends_with_its_actor_in_the_middle_of_a_group(slow: Rewritten) -> None:
    """The pipe is closed as it is when the actor is killed."""
    proofreader = Proofreader()
    reader = proofreader._readers._start()
    reader._pipe.send(Task(Work.ROWS, slow, 256))
    assert reader._process.poll() is None
    reader._pipe.close()
    assert reader._process.wait(scaled(30)) == 0
    reader.end()


def test_two_thousand_columns_are_compared_within_the_limit_or_unverified(tmp_path: Path) -> None:
    wide = pa.table({f"c{number}": [number, None] for number in range(2000)})
    files = stored(tmp_path / "in.parquet", wide), stored(tmp_path / "out.parquet", wide)
    columns = [Field(f"c{number}", "int64") for number in range(2000)]
    proofreader = Proofreader(ProofreadSettings(most_mib=700))
    assert proofreader.check(group_of(columns, files[:1], files[1:]), Proofread.NEW).rows == 2
    proofreader.close()


def test_without_memory_a_group_is_unverified_and_the_actor_lives(tmp_path: Path) -> None:
    proofreader = Proofreader(ProofreadSettings(most_mib=60))
    proof = proofreader.check(group(tmp_path, rows("a"), rows("a")), Proofread.NEW)
    assert (proof.reading, "died" in proof.unverified_because) == (Reading.NONE, True)
    proofreader.close()
