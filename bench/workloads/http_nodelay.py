# SPDX-License-Identifier: Apache-2.0
#
# Python's own HTTP server as `python3 -m http.server --protocol HTTP/1.1` runs it,
# but with TCP_NODELAY on its connections: the best that can be set before it
# starts.
#
#     http_nodelay.py PORT
import functools
import http.server
import os
import socketserver
import sys

socketserver.StreamRequestHandler.disable_nagle_algorithm = True
http.server.SimpleHTTPRequestHandler.protocol_version = "HTTP/1.1"
http.server.test(
    HandlerClass=functools.partial(
        http.server.SimpleHTTPRequestHandler, directory=os.path.dirname(__file__)
    ),
    ServerClass=http.server.ThreadingHTTPServer,
    port=int(sys.argv[1]),
    bind="127.0.0.1",
)
