"""The memory of this machine bounds what is read at once."""

from pathlib import Path

from decider.storage import machine


def test_the_memory_of_a_container_counts_where_it_is_less(tmp_path: Path) -> None:
    limit, none = tmp_path / "memory.max", tmp_path / "absent"
    limit.write_text("max\n")
    whole = machine.memory_bytes((none, limit))
    assert whole == machine.memory_bytes(()) > 4096
    limit.write_text("4096\n")
    assert machine.memory_bytes((none, limit)) == 4096
