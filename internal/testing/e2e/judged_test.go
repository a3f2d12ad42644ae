// SPDX-License-Identifier: Apache-2.0

//go:build e2e && full

package e2e

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// Programs with a problem whose gain other load may hide. They are changed while they
// run, and what comes of it is measured; bench/catalogue tells how much that is.
func TestEffectsAreJudged(t *testing.T) {
	python := func(name string) []string { return []string{"/usr/bin/python3", workloads + name + ".py", lasting} }
	c := func(name string, flags ...string) []string {
		return []string{targets.Build(t, workloads+name+".c", flags...), lasting}
	}
	regions := c("omp_regions", "-O2", "-fopenmp")
	for _, tt := range []struct {
		name, tunlet string
		processes    int
		command      []string
		flags        []string
		threads      int // of OpenMP
		root         bool
	}{
		{name: "lock of an interpreter", tunlet: "convoy", processes: 1, command: python("python_convoy")},
		// The kernel's static probes see collections; the tunlet is silent without root.
		{name: "collector", tunlet: "gc", processes: 1, command: python("python_gc"), root: true},
		{name: "small buffer", tunlet: "sockbuf", processes: 1, command: append(c("tcp_stream"), "16384")},
		{name: "messages", tunlet: "aggregation", processes: 1, command: c("item_sender"),
			flags: telling("aggregation", "variable=items_per_message")},
		// One worker is slow, and has an equal share. The functions are called too often
		// for uprobes, and only where they are aligned, as from -O2 on, is there room
		// for a patch.
		{name: "equal shares", tunlet: "factoring", processes: 1, command: append(c("self_schedule", "-O2", "-lm"), "1"),
			flags: telling("factoring", "object=self_schedule", "variable=factor", "round=play_round", "dispatch=take_piece", "task=work_item")},
		{name: "too many threads", tunlet: "omp-threads", processes: 1, threads: 4 * runtime.NumCPU(), command: regions},
		// Two teams spin against each other.
		{name: "two teams", tunlet: "omp-spin", processes: 2, threads: runtime.NumCPU(),
			command: []string{"sh", "-c", `"$0" $1 200000 >/dev/null & "$0" $1 200000; wait`, regions[0], lasting}},
		// Two processes on different CPUs talk through pipes: one moves to the other.
		{name: "pair", tunlet: "affinity", processes: 1, command: append(c("ping_pong", "-O2"), "apart")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.threads > 0 {
				t.Setenv("OMP_NUM_THREADS", strconv.Itoa(tt.threads))
			}
			if tt.root && os.Geteuid() != 0 {
				tt.command[len(tt.command)-1] = "5"
				wantNone(t, runTuned(t, tt.flags, tt.command...))
				return
			}
			tuneUntil(t, judged(tt.tunlet, tt.processes), tt.flags, tt.command...)
		})
	}
}

// Values are tried of a variable without a model, until the search knows which one
// is best.
func TestValuesAreSearched(t *testing.T) {
	program := targets.Build(t, workloads+"blocked_transpose.c", "-O2")
	flags := telling("search", "object=blocked_transpose", "variable=tile", "progress=step", "min=8", "max=24", "tries=2")
	r := tuneUntil(t, happened("searched", func(e report.Entry) bool {
		return e.Tunlet == "search" && strings.Contains(e.Text, "values tried in ")
	}), flags, program, lasting)
	tried := map[string]bool{}
	for _, c := range r.Changes {
		if c.Knob == "program.variable" && c.AppliedAt != nil {
			tried[c.New.String()] = true
		}
	}
	if len(tried) < 2 {
		t.Errorf("values %v, want two; changes %+v", tried, r.Changes)
	}
}

// Nothing is tried where nobody has said what.
func TestVariablesWithoutANameAreLeftAlone(t *testing.T) {
	wantNone(t, runTuned(t, nil, targets.Build(t, workloads+"blocked_transpose.c", "-O2"), "3"))
	wantNone(t, runTuned(t, nil, targets.Build(t, workloads+"item_sender.c"), "3"))
}
