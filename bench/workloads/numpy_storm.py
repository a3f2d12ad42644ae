#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Numpy expressions on arrays of 1 MB, for SECONDS.

Ordinary array code: every expression makes temporaries and drops them. glibc
gives their memory back to the kernel at once and takes it again for the next
expression, so that most of the time goes into page faults.

    numpy_storm.py SECONDS

Prints "start", a line "progress SECONDS ITERATIONS" every 0.1 s, and at the
end "total SECONDS ITERATIONS".
"""

import sys
import time

import numpy


def main():
    seconds = float(sys.argv[1])
    a, b, c = (numpy.linspace(k, k + 1, 131072) for k in range(3))
    print("start", flush=True)
    start = shown = time.monotonic()
    iterations = 0
    while True:
        (a * b + c) * (a - b)
        iterations += 1
        now = time.monotonic()
        if now - start >= seconds:
            break
        if now - shown >= 0.1:
            print(f"progress {now - start:.3f} {iterations}", flush=True)
            shown = now
    print(f"total {now - start:.6f} {iterations}", flush=True)


main()
