"""Tables that the tables file declares are changed there alone: a call that changes one is refused with 409."""

from decider.api.services import TableServices
from decider.web.errors import ApiError
from shared.table import TableRef


def require_undeclared(table: TableRef, tables: TableServices) -> None:
    """Raise ApiError for a declared table; a decider without a tables file lets calls change every table."""
    declared = tables.sources.declared
    if declared is not None and table.is_declared:
        raise ApiError(
            409,
            f"{table.name} is declared in {declared.status.path}, and calls do not change it: change its entry",
            field="name",
            value=table.name,
        )


def require_own_pause(table: TableRef, tables: TableServices) -> None:
    """Raise ApiError for a table whose entry says whether it is paused."""
    if table.declared_paused is not None:
        require_undeclared(table, tables)
