// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/actuate/system"
	"github.com/attune-hpc/attune/controller/inject"
	"github.com/attune-hpc/attune/internal/objfile"
)

// collective is an operation that no rank leaves before all have entered it, unless
// it is about no data: it is passed how many elements there are. Where every rank of
// a communicator stands at the entry of one, all stand at the same call: a rank that
// was further would have left a call that another one has not entered.
type collective struct {
	function string
	count    int // index of the parameter; -1: it is about no data in any case
	comm     int
}

// collectives are waited for; more than four there are no registers for. The count
// of the last two is what is received: what is sent does not count in place. The
// names of the profiling interface share the code with the others, and are called
// by whoever wraps these.
func collectives() []collective {
	return []collective{
		{"PMPI_Allreduce", 2, 5},
		{"PMPI_Barrier", -1, 0},
		{"PMPI_Alltoall", 4, 6},
		{"PMPI_Allgather", 4, 6},
	}
}

// mpiFunctions are those that are called.
func mpiFunctions() []string {
	return []string{
		"PMPI_Query_thread", "PMPI_Comm_rank", "PMPI_Comm_size", "PMPI_Type_get_name",
		"MPI_T_init_thread", "MPI_T_cvar_get_num", "MPI_T_cvar_get_index", "MPI_T_cvar_get_info",
		"MPI_T_enum_get_info", "MPI_T_enum_get_item",
		"MPI_T_cvar_handle_alloc", "MPI_T_cvar_handle_free", "MPI_T_cvar_read", "MPI_T_cvar_write",
	}
}

// mpiLibrary is the MPI library of a process, as far as it is known without a stop.
type mpiLibrary struct {
	functions   map[string]uint64
	entries     []uint64 // of the collectives
	collectives []collective
	world       uint64 // MPI_COMM_WORLD
	worldMask   uint64
}

// MPI_COMM_WORLD is a number in MPICH and its descendants, part of their common
// ABI, and the address of a variable in Open MPI.
const (
	mpichWorld      = 0x44000000
	openMPIWorld    = "ompi_mpi_comm_world"
	handleIsInt     = 1<<32 - 1
	handleIsPointer = ^uint64(0)
	multipleThreads = 3 // MPI_THREAD_MULTIPLE in both
)

// mpiHas tells an MPI library with control variables, from MPI 3 on.
const mpiHas = "MPI_T_cvar_write"

// findMPI looks for the library.
func findMPI(process access.Process) (*mpiLibrary, error) {
	has, err := access.LookupSingle(process, mpiHas)
	if errors.Is(err, access.ErrAbsent) {
		return nil, fmt.Errorf("%w: no MPI library with control variables is loaded: name the ranks of an MPI job, or its launcher", access.ErrAbsent)
	}
	if err != nil {
		return nil, err
	}
	l := &mpiLibrary{functions: make(map[string]uint64), world: mpichWorld, worldMask: handleIsInt, collectives: collectives()}
	for _, name := range mpiFunctions() {
		if l.functions[name], err = addressIn(has.Image, name); err != nil {
			return nil, err
		}
	}
	for _, c := range l.collectives {
		entry, err := addressIn(has.Image, c.function)
		if err != nil {
			return nil, err
		}
		l.entries = append(l.entries, entry)
	}
	err = l.findWorld(process)
	return l, err
}

func addressIn(image objfile.Image, function string) (uint64, error) {
	symbol, err := image.Symbol(function, objfile.Function)
	if err != nil {
		return 0, fmt.Errorf("%s has %s without %s: %w", image.Name(), mpiHas, function, err)
	}
	return image.Address(symbol.Value), nil
}

// findWorld looks for the variable, in the order in which the loader does: the
// program may have a copy of it, and then that is the one that counts.
func (l *mpiLibrary) findWorld(process access.Process) error {
	images, err := process.Images()
	if err != nil {
		return err
	}
	for _, image := range images {
		if symbol, err := image.Symbol(openMPIWorld, objfile.Variable); err == nil {
			l.world, l.worldMask = image.Address(symbol.Value), handleIsPointer
			return nil
		}
	}
	return nil
}

// suits says whether a thread stands before a call that all ranks of the job enter
// before one leaves it, as far as that can be told. Not seen is a type of data that
// has no bytes. Where the kernel's probes serve as breakpoints, the last two
// collectives are never recognised.
func (l *mpiLibrary) suits(v *inject.Visit) bool {
	c := l.collectives[v.At()]
	comm, err := v.Argument(c.comm)
	if err != nil || comm&l.worldMask != l.world {
		return false
	}
	if c.count < 0 {
		return true
	}
	count, err := v.Argument(c.count)
	return err == nil && int32(count) > 0
}

// mpiFacts is what a rank says of itself and of a variable.
type mpiFacts struct {
	rank, ranks int
	scope       int
	size        int // bytes
	words       map[string]int64
	old         int64
}

// mpiTypes are the types of variables that are changed, by their size.
var mpiTypes = map[string]int{
	"MPI_INT": 4, "MPI_UNSIGNED": 4, "MPI_UNSIGNED_LONG": 8, "MPI_UNSIGNED_LONG_LONG": 8, "MPI_COUNT": 8, "MPI_C_BOOL": 1,
}

// describedValue is what begins the description of a value in MPICH's texts: its
// name, and a dash between spaces.
var describedValue = regexp.MustCompile(`([a-zA-Z0-9_]+) +- `)

// describedWords are the names of the values of MPICH's choices of algorithms, which
// have them in their descriptions only, in the order of their numbers. Some versions
// leave out the ends of the lines, so that a name begins where the word before it
// ends, "algorithm" in each.
func describedWords(name, description string) map[string]int64 {
	if !strings.HasPrefix(name, "MPIR_CVAR_") || !strings.HasSuffix(name, "_ALGORITHM") {
		return nil
	}
	words := make(map[string]int64)
	apart := strings.NewReplacer("-based algorithms", "\n", "algorithm", "\n").Replace(description)
	for i, match := range describedValue.FindAllStringSubmatch(apart, -1) {
		words[match[1]] = int64(i)
	}
	return words
}

// parse reads a value as people write it.
func (f mpiFacts) parse(name, text string) (int64, error) {
	if value, ok := f.words[text]; ok {
		return value, nil
	}
	value, err := system.ParseSize(text)
	if err != nil {
		return 0, cmp.Or(f.check(name, text, false), fmt.Errorf("%s takes a whole number, not %q", name, text))
	}
	known := false
	for _, number := range f.words {
		known = known || number == value
	}
	if err := f.check(name, text, known); err != nil {
		return 0, err
	}
	if shift := 64 - 8*f.size; value != value<<shift>>shift {
		return 0, fmt.Errorf("%d does not fit into %s, which has %d bytes", value, name, f.size)
	}
	return value, nil
}

// check refuses a value of an enumeration that it does not have.
func (f mpiFacts) check(name, text string, known bool) error {
	if known || len(f.words) == 0 {
		return nil
	}
	words := slices.SortedFunc(maps.Keys(f.words), func(x, y string) int { return cmp.Compare(f.words[x], f.words[y]) })
	for i, word := range words {
		words[i] = fmt.Sprintf("%s (%d)", word, f.words[word])
	}
	return fmt.Errorf("%s takes %s, not %q", name, strings.Join(words, ", "), text)
}
