// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/attune-hpc/attune/bench/internal/measure"
)

// Catalogue finds and builds the programs.
type Catalogue struct {
	// Sources is the folder of the workloads' sources.
	Sources string
	// Cache is the folder for what is built.
	Cache string
}

// Repository is the catalogue for commands that run at the top of the repository.
var Repository = Catalogue{Sources: "bench/workloads", Cache: ".cache/bench"}

// DebianPython is the interpreter that Debian's numpy belongs to; another one
// may come first in PATH.
const DebianPython = "/usr/bin/python3"

// NumpyStorm is numpy making temporaries of 1 MB.
func (c Catalogue) NumpyStorm(ctx context.Context) Storm {
	return Storm{
		Name: "numpy", Tunlet: "malloc", Unit: "it/s",
		Format: measure.Native(), BestSettings: bestMalloc,
		Missing: missingNumpy(ctx),
		command: func(seconds string) []string {
			return []string{DebianPython, c.source("numpy_storm.py"), seconds}
		},
	}
}

// LAMMPS is a small melt with twice as many ranks as cores.
func (c Catalogue) LAMMPS() Storm {
	return Storm{
		Name: "LAMMPS", Tunlet: "mpi-progress", Unit: "steps/s",
		Format: measure.LAMMPS(), BestSettings: bestMPI,
		Missing: missingCommand("lmp", "lammps", mpirun(), "openmpi-bin"),
		command: func(seconds string) []string {
			return append(oversubscribed(), "lmp", "-in", c.source("in.melt"), "-log", "none", "-var", "seconds", seconds)
		},
	}
}

// MallocStorm is malloc and free of large blocks in C.
func (c Catalogue) MallocStorm(ctx context.Context) Storm {
	program, missing := c.compile(ctx, "gcc", "malloc_storm")
	return Storm{
		Name: "malloc in C", Tunlet: "malloc", Unit: "it/s",
		Format: measure.Native(), BestSettings: bestMalloc, Missing: missing,
		command: func(seconds string) []string { return []string{program, seconds} },
	}
}

// MPIExchange is a small bulk-synchronous MPI program with twice as many ranks
// as cores.
func (c Catalogue) MPIExchange(ctx context.Context) Storm {
	program, missing := c.compile(ctx, "mpicc.openmpi", "mpi_exchange")
	if missing == "" {
		missing = missingCommand(mpirun(), "openmpi-bin")
	}
	return Storm{
		Name: "MPI in C", Tunlet: "mpi-progress", Unit: "it/s",
		Format: measure.Native(), BestSettings: bestMPI, Missing: missing,
		command: func(seconds string) []string { return append(oversubscribed(), program, seconds) },
	}
}

// Storms returns all programs with a problem.
func (c Catalogue) Storms(ctx context.Context) []Storm {
	return []Storm{c.MallocStorm(ctx), c.NumpyStorm(ctx), c.MPIExchange(ctx), c.LAMMPS()}
}

// Controls returns the programs without one. Each takes about ten seconds, as
// the storms do: what a start costs a shorter one is for bench/startup to say.
func (c Catalogue) Controls(ctx context.Context) []Control {
	compute, noCompute := c.compile(ctx, "gcc", "control_compute")
	threads, noThreads := c.compile(ctx, "gcc", "control_threads", "-pthread")
	exchange, noExchange := c.compile(ctx, "mpicc.openmpi", "mpi_exchange")
	sample, noSample := c.sampleFile(256 << 20)
	return []Control{
		{"arithmetic in C", []string{compute, "3500"}, noCompute},
		{"mutex and malloc in C", []string{threads, "11000"}, noThreads},
		{"python", []string{DebianPython, c.source("control_python.py"), "90"}, missingCommand(DebianPython, "python3-minimal")},
		{"sqlite", []string{"sqlite3", "-init", c.source("control_sqlite.sql"), ":memory:", ".quit"}, missingCommand("sqlite3", "sqlite3")},
		{"gzip", []string{"gzip", "--stdout", "-6", sample}, noSample},
		{"MPI, a core per rank", append(mpiRanks(runtime.NumCPU()), exchange, "60", "9000000"), noExchange},
	}
}

// StartupProbe returns a program that prints when its main began.
func (c Catalogue) StartupProbe(ctx context.Context) (string, error) {
	program, missing := c.compile(ctx, "gcc", "startup_main")
	if missing != "" {
		return "", fmt.Errorf("compile the probe: %s", missing)
	}
	return program, nil
}

// ProbedCalls returns a program that prints what calls of its functions cost,
// compiled with one more option if it is not empty.
func (c Catalogue) ProbedCalls(ctx context.Context, option string) (string, error) {
	flags := []string{"-fno-builtin", "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer", "-pthread"}
	if option != "" {
		c.Cache = filepath.Join(c.Cache, strings.TrimLeft(option, "-"))
		flags = append(flags, option, "-I", c.Sources)
	}
	if option == "-DTRACEPOINT" {
		flags = append(flags, "-llttng-ust", "-ldl")
	}
	program, missing := c.compile(ctx, "gcc", "probed_calls", flags...)
	if missing != "" {
		return "", fmt.Errorf("compile the program: %s", missing)
	}
	return program, nil
}

