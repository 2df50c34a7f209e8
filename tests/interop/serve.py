"""An engine of another environment, served to the laboratory: `python -m tests.interop.serve ENGINE`.

Requests and answers are pickles on standard input and output, each behind its length. A table is named by its case,
because both sides know all cases by name; whatever an engine raises goes back as the words it used.
"""

import importlib
import os
import pickle
import struct
import sys
from typing import IO, Any

from tests.interop.cases import CASES

ENGINES = {
    "deltalake": "tests.interop.engines.delta_rs:DeltaRsWriter",
    "dataset": "tests.interop.engines.delta_rs:DatasetReader",
    "datafusion": "tests.interop.engines.delta_rs:QueryReader",
    "chdb": "tests.interop.engines.chdb_:ChdbReader",
    "chdb-writer": "tests.interop.engines.chdb_:ChdbWriter",
    "daft": "tests.interop.engines.daft_:DaftReader",
    "daft-writer": "tests.interop.engines.daft_:DaftWriter",
    "polars-kernel": "tests.interop.engines.polars_kernel:PolarsKernelReader",
}
_LENGTH = struct.Struct(">Q")


def send(stream: IO[bytes], message: Any) -> None:
    """Write one message."""
    body = pickle.dumps(message)
    stream.write(_LENGTH.pack(len(body)) + body)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """Read one message; raises EOFError when the other side has gone."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError("the other side has gone")
    return pickle.loads(stream.read(_LENGTH.unpack(head)[0]))  # noqa: S301 - both ends are ours


def main() -> None:
    """Answer until the laboratory closes our standard input."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # What engines print must not get between the answers.
    module, name = ENGINES[sys.argv[1]].split(":")
    engine = getattr(importlib.import_module(module), name)()
    os.chdir("/")  # ClickHouse reads only below its working directory.
    while True:
        try:
            method, case, arguments = receive(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer = True, getattr(engine, method)(*_in_order(method, CASES[case], arguments))
        except BaseException as error:  # noqa: BLE001 - panics of Rust are no Exception
            answer = False, (type(error).__name__, str(error))
        send(answers, answer)


def _in_order(method: str, case: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Put the case where the method wants it; the laboratory sends it apart."""
    if method in ("create", "hold"):
        return case, *arguments
    if method == "perform":
        operation, location = arguments
        return operation, case, location
    if method == "append":
        location, keys = arguments
        return case, location, keys
    location, *rest = arguments
    return location, case, *rest


if __name__ == "__main__":
    main()
