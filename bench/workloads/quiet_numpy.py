#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Linear algebra in numpy on one core: eigenvalues, solutions and products."""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy  # noqa: E402


def main():
    random = numpy.random.default_rng(1)
    total = 0.0
    for _ in range(16):
        a = random.standard_normal((700, 700))
        total += abs(numpy.linalg.eigvals(a)).max()
        total += numpy.linalg.solve(a, a.T @ a).sum()
        total += numpy.linalg.svd(a, compute_uv=False)[0]
    print(f"{total:.3f}")


main()