// UprobeFloor returns a program that calls functions under uprobes on demand.
func (c Catalogue) UprobeFloor(ctx context.Context) (string, error) {
	program, missing := c.compile(ctx, "gcc", "uprobe_floor")
	if missing != "" {
		return "", fmt.Errorf("compile the program: %s", missing)
	}
	return program, nil
}

// EventSource returns a program that calls a library function at a given rate.
func (c Catalogue) EventSource(ctx context.Context) (string, error) {
	program, missing := c.compile(ctx, "gcc", "event_source", "-fno-builtin", "-pthread")
	if missing != "" {
		return "", fmt.Errorf("compile the program: %s", missing)
	}
	return program, nil
}

// KernelEventSource returns the same program with a function that only the
// kernel can watch: DMLib does not come into what is linked statically.
func (c Catalogue) KernelEventSource(ctx context.Context) (string, error) {
	c.Cache = filepath.Join(c.Cache, "static")
	program, missing := c.compile(ctx, "gcc", "event_source", "-DKERNEL", "-static", "-pthread")
	if missing != "" {
		return "", fmt.Errorf("compile the program: %s", missing)
	}
	return program, nil
}

// Entered returns a program that checks what its memory holds while somebody
// enters it.
func (c Catalogue) Entered(ctx context.Context) (string, error) {
	program, missing := c.compile(ctx, "gcc", "entered", "-pthread")
	if missing != "" {
		return "", fmt.Errorf("compile the program: %s", missing)
	}
	return program, nil
}

// ManyFunctions returns a program that calls a hundred functions of its own and
// a hundred of a library beside it all the time.
func (c Catalogue) ManyFunctions(ctx context.Context) (string, error) {
	c.Cache = filepath.Join(c.Cache, "many")
	library, missing := c.compile(ctx, "gcc", "many_library", "-shared", "-fPIC", "-Wl,-soname,libmany.so")
	if missing == "" {
		named := filepath.Join(c.Cache, "libmany.so")
		if err := os.Rename(library, named); err != nil {
			return "", err
		}
		var program string
		if program, missing = c.compile(ctx, "gcc", "many_functions", named, "-Wl,-rpath,$ORIGIN"); missing == "" {
			return program, nil
		}
	}
	return "", fmt.Errorf("compile the program: %s", missing)
}

// ManyCalls is python using many of its own functions all the time.
func (c Catalogue) ManyCalls() []string {
	return []string{DebianPython, c.source("many_calls.py")}
}

func (c Catalogue) source(name string) string { return filepath.Join(c.Sources, name) }

// mpirun is Open MPI's, also where MPICH is the default.
func mpirun() string {
	if _, err := exec.LookPath("mpirun.openmpi"); err == nil {
		return "mpirun.openmpi"
	}
	return "mpirun"
}

func oversubscribed() []string { return mpiRanks(2 * runtime.NumCPU()) }

// mpiRanks is mpirun for ranks on this machine. The host list claims a slot
// for every rank, as a host file that counts hardware threads, or was written
// for another machine, does: Open MPI then believes it and lets idle ranks
// spin. With --oversubscribe, or fewer slots than ranks, it would notice and
// let them yield.
func mpiRanks(n int) []string {
	ranks := strconv.Itoa(n)
	return []string{mpirun(), "--allow-run-as-root", "--host", "localhost:" + ranks, "--bind-to", "none", "-np", ranks}
}

// missingCommand takes pairs of a command and its Debian package.
func missingCommand(pairs ...string) string {
	for i := 0; i+1 < len(pairs); i += 2 {
		if _, err := exec.LookPath(pairs[i]); err != nil {
			return fmt.Sprintf("%s is not installed (apt-get install %s)", pairs[i], pairs[i+1])
		}
	}
	return ""
}

func missingNumpy(ctx context.Context) string {
	if err := exec.CommandContext(ctx, DebianPython, "-c", "import numpy").Run(); err != nil {
		return "numpy is not installed (apt-get install python3-numpy)"
	}
	return ""
}

// compile builds a C program and returns its path, or why it cannot be built.
func (c Catalogue) compile(ctx context.Context, compiler, name string, flags ...string) (program, missing string) {
	packages := map[string]string{"gcc": "gcc", "mpicc.openmpi": "libopenmpi-dev"}
	if missing := missingCommand(compiler, packages[compiler]); missing != "" {
		return "", missing
	}
	if err := os.MkdirAll(c.Cache, 0o755); err != nil {
		return "", err.Error()
	}
	program = filepath.Join(c.Cache, name)
	args := append([]string{"-O2", "-o", program, c.source(name + ".c")}, flags...)
	if out, err := exec.CommandContext(ctx, compiler, args...).CombinedOutput(); err != nil {
		return "", fmt.Sprintf("%s: %v: %s", compiler, err, out)
	}
	return program, ""
}
