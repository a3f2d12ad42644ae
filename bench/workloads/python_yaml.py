# SPDX-License-Identifier: Apache-2.0
"""Reads a YAML document of so many LINES at once, as a program does with its
inventory. With THRESHOLD, the collector's youngest generation is that large.

    python_yaml.py LINES [THRESHOLD]
"""
import gc
import sys

import yaml


def main():
    lines = int(sys.argv[1])
    if len(sys.argv) > 2:
        gc.set_threshold(int(sys.argv[2]))
    text = "".join(f"- id: {i}\n  tags: [a, b, {i}]\n  position: {{x: {i}, y: 2}}\n" for i in range(lines // 3))
    if len(yaml.safe_load(text)) != lines // 3:
        sys.exit("not all of it was read")


main()
