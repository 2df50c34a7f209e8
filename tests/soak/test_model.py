"""The model applies each operation to the snapshot that it has read, and says what it cannot explain."""

from typing import Any

from tests.soak.log import Commit
from tests.soak.model import Model
from tests.soak.operations import Action, Operation, Where
from tests.soak.values import Row

A, B = {"p": "a"}, {"p": "b"}


def row(key: int, value: str = "v", partition: str = "a") -> Row:
    return {"id": key, "value": value, "p": partition}


class Story:
    """Operations in the order of their commits; `read` is the version that each has read, the newest if not given."""

    def __init__(self) -> None:
        self.model = Model("t")
        self.operations: dict[str, Operation] = {}
        self.model.replay([commit(0, {"soak": "create"})], {})

    def do(self, action: Action, *, read: int | None = None, nonce: str = "", **fields: Any) -> None:
        version = self.model.version + 1
        seen = version - 1 if read is None else read
        operation = Operation(nonce or f"n-{version}", "t", action, seen, **fields)
        self.operations[operation.nonce] = operation
        self.replay({"soak": operation.nonce})

    def replay(self, info: dict[str, Any]) -> None:
        self.model.replay([commit(self.model.version + 1, info)], self.operations)

    def append(self, *rows: Row) -> None:
        self.do(Action.APPEND, rows=rows)

    @property
    def values(self) -> dict[int, Any]:
        return {key: found["value"] for key, found in self.model.rows_at(self.model.version).items()}


def commit(version: int, info: dict[str, Any]) -> Commit:
    return Commit(version, ({"commitInfo": info},), "")


def test_commits_that_no_one_made_or_that_come_twice_are_found() -> None:
    story = Story()
    story.replay({"userMetadata": "who?"})
    assert "made by no one we know" in story.model.problems.pop()
    story.append(row(1))
    story.replay({"soak": "n-2"})
    assert "is there already as version 2" in story.model.problems.pop()
    story.do(Action.VACUUM, nonce="twice")
    story.do(Action.VACUUM, nonce="twice")
    assert story.model.problems == []


def test_an_id_that_comes_twice_is_found() -> None:
    story = Story()
    story.append(row(1))
    story.append(row(1))
    assert "id 1 was used before" in story.model.problems.pop()


def test_an_operation_is_empty_only_where_no_row_matched_on_some_snapshot() -> None:
    story = Story()
    story.append(row(1))
    delete = Operation("d", "t", Action.DELETE, 1, where=Where(A, ids=(1,)))
    assert not story.model.effect_is_empty(delete, 1)
    assert story.model.effect_is_empty(Operation("d", "t", Action.DELETE, 1, where=Where(B)), 1)
    assert not story.model.effect_is_empty(Operation("a", "t", Action.APPEND, 1, rows=(row(2),)), 1)
    story.do(Action.DELETE, where=Where(A))
    assert not story.model.effect_is_empty(delete, 1), "it was accepted before the row was gone"
    assert story.model.effect_is_empty(delete, 2), "another had deleted the row before"
