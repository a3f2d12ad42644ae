#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Ordinary programs must do the same without DMLib, with it idle, and with all
# its hooks traced: same output, same exit code, nothing on standard error.
#
#     stress.sh GATESTUB LIBRARY
set -uo pipefail

gatestub=$(realpath "$1")
library=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# run MODE COMMAND...: output and exit code into $work/MODE
run() {
    local mode=$1
    shift
    rm -rf "$work/place"
    mkdir "$work/place"
    (
        cd "$work/place" || exit 99
        exec timeout 120 "$gatestub" "$library" "$mode" -- "$@"
    ) >"$work/$mode" 2>"$work/$mode.err" </dev/null
    echo "exit $?" >>"$work/$mode"
    grep '^gatestub:' "$work/$mode.err" >"$work/$mode.seen"
    sed -i '/^gatestub:/d' "$work/$mode.err"
    cat "$work/$mode.err" >>"$work/$mode"
}

# same NAME COMMAND...
same() {
    local name=$1 mode
    shift
    if [ -z "$(command -v "$1")" ]; then
        echo "FAIL $name: no $1"
        failed=1
        return
    fi
    run none "$@"
    for mode in idle trace; do
        run "$mode" "$@"
        if cmp -s "$work/none" "$work/$mode" && grep -q ' [1-9][0-9]* ready' "$work/$mode.seen"; then
            echo "ok   $name, $mode: $(cut -d: -f2- "$work/$mode.seen")"
        else
            echo "FAIL $name, $mode: $(cut -d: -f2- "$work/$mode.seen")"
            diff "$work/none" "$work/$mode" | head -20
            failed=1
        fi
    done
}

cat >"$work/hello.c" <<'C'
#include <stdio.h>
int main(void) { return printf("%d\n", 6 * 7) != 3; }
C
cat >"$work/Makefile" <<'M'
all: $(addprefix part-,1 2 3 4 5 6 7 8)
part-%: ; @echo $@ | tr a-z A-Z > $@; cat $@
M

same "shell loop" bash -c 'for i in $(seq 200); do x=$(echo $i | tr 1 2); echo $x; done'
same "pipeline" bash -c 'seq 20000 | sort -rn | awk "{s+=\$1} END {print s}" | sha256sum'
same "killed" bash -c 'kill -SEGV $$'
same "exit code" bash -c 'exit 37'
same "compile" gcc -O2 -o hello "$work/hello.c" -v -save-temps=obj
same "compile and run" bash -c "gcc -O2 -o hello $work/hello.c && ./hello"
same "make -j" bash -c "make -s --no-print-directory -f $work/Makefile -j4 | sort"
same "python" python3 -c '
import json, re, hashlib, collections
data = [{"n": i, "s": str(i) * 10} for i in range(20000)]
print(hashlib.sha256(json.dumps(data).encode()).hexdigest())
print(collections.Counter(re.findall("[0-9]{3}", "".join(map(str, range(9999))))).most_common(3))'
same "python processes" python3 -c '
import multiprocessing as m
def f(x): return sum(i * x for i in range(20000))
if __name__ == "__main__":
    m.set_start_method("fork")
    with m.Pool(4) as p: print(sum(p.map(f, range(40))))'
same "python threads" python3 -c '
import threading, queue, subprocess
q, out = queue.Queue(), []
def work():
    while (x := q.get()) is not None: out.append(len(bytes(x)))
ts = [threading.Thread(target=work) for _ in range(8)]
[t.start() for t in ts]; [q.put(i) for i in range(5000)]; [q.put(None) for _ in ts]
[t.join() for t in ts]
print(sum(out), subprocess.check_output(["echo", "hi"]))'
same "perl" perl -e 'my %h; $h{$_ % 977} .= $_ for 1..100000; print length(join "", values %h), "\n"; print `echo sub`'
same "tar and gzip" bash -c 'tar -C /usr/include -cf - linux | gzip -n | gunzip | sha256sum'
exit $failed
