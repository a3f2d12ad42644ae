// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"context"
	"fmt"
	"strings"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/internal/objfile"
)

// sharesWork is a setting of how many threads a parallel region has. It is
// refused where a program may divide its work by threads itself, for a number that
// it found out before: with fewer threads, a part of the work would not be done.
type sharesWork struct{ method }

func (m sharesWork) plan(ctx context.Context, r *settingRequest) (*actuate.Plan, error) {
	images, err := r.Process.Images()
	if err != nil {
		return nil, err
	}
	for _, image := range images {
		if err := r.knowledge.takesAnyNumber(image); err != nil {
			return nil, fmt.Errorf("%w: %s: %s %w; start it with OMP_NUM_THREADS=%d instead", access.ErrRefused, r.setting.Name, image.Name(), err, r.value)
		}
	}
	return m.method.plan(ctx, r)
}

// Functions of an OpenMP run-time that a function calls if it shares the work of
// a loop or of sections with the threads that there are, whichever number: the
// compilers have them called by the code of a loop, also where its parts are fixed
// in advance. threadNumber is what asks for the number of the own part.
var (
	threadNumber = []string{"omp_get_thread_num", "omp_get_thread_num_"}
	sharing      = []string{
		"omp_get_num_threads", "omp_get_num_threads_", "GOMP_loop_*", "GOMP_sections_*", "GOMP_single_*", "GOMP_taskloop*",
		"__kmpc_for_static_*", "__kmpc_dispatch_*", "__kmpc_dist_*", "__kmpc_single", "__kmpc_taskloop*",
	}
)

// mappedFile names a file that processes have mapped, while one of them has.
type mappedFile struct {
	path          string
	device, inode uint64
}

// maxFilesRead bounds what is remembered of files: a node's service runs for long.
const maxFilesRead = 1024

// takesAnyNumber says why an object may not do with any number of threads. To read
// the code of a large library takes 100 ms, and a change is made several times to
// prove what it gains: each file is read once.
func (n *knowledge) takesAnyNumber(image objfile.Image) error {
	file := mappedFile{image.Path, image.Device, image.Inode}
	n.mu.Lock()
	err, known := n.filesRead[file]
	n.mu.Unlock()
	if known {
		return err
	}
	err = takesAnyNumber(image)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.filesRead == nil || len(n.filesRead) >= maxFilesRead {
		n.filesRead = make(map[mappedFile]error)
	}
	n.filesRead[file] = err
	return err
}

func takesAnyNumber(image objfile.Image) error {
	if isLibrary(image, "libgomp") || isLibrary(image, "libomp") || isLibrary(image, "libiomp5") || image.Matches("libattune-dm*") {
		return nil
	}
	file, err := image.Open()
	if err != nil {
		return err
	}
	defer file.Close()
	return dividesByNumber(file)
}

// dividesByNumber says why an object may divide work by the threads' numbers: it
// has a function that asks for its thread's number, while neither it nor all of
// those that call it ask how many threads there are or have the run-time share a
// loop. (A number as the index of memory of one's own, within such a loop, does no
// harm.)
func dividesByNumber(file *objfile.File) error {
	slots, err := file.GOTSlots(threadNumber...)
	if err != nil || len(slots) == 0 {
		return nil //nolint:nilerr // what has no dynamic section calls no library
	}
	graph, err := file.Calls(append(threadNumber, sharing...)...)
	if err != nil {
		return fmt.Errorf("asks for numbers of threads, and it cannot be told where: %w", err)
	}
	for _, slot := range slots {
		if !graph.Called[slot.Symbol] {
			return fmt.Errorf("calls %s through a pointer: what for cannot be told", slot.Symbol)
		}
		if function, ok := partsOf(graph, slot.Symbol); ok {
			return fmt.Errorf("may divide work by the numbers of threads (%s, in the function at %#x, without their count): with another count, parts would be left out",
				slot.Symbol, function)
		}
	}
	return nil
}

// partsOf finds a function that asks for its thread's number by the given
// function, and for which a caller, or nobody, knows of the others.
func partsOf(graph *objfile.CallGraph, name string) (function uint64, found bool) {
	for caller, calls := range graph.Imported {
		if calls[name] && !shared(graph, caller, make(map[uint64]bool)) {
			return caller, true
		}
	}
	return 0, false
}

// shared says that a function, or all that call it, share work with however many
// threads there are. Who is called by nobody directly is a parallel region, or may
// be called from one.
func shared(graph *objfile.CallGraph, function uint64, seen map[uint64]bool) bool {
	for name := range graph.Imported[function] {
		if !strings.HasPrefix(name, threadNumber[0]) {
			return true
		}
	}
	if seen[function] {
		return true // its other callers decide
	}
	seen[function] = true
	callers := graph.Callers[function]
	for caller := range callers {
		if !shared(graph, caller, seen) {
			return false
		}
	}
	return len(callers) > 0
}

// regionEntry is where the process begins parallel regions: a thread that comes
// there holds no lock, and is in none unless regions are nested. nil where that is
// not known.
func regionEntry(process access.Process, runtime objfile.Image) *objfile.Resolved {
	images, err := process.Images()
	if err != nil {
		return nil
	}
	for _, begin := range []string{"__kmpc_fork_call", "GOMP_parallel", "GOMP_parallel_loop_*"} {
		for _, image := range images {
			slots, err := image.GOTSlots(begin)
			if err != nil || len(slots) == 0 || image.Path == runtime.Path {
				continue
			}
			if symbol, err := runtime.Symbol(slots[0].Symbol, objfile.Function); err == nil {
				return &objfile.Resolved{Address: runtime.Address(symbol.Value), Symbol: symbol, Image: runtime}
			}
		}
	}
	return nil
}
