#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Control program: interpreted arithmetic on small objects.

    control_python.py MILLIONS-OF-STEPS
"""

import sys


def main():
    x = 1
    for _ in range(int(sys.argv[1]) * 1_000_000):
        x = (x * 1103515245 + 12345) % 2147483648
    print(x)


main()
