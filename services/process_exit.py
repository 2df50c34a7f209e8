"""The end of a process that has read object stores: by its own hand, before the interpreter is torn down."""

import atexit
import os
import sys


class ProcessExit:
    """Last action of a process; `code` is its exit code, 1 until it is set.

    A thread of obstore (tokio) hands the result of a read to the event loop and takes the interpreter's lock for it,
    even when no caller waits any more. If the interpreter is being torn down by then, CPython before 3.14 ends that
    thread from outside, which its Rust frames answer with SIGABRT: exit code 134 after the right words.
    """

    def __init__(self) -> None:
        """Handlers run last in, first out: make it first, and whatever else is left to the end is done before it."""
        self.code = 1
        atexit.register(self.leave)

    def leave(self) -> None:
        """Write out what was printed and end with the exit code; 1 where the output cannot be written."""
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except OSError:
            self.code = self.code or 1
        os._exit(self.code)
