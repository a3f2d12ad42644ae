# SPDX-License-Identifier: Apache-2.0
"""Makes containers that live for a while, beside many that live for good, for
SECONDS: CPython's collector looks at all of them again and again.

    python_gc.py SECONDS [THRESHOLD]

Prints what bench/ reads: "start", "progress SECONDS ITERATIONS" every 0.1 s,
"total SECONDS ITERATIONS" at the end.
"""
import gc
import sys
import time

LIVE, BATCH = 300_000, 2_000


def node(number):
    return {"number": number, "edges": [number, number + 1]}


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10
    if len(sys.argv) > 2:
        gc.set_threshold(int(sys.argv[2]), 20, 20)
    graph = [node(i) for i in range(LIVE)]
    print("start", flush=True)
    begin = shown = time.monotonic()
    iterations = 0
    while True:
        batch = [node(i) for i in range(BATCH)]
        graph[(iterations * BATCH) % LIVE : (iterations * BATCH) % LIVE + BATCH] = batch
        iterations += 1
        now = time.monotonic()
        if now - shown >= 0.1:
            print(f"progress {now - begin:.3f} {iterations}", flush=True)
            shown = now
        if now - begin >= seconds:
            break
    print(f"total {now - begin:.6f} {iterations}")


main()
