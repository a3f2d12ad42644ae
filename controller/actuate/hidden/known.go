// SPDX-License-Identifier: Apache-2.0

package hidden

// Markers of variables as wide as these. They are no address, no text, and
// within what the functions that take them accept.
func wide() []uint64   { return []uint64{0x1234560, 0xfedcb0, 0x1a2b3c0} }
func narrow() []uint64 { return []uint64{15485863, 7654321, 9786543} }

// MallocTrimThreshold and the next three are fields of glibc's mp_.
func MallocTrimThreshold() Variable { return mallopt("mp_.trim_threshold", -1) }

// MallocTopPad is mp_.top_pad.
func MallocTopPad() Variable { return mallopt("mp_.top_pad", -2) }

// MallocMmapThreshold is mp_.mmap_threshold.
func MallocMmapThreshold() Variable { return mallopt("mp_.mmap_threshold", -3) }

// MallocNoDynThreshold is mp_.no_dyn_threshold, an int close behind the
// thresholds, which the first mallopt sets.
func MallocNoDynThreshold() Variable {
	v := mallopt("mp_.no_dyn_threshold", -1)
	v.Size = 4
	v.Flag = &Neighbour{Variable: MallocTrimThreshold(), Within: 160}
	return v
}

func mallopt(name string, parameter int64) Variable {
	return Variable{Name: name, Size: 8, Markers: wide(), Call: "mallopt", Arguments: []int64{parameter, Marker}}
}

// GOMPSpinCount is libgomp's gomp_spin_count_var, an unsigned long long.
func GOMPSpinCount() Variable {
	return Variable{Name: "gomp_spin_count_var", Size: 8, Markers: wide(), Environment: "GOMP_SPINCOUNT"}
}

// GOMPThreads is the number of threads in libgomp's gomp_global_icv, an
// unsigned long: that of threads that set none for themselves.
func GOMPThreads() Variable {
	return Variable{Name: "gomp_global_icv.nthreads_var", Size: 8, Markers: []uint64{50021, 40009, 61001}, Environment: "OMP_NUM_THREADS"}
}

// python runs a statement and waits.
func python(name string, size uint32, statement string) Variable {
	return Variable{
		Name: name, Size: size, Markers: narrow(), Program: "python*",
		Script: []string{"-I", "-S", "-c", "import gc, sys; " + statement + "; print('ready', flush=True); sys.stdin.read()"},
	}
}

// PythonSwitchInterval is the interval of CPython's GIL in microseconds, an
// unsigned long.
func PythonSwitchInterval() Variable {
	return python("gil.interval", 8, "sys.setswitchinterval(%d / 1000000)")
}

// PythonThreshold is the int threshold of a generation of CPython's garbage
// collector, 0 to 2.
func PythonThreshold(generation int) Variable {
	statements := []string{
		"gc.set_threshold(%d, 11, 12)", "gc.set_threshold(701, %d, 12)", "gc.set_threshold(701, 11, %d)",
	}
	names := []string{"gc.generations[0].threshold", "gc.generations[1].threshold", "gc.generations[2].threshold"}
	return python(names[generation], 4, statements[generation])
}
