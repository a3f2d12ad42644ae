# SPDX-License-Identifier: Apache-2.0
"""Uses many parts of the interpreter all the time, until its standard input ends."""
import select
import sys
import time


class Point:
    def __init__(self, x, y):
        self.x = x
        self.y = y

    def __add__(self, other):
        return Point(self.x + other.x, self.y + other.y)


def work(i):
    words = ["%d %s" % (n, chr(97 + n)) for n in range(8)]
    table = {w: len(w) for w in words}
    table.update(zip(words, sorted(words, reverse=True)))
    text = ",".join(str(k) for k in table).upper().encode("utf-8").decode("latin-1")
    numbers = [float(n) ** 0.5 + i / 3 for n in range(4)] + [10**20 // (i + 1) % 97]
    both = frozenset(words) & {text[:3], words[0]} | set(text.split(","))
    p = Point(i, 2.5) + Point(1, complex(1, 2))
    try:
        raise ValueError(text.find("7"), repr(p.x), bytes(bytearray(b"abc")), memoryview(b"xyz")[1])
    except ValueError as e:
        args = tuple(e.args) + (min(numbers), max(words), sum(numbers), hash(text), isinstance(p, Point))
    getattr(p, "nothing", None)
    setattr(p, "z", {**table, "i": i}.pop("i"))
    del p.z
    list(map(abs, filter(None, range(-2, 3))))
    eval("1 + %d" % (i % 7))
    return len(args) + len(both) + int("12") + round(2.5) + divmod(i, 7)[0]


sys.stdout.write("ready\n")
sys.stdout.flush()
i = 0
while not select.select([sys.stdin], [], [], 0)[0]:
    work(i)
    i += 1
    time.sleep(0.0002)
