# SPDX-License-Identifier: Apache-2.0
"""One thread computes, another answers a client over TCP, for SECONDS: each
answer waits until the first thread gives the interpreter's lock away.

    python_convoy.py SECONDS [INTERVAL]

Prints what bench/ reads: "start", "progress SECONDS ITERATIONS" every 0.1 s,
"total SECONDS ITERATIONS" at the end; an iteration is an answer.
"""
import os
import socket
import sys
import threading
import time

QUESTION = b"a question of some forty bytes in one line\n"


def compute():
    n = 0
    while True:
        n = (n * 5 + 1) % 1_000_003


def ask(address):
    """The client, a process of its own."""
    with socket.create_connection(address) as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            s.sendall(QUESTION)
            if not s.recv(4096):
                return


def answer(connection, seconds):
    print("start", flush=True)
    begin = shown = now = time.monotonic()
    iterations = 0
    while now - begin < seconds:
        connection.sendall(connection.recv(4096))
        iterations += 1
        now = time.monotonic()
        if now - shown >= 0.1:
            print(f"progress {now - begin:.3f} {iterations}", flush=True)
            shown = now
    print(f"total {now - begin:.6f} {iterations}", flush=True)


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10
    if len(sys.argv) > 2:
        sys.setswitchinterval(float(sys.argv[2]))
    listener = socket.create_server(("127.0.0.1", 0))
    if os.fork() == 0:
        try:
            ask(listener.getsockname())
        except OSError:
            pass  # the server has ended
        os._exit(0)
    connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    threading.Thread(target=compute, daemon=True).start()
    answer(connection, seconds)
    connection.close()
    os.wait()


main()
