"""A group of a Delta table whose output is written, and where that output has the rows of its inputs."""

from collections.abc import Sequence
from dataclasses import dataclass

from actor.formats.delta.actions import LoggedFile
from actor.formats.delta.live_files import LiveGroup
from actor.rewrite.model import Staged


@dataclass(frozen=True, slots=True)
class WrittenGroup(Staged[LiveGroup, LoggedFile]):
    """A group of a Delta table; its outputs have the range of the key that the table is sorted by.

    input_rows: stored rows of each input, where the one output holds them all, one input after the other in the group's
    order; else empty. carried: positions of the rows of each input that its vector hid when it was read, and that the
    output holds all the same, ascending: a commit has to hide them. Empty where the output holds no such row.
    """

    input_rows: tuple[int, ...] = ()
    carried: Sequence[Sequence[int]] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """All files that were written for the commit, deletion vectors included."""
        return (*self.sizes, *(path for output in self.outputs if (path := output.vector_path) is not None))

    @property
    def figures(self) -> dict[str, int]:
        """Figures of a job that commits this group alone: files and bytes replaced and written, and its comparison."""
        inputs, outputs = ([logged.file for logged in files] for files in (self.live.inputs, self.outputs))
        return {
            "files_replaced": len(inputs),
            "bytes_replaced": sum(file.size_bytes for file in inputs),
            "files_written": len(outputs),
            "bytes_written": sum(file.size_bytes for file in outputs),
            **(self.proof.figures if self.proof else {}),
        }
