"""How a table of the laboratory comes to be: a writer creates it and appends batches, Spark runs the statements."""

from dataclasses import dataclass
from pathlib import Path

from tests.interop.engines.protocol import Writer
from tests.interop.engines.spark import SparkWriter
from tests.interop.operations import Model, Restore
from tests.interop.table_case import Batch, Case
from tests.interop.table_log import TableLog


@dataclass(frozen=True, slots=True)
class Made:
    """A table and its model; `restore` goes back to before the last step."""

    case: Case
    location: Path
    model: Model
    restore: Restore


def make(case: Case, folder: Path, creator: Writer, spark: SparkWriter) -> Made:
    """Make a table in a folder; whatever the creator raises is raised."""
    folder.mkdir(parents=True, exist_ok=True)
    location = folder / ("source" if case.cloned else case.folder)
    model: Model = {}
    creator.create(case, location)
    restore = Restore()
    for step in case.all_steps:
        restore = Restore(version=TableLog.read(location).version, rows=tuple(model.items()))
        if isinstance(step, Batch):
            keys = tuple(case.batch(step.number))
            creator.append(case, location, keys)
            model.update({key: case.row(key) for key in keys})
        else:
            spark.state(step.text, location)
            for key in step.deletes:
                del model[key]
    if not case.cloned:
        return Made(case, location, model, restore)
    spark.clone(location, folder / case.folder)
    return Made(case, folder / case.folder, model, Restore(version=0, rows=tuple(model.items())))
