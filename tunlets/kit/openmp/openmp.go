// SPDX-License-Identifier: Apache-2.0

// Package openmp is what the tunlets about OpenMP have in common: which run-time
// a process uses, the measure point that counts its parallel regions, and how its
// threads and those of a node's other processes are followed.
package openmp

import (
	"fmt"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// Runtime is an OpenMP run-time library.
type Runtime struct {
	// Object is the pattern of its file's base name.
	Object string
	// forks are the functions that begin a parallel region.
	forks []string
	// GNU says that it is libgomp, of GCC.
	GNU bool
}

// runtimes lists those that are known, by each name that they have. LLVM's also has the functions that GCC's
// compilers call. GOMP_parallel_end, of programs from before GCC 4.9, is left
// out, or it would be counted twice.
func runtimes() []Runtime {
	gnu := []string{"GOMP_parallel", "GOMP_parallel_start", "GOMP_parallel_reductions", "GOMP_parallel_loop_*", "GOMP_parallel_sections*"}
	llvm := append([]string{"__kmpc_fork_call*"}, gnu...)
	list := []Runtime{{Object: "libiomp5.so", forks: llvm}}
	for _, pattern := range attunev1.LibraryPatterns("libgomp") {
		list = append(list, Runtime{Object: pattern, forks: gnu, GNU: true})
	}
	for _, pattern := range attunev1.LibraryPatterns("libomp") {
		list = append(list, Runtime{Object: pattern, forks: llvm})
	}
	return list
}

// Of returns the run-time that a process has mapped; false if there is none. A
// process with two of them, each with threads of its own, is none either: its
// settings are refused by the controller.
func Of(p sdk.Process) (found Runtime, ok bool) {
	for _, r := range runtimes() {
		if !p.Maps(r.Object) {
			continue
		}
		if ok {
			return Runtime{}, false
		}
		found, ok = r, true
	}
	return found, ok
}

// Any takes every run-time.
func Any(Runtime) bool { return true }

// Wakes makes one condition for each name of the run-times that are taken: the process has it, and
// has reached all the levels.
func Wakes(takes func(Runtime) bool, levels ...sdk.Level) (list []sdk.Wake) {
	for _, r := range runtimes() {
		if takes(r) {
			list = append(list, sdk.Wake{Object: r.Object, Levels: levels})
		}
	}
	return list
}

// Regions is the measure point that counts the parallel regions that a process
// begins.
func (r Runtime) Regions(p sdk.Handle) sdk.Point {
	return sdk.Point{
		ID: PointID(p), Object: r.Object, Symbols: r.forks, DynamicCallsOnly: true,
		Place: sdk.Entry, Delivery: sdk.DeliverAggregate, Processes: []sdk.Handle{p},
	}
}

// Durations is the measure point that takes how long each parallel region of a process
// lasts, in nanoseconds. It costs far more than the other one, for these functions end in
// a jump to others: who has decided needs it no more, and what an objective is measured
// by must stay within the budget for as long as a trial takes.
func (r Runtime) Durations(p sdk.Handle) sdk.Point {
	point := r.Regions(p)
	point.ID, point.Place = fmt.Sprintf("durations@%d", p), sdk.Both
	return point
}

// PointID is the id of the point that counts the regions of a process.
func PointID(p sdk.Handle) string { return fmt.Sprintf("regions@%d", p) }

// Objective is what changes of OpenMP programs are judged by.
func Objective() sdk.Objective {
	return sdk.Objective{
		Name: "parallel_regions_per_second", Unit: "1/s",
		Description: "OpenMP parallel regions that are begun per second by the processes concerned on the node; a unit of the " +
			"program's work makes the same number of them with any number of threads, however they wait, so their rate stands for its speed",
	}
}
