"""Each failure of a catalog says whether another try may help."""

from pyiceberg import exceptions

from decider.formats.iceberg.catalogs import translated
from shared.errors import LakewrightError
from tests.support.failure_classes import OF_PYICEBERG


def judged(problem: Exception) -> type[LakewrightError]:
    try:
        with translated("reading lake/db.t"):
            raise problem
    except LakewrightError as ours:
        return type(ours)


def test_every_exception_of_the_library_is_judged_as_its_table_says() -> None:
    """A new release that adds one fails here."""
    kinds = {name: kind for name, kind in vars(exceptions).items() if isinstance(kind, type)}
    found = {name: judged(kind("no")) for name, kind in kinds.items()}
    assert found == {name: meant for meant, names in OF_PYICEBERG.items() for name in names.split()}
