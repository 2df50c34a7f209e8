"""A pipe, a hole and a device where the tables file is: the decider follows what was registered by calls."""

from collections.abc import Iterator

from tests.attacks.attack import Attack, AttackWorld, Limit
from tests.attacks.beside import alive
from tests.attacks.cases.hostile_files import KINDS
from tests.support.live_decider import WrittenTable
from tests.support.waiting import comes_true


def _run(world: AttackWorld) -> Iterator[Limit]:
    stack, place = world.stack, world.folder / "tables.yaml"
    KINDS[0](place)
    stack.decider(LAKEWRIGHT_TABLES_FILE=str(place))
    orders = WrittenTable(stack.tables / "orders", seed=7)
    stack.post("/v1/tables", {"location": str(orders.path), "name": "orders"}).raise_for_status()
    errors: list[str] = [""]
    for kind in KINDS:
        place.unlink()
        kind(place)
        orders.append()
        stack.notify(orders.path, orders.version)
        name = kind.__name__.strip("_").replace("_", " ")
        is_followed = bool(comes_true(lambda: _version(world) == orders.version, seconds=30))
        yield Limit(f"beside a {name} a commit is followed", is_followed, f"version {orders.version}")
        is_named = bool(comes_true(lambda: _error(world) != errors[-1], seconds=30))
        errors.append(_error(world))
        yield Limit("and the status says what the file is", is_named, errors[-1])
    yield alive(world)


def _version(world: AttackWorld) -> int:
    return int(world.stack.get("/v1/tables/orders")["state"]["version"])


def _error(world: AttackWorld) -> str:
    return str(world.stack.get("/v1/status")["tables_file"]["error"])


ATTACKS = (Attack("pipes, holes, devices and links as the tables file", _run),)
