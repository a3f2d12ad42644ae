# SPDX-License-Identifier: Apache-2.0
# Threads that allocate and give back, by an allocator that is preloaded or not.
import hashlib
import threading
import time

found = {}


def work(number):
    digest = hashlib.sha256()
    for turn in range(700):
        texts = [str(i * turn) * (1 + i % 50) for i in range(800)]
        digest.update("".join(texts).encode())
        time.sleep(0.002)
    found[number] = digest.hexdigest()


threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sorted(found.items()))
raise SystemExit(7)
