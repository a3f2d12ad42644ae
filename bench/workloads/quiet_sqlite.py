#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Python that keeps items in a database of SQLite in memory, and asks for them."""

import random
import sqlite3


def main():
    random.seed(1)
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, owner INTEGER, price REAL, name TEXT)")
    for part in range(32):
        db.executemany(
            "INSERT INTO item (owner, price, name) VALUES (?, ?, ?)",
            ((random.randrange(5000), random.random(), f"item {part} {n}") for n in range(50_000)),
        )
        db.commit()
    db.execute("CREATE INDEX by_owner ON item (owner, price)")
    best = {}
    for owner in range(5000):
        for (price,) in db.execute("SELECT price FROM item WHERE owner = ? ORDER BY price DESC LIMIT 50", (owner,)):
            best[owner] = max(price, best.get(owner, 0))
    names = db.execute("SELECT owner, count(*), max(name), avg(price) FROM item GROUP BY owner").fetchall()
    print(len(best), len(names))


main()
