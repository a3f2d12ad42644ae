// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"runtime"

	"github.com/attune-hpc/attune/bench/internal/workload"
)

// controls have no problem. Each takes about ten seconds: what a start costs a
// shorter one is for bench/startup to say.
func controls() []Case {
	return []Case{
		{
			Name:    "control/arithmetic in C",
			Sources: []Source{{Name: "control_compute"}},
			Command: []string{"{bin}/control_compute", "3500"},
		},
		{
			Name:    "control/mutex and malloc in C",
			Sources: []Source{{Name: "control_threads", Flags: []string{"-pthread"}}},
			Command: []string{"{bin}/control_threads", "11000"},
		},
		{
			Name: "control/MPI, a core per rank", Slowed: 1.025,
			Needs:   needsOpenMPI(),
			Sources: []Source{exchange()},
			Command: openMPI(runtime.NumCPU(), "{bin}/mpi_exchange", "60", "9000000"),
		},
		{
			Name: "control/python", Debian: true,
			Needs:   []Need{{Command: workload.DebianPython, Package: "python3-minimal"}},
			Command: []string{workload.DebianPython, "{src}/control_python.py", "90"},
		},
		{
			Name: "control/sqlite", Debian: true, Slowed: 1.025,
			Needs:   []Need{{Command: "sqlite3", Package: "sqlite3"}},
			Command: []string{"sqlite3", "-init", "{src}/control_sqlite.sql", ":memory:", ".quit"},
		},
		{
			Name: "control/gzip", Debian: true,
			Command: []string{"gzip", "--stdout", "-6", "{sample}"},
		},
		{
			Name: "control/xz", Debian: true,
			Needs:   []Need{{Command: "xz", Package: "xz-utils"}},
			Command: []string{"xz", "--stdout", "-0", "{sample}"},
		},
		{
			Name: "control/zstd", Debian: true,
			Needs:   []Need{{Command: "zstd", Package: "zstd"}},
			Command: []string{"zstd", "--quiet", "--stdout", "-9", "{sample}"},
		},
		{
			// All wait for the first gzip: larger pipes make it no faster.
			Name: "control/gzip to gzip to md5sum", Debian: true,
			Command: []string{"sh", "-c", "gzip -c {sample} | gzip -dc | md5sum"},
		},
		{
			Name: "control/sort", Debian: true,
			Command: []string{"sort", "--buffer-size=1G", "--output=/dev/null", "{sample}"},
		},
		{
			Name: "control/awk", Debian: true,
			Needs:   []Need{{Command: "mawk", Package: "mawk"}},
			Command: []string{"mawk", "{n[$2] += $4} END {for (k in n) print k, n[k]}", "{sample}", "{sample}", "{sample}"},
		},
		{
			Name: "control/perl", Debian: true,
			Needs:   []Need{{Command: "perl", Package: "perl-base"}},
			Command: []string{"perl", "-ne", `$n{$1} += $2 if /step (\d+) energy (\S+)/; END { print scalar keys %n }`, "{sample}"},
		},
		{
			Name: "control/gcc", Debian: true, Slowed: 1.07,
			Needs:   []Need{{Command: "gcc", Package: "gcc"}},
			Command: []string{"sh", "-c", "for i in $(seq 240); do gcc -O2 -S -o /dev/null {src}/malloc_storm.c || exit 1; done"},
		},
		{
			// Nothing but programs that live for a millisecond, as in a configure script.
			Name: "control/shell script", Debian: true, Slowed: 1.20,
			Command: []string{"sh", "-c", "i=0; while [ $i -lt 4000 ]; do test -n \"$(echo $i | sed s/1/2/)\" || exit 1; i=$((i + 1)); done"},
		},
	}
}
