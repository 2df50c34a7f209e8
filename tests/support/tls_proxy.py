"""Ends TLS before a server that has none, as a service mesh or stunnel does; clients need a certificate."""

import contextlib
import socket
import ssl
import threading

from tests.support.certificates import Authority
from tests.support.time_limits import scaled

CHUNK = 65_536


class TlsProxy:
    """Each connection is two threads, one per direction."""

    def __init__(self, target_port: int, authority: Authority) -> None:
        self._target_port = target_port
        issued = authority.issue("server")
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(issued.certificate, issued.key)
        self._context.load_verify_locations(authority.certificate)
        self._context.verify_mode = ssl.CERT_REQUIRED
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def close(self) -> None:
        """Listen no more, end every connection, and wait for the threads."""
        for one in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        for thread in self._threads:
            thread.join(scaled(10))

    def _accept(self) -> None:
        while True:
            try:
                plain, _ = self._listener.accept()
            except OSError:
                return
            self._start(self._serve, plain)

    def _serve(self, plain: socket.socket) -> None:
        try:
            client = self._context.wrap_socket(plain, server_side=True)
        except OSError:
            plain.close()
            return
        server = socket.create_connection(("127.0.0.1", self._target_port))
        self._open += [client, server]
        self._start(self._pass, server, client)
        self._pass(client, server)

    @staticmethod
    def _pass(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError):
            while data := source.recv(CHUNK):
                target.sendall(data)
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _start(self, target: object, *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()
