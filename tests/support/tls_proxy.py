"""Ends TLS before a server that has none, as a service mesh or stunnel does; clients need a certificate."""

import socket
import ssl

from tests.support.certificates import Authority
from tests.support.proxy import Proxy


class TlsProxy(Proxy):
    """Takes connections whose client has a certificate of the authority."""

    def __init__(self, target_port: int, authority: Authority) -> None:
        issued = authority.issue("server")
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(issued.certificate, issued.key)
        self._context.load_verify_locations(authority.certificate)
        self._context.verify_mode = ssl.CERT_REQUIRED
        super().__init__(target_port)

    def opened(self, client: socket.socket) -> socket.socket:
        return self._context.wrap_socket(client, server_side=True)
