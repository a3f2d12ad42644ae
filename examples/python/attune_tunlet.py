# SPDX-License-Identifier: Apache-2.0
"""Serves a tunlet written in Python to Attune.

All that a tunlet is to Attune is a program that serves the gRPC service
attune.v1.TunletService (proto/attune/v1/tunlet.proto) on a Unix socket, and says
on its standard output where. What is here is that much, and no more:

    attune_tunlet.serve(MyTunlet)

A method that the tunlet does not have is answered with UNIMPLEMENTED, which
means "not interested". Describe must be there.
"""

import inspect
import os
import signal
import sys
import tempfile
import threading
from concurrent import futures

import grpc

from attune.v1 import tunlet_pb2

SERVICE = "attune.v1.TunletService"
# What Attune and a tunlet must agree on before they talk (tunlets/sdk/plugin.go).
# The cookie keeps people from running a tunlet by hand; it protects nothing.
COOKIE = ("ATTUNE_TUNLET", "b8b0a1f6d0c94f0fa4d9a3f1a2c7e5d3")
HANDSHAKE = "1|1|unix|{}|grpc|"  # versions of go-plugin and of the protocol
# Attune hands these over in the environment (tunlets/sdk/certificate.go).
OWN_CERTIFICATE, CLIENT_CERTIFICATE = "ATTUNE_TUNLET_CERTIFICATE", "PLUGIN_CLIENT_CERT"
# What a tunlet must take in one call, bytes (tunlets/sdk/serve.go).
MAX_MESSAGE = 16 << 20


def _credentials():
    """The certificate to serve with, and to nobody but who has the client's."""
    own = os.environ.pop(OWN_CERTIFICATE).encode()
    client = os.environ[CLIENT_CERTIFICATE].encode()
    begin = own.index(b"-----BEGIN", own.index(b"-----END"))
    parts = sorted((own[:begin], own[begin:]), key=lambda part: b"PRIVATE KEY" not in part)
    return grpc.ssl_server_credentials([tuple(parts)], root_certificates=client, require_client_auth=True)


def _handler(tunlet, name, request, response):
    """Answers one method of the service; None: the tunlet does not have it."""
    method = getattr(tunlet, name, None)
    if method is None:
        return None
    return grpc.unary_unary_rpc_method_handler(
        method if len(inspect.signature(method).parameters) == 2 else lambda message, _context: method(message),
        request_deserializer=request.FromString,
        response_serializer=response.SerializeToString,
    )


def _handlers(tunlet):
    service = tunlet_pb2.DESCRIPTOR.services_by_name["TunletService"]
    found = {}
    for method in service.methods:
        request = getattr(tunlet_pb2, method.input_type.name)
        response = getattr(tunlet_pb2, method.output_type.name)
        handler = _handler(tunlet, method.name, request, response)
        if handler is not None:
            found[method.name] = handler
    return grpc.method_handlers_generic_handler(SERVICE, found)


def _end_with_parent():
    """Ends the process when the one that started it is gone."""
    parent = os.getppid()
    ended = threading.Event()

    def watch():
        while not ended.wait(1):
            if os.getppid() != parent:
                os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


def serve(tunlet):
    """Runs a tunlet until Attune ends the process.

    One thread makes the calls, so that the tunlet needs no lock: Attune makes one
    at a time anyway.
    """
    if os.environ.get(COOKIE[0]) != COOKIE[1]:
        sys.exit("this is a tunlet: attune run starts it by itself; try: attune tunlet test " + sys.argv[0])
    # Signals for the whole job are not for a tunlet.
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    directory = os.environ.get("PLUGIN_UNIX_SOCKET_DIR") or tempfile.mkdtemp(prefix="attune-tunlet-")
    socket = os.path.join(directory, "tunlet-{}.sock".format(os.getpid()))
    options = (("grpc.max_receive_message_length", MAX_MESSAGE),)
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=1), options=options)
    server.add_generic_rpc_handlers((_handlers(tunlet),))
    server.add_secure_port("unix:" + socket, _credentials())
    server.start()
    _end_with_parent()
    print(HANDSHAKE.format(socket), flush=True)
    server.wait_for_termination()
