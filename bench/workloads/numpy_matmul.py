#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Products of matrices of 128 by 128 in numpy, for SECONDS.

Ordinary array code: the BLAS library divides each product among its threads,
which takes a parallel region of some ten microseconds.

    numpy_matmul.py SECONDS

Prints "start", a line "progress SECONDS ITERATIONS" every 0.1 s, and at the
end "total SECONDS ITERATIONS".
"""

import sys
import time

import numpy


def main():
    seconds = float(sys.argv[1])
    a, b = (numpy.linspace(k, k + 1, 128 * 128).reshape(128, 128) for k in range(2))
    print("start", flush=True)
    start = shown = time.monotonic()
    iterations = 0
    while True:
        a @ b
        iterations += 1
        now = time.monotonic()
        if now - start >= seconds:
            break
        if now - shown >= 0.1:
            print(f"progress {now - start:.3f} {iterations}", flush=True)
            shown = now
    print(f"total {now - start:.6f} {iterations}", flush=True)


main()
