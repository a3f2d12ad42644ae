// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strconv"

	"github.com/attune-hpc/attune/bench/internal/measure"
)

// Storm is a program with a problem. It runs for a given time, so that the
// slow state takes no longer than the fast one.
type Storm struct {
	// Name is how the tables call it.
	Name string
	// Tunlet is the tunlet that mends it.
	Tunlet string
	// Unit is the unit of its rate.
	Unit string
	// Format reads its output.
	Format measure.Format
	// BestSettings is the best setting that can be given before it starts, as
	// entries of the environment.
	BestSettings []string
	// Missing says why it cannot run here; empty when it can.
	Missing string

	command func(seconds string) []string
}

// Command returns the command line for a run of the given length.
func (s Storm) Command(seconds float64) []string {
	return s.command(strconv.FormatFloat(seconds, 'f', -1, 64))
}

// Control is a program without a problem and with a fixed amount of work.
type Control struct {
	// Name is how the tables call it.
	Name string
	// Command is its command line.
	Command []string
	// Missing says why it cannot run here; empty when it can.
	Missing string
}

// bestMalloc keeps all memory that was once given: what mallopt would set.
// 32 MB is the largest threshold that glibc takes.
var bestMalloc = []string{"GLIBC_TUNABLES=glibc.malloc.mmap_threshold=33554432" +
	":glibc.malloc.trim_threshold=1073741824:glibc.malloc.top_pad=67108864"}

var bestMPI = []string{"OMPI_MCA_mpi_yield_when_idle=1"}
