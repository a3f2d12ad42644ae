// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"math"

	"github.com/attune-hpc/attune/controller/actuate/hidden"
)

// Ways back.
const (
	backWords = "exact: the words that were replaced, also after a controller that died"
	backCall  = "exact: the value that was read before, by the same call, also after a controller that died"
)

// byCall is how calls are made.
const byCall = ", by DMLib at an allocation hook, or without DMLib by a thread that is stopped"

func glibcSettings() []Setting {
	const (
		way  = "mallopt(3), called by DMLib at an allocation hook; without DMLib the parameter is written in place"
		back = backWords + ", the dynamic threshold included; where the parameters cannot be found, the default"
		has  = "glibc, where it is the program's allocator"
	)
	return []Setting{
		{
			Name: "glibc.malloc.mmap_threshold", Min: 0, Max: 32 << 20, Default: "131072", Has: has, WayIn: way, WayBack: back,
			Description: "Bytes from which malloc maps a block of its own, and unmaps it at free. " +
				"Setting it turns glibc's dynamic threshold off. 32 MiB is the most that glibc takes.",
			method: mallopt{option: -3, parameter: hidden.MallocMmapThreshold(), standard: 128 << 10},
		},
		{
			Name: "glibc.malloc.trim_threshold", Min: 0, Max: 1<<31 - 1, Default: "131072", Has: has, WayIn: way, WayBack: back,
			Description: "Bytes free at the top of the heap from which free gives memory back to the kernel.",
			method:      mallopt{option: -1, parameter: hidden.MallocTrimThreshold(), standard: 128 << 10},
		},
		{
			Name: "glibc.malloc.top_pad", Min: 0, Max: 1<<31 - 1, Default: "0", Has: has, WayIn: way, WayBack: back,
			Description: "Bytes that malloc asks the kernel for beyond what it needs.",
			method:      mallopt{option: -2, parameter: hidden.MallocTopPad()},
		},
	}
}

func stdioSettings() []Setting {
	const (
		has = "glibc; a stream to a file or a pipe, of NAME@DESCRIPTOR, else standard output"
		way = "setvbuf(3), under the stream's lock, by a thread that is stopped where it does not use the stream"
		bck = "exact: the buffer that it had, when what the new one holds is written; also after a controller that died"
	)
	return []Setting{
		{
			Name: "glibc.stdio.size", Min: 512, Max: mostBuffer, Default: "4096", Has: has, WayIn: way, WayBack: bck,
			Description: "Bytes that a stream holds back before it writes them. What it holds for 0.1 s is written while the command runs.",
			method:      stdio{size: true}, descriptors: true, on: standardOutput,
		},
		{
			Name: "glibc.stdio.mode", Min: int64(fullBuffer), Max: int64(noBuffer), Default: "line for terminals, none for standard error, else full",
			Description: "Whether a stream writes when its buffer is full, at each end of a line, or at once.",
			Has:         has + "; full only where nobody else writes there", WayIn: way, WayBack: bck,
			method: stdio{}, descriptors: true, on: standardOutput, words: bufferModes,
		},
	}
}

func gompSettings() []Setting {
	return []Setting{{
		Name: "gomp.spin_count", Min: 0, Max: 30_000_000_000, Default: "300000",
		Description: "Turns that a waiting thread spins before it sleeps, as GOMP_SPINCOUNT. " +
			"Applies while there are no more threads than CPUs; libgomp spins 100 turns at most beyond that.",
		Has: "libgomp (GCC)", WayIn: "written in place: one word that each wait reads", WayBack: backWords,
		method: inPlace{object: "libgomp", variable: hidden.GOMPSpinCount(), most: math.MaxUint64},
	}}
}

func ompSettings() []Setting {
	ompThreads := functions{set: "omp_set_num_threads", get: "omp_get_max_threads"}
	const way = "in the program's first thread" + byCall
	return []Setting{
		{
			Name: "omp.num_threads", Min: 1, Max: 1 << 16, Default: "CPUs that the process may use",
			Description: "Threads of the next parallel regions that the first thread begins and that do not say their number. " +
				"Refused where a program may divide its work by the numbers of its threads, and so would leave some out.",
			Has: "libgomp, LLVM's libomp, Intel's libiomp5",
			WayIn: "omp_set_num_threads, " + way + "; in libgomp without DMLib it is written in place, " +
				"for threads that never set a number themselves",
			WayBack: backCall,
			method: sharesWork{firstOf{
				withDMLib{byCalls{ompThreads}},
				inPlace{object: "libgomp", variable: hidden.GOMPThreads(), most: 1 << 20, doubtful: true},
				byCalls{functions{set: ompThreads.set, get: ompThreads.get, stopped: true}},
			}},
		},
		{
			Name: "omp.dynamic", Min: 0, Max: 1, Default: "0",
			Description: "Lets the run-time give the first thread's parallel regions fewer threads when the machine is busy (1).",
			Has:         "libgomp, LLVM's libomp, Intel's libiomp5", WayIn: "omp_set_dynamic, " + way, WayBack: backCall,
			method: byCalls{functions{set: "omp_set_dynamic", get: "omp_get_dynamic"}},
		},
		{
			Name: "kmp.blocktime", Min: 0, Max: math.MaxInt32, Default: "200",
			Description: "Milliseconds that threads wait at the end of a parallel region before they sleep, as KMP_BLOCKTIME; 2147483647: for ever.",
			Has:         "LLVM's libomp, Intel's libiomp5", WayIn: "kmp_set_blocktime, " + way, WayBack: backCall,
			method: byCalls{functions{set: "kmp_set_blocktime", get: "kmp_get_blocktime"}},
		},
	}
}

func jemallocSettings() []Setting {
	const (
		way = "mallctl(3)" + byCall
		has = "jemalloc 5, preloaded or linked, where mallctl has a dynamic symbol"
	)
	return []Setting{
		{
			Name: "jemalloc.dirty_decay_ms", Min: -1, Max: math.MaxInt32, Default: "10000", Has: has, WayBack: backCall + "; of each arena its own",
			Description: "Milliseconds after which unused pages are given back to the kernel, in every arena and those to come; -1: never, 0: at once.",
			WayIn:       way + ", for each arena",
			method:      byCalls{mallctl{name: "arenas.dirty_decay_ms", arena: "dirty_decay_ms", size: 8}},
		},
		{
			Name: "jemalloc.muzzy_decay_ms", Min: -1, Max: math.MaxInt32, Default: "0", Has: has, WayBack: backCall + "; of each arena its own",
			Description: "Milliseconds after which pages that the kernel may take when it needs them are given back for good; -1: never, 0: at once.",
			WayIn:       way + ", for each arena",
			method:      byCalls{mallctl{name: "arenas.muzzy_decay_ms", arena: "muzzy_decay_ms", size: 8}},
		},
		{
			Name: "jemalloc.background_thread", Min: 0, Max: 1, Default: "0", Has: has, WayIn: way, WayBack: backCall,
			Description: "Threads of jemalloc's own give pages back, instead of those that allocate (1).",
			method:      byCalls{mallctl{name: "background_thread", size: 1}},
		},
	}
}

func tcmallocSettings() []Setting {
	return []Setting{
		{
			Name: "tcmalloc.max_total_thread_cache_bytes", Min: 512 << 10, Max: 1 << 30, Default: "33554432",
			Description: "Bytes that the caches of all threads may hold together. 1 GiB is the most that tcmalloc takes.",
			Has:         "tcmalloc of gperftools", WayIn: "MallocExtension_SetNumericProperty" + byCall, WayBack: backCall,
			method: byCalls{numericProperty("tcmalloc.max_total_thread_cache_bytes")},
		},
		{
			Name: "tcmalloc.aggressive_memory_decommit", Min: 0, Max: 1, Default: "0",
			Description: "Gives free memory back to the kernel at once (1).",
			Has:         "tcmalloc of gperftools", WayIn: "MallocExtension_SetNumericProperty" + byCall, WayBack: backCall,
			method: byCalls{numericProperty("tcmalloc.aggressive_memory_decommit")},
		},
	}
}

func pythonSettings() []Setting {
	const (
		has = "CPython 3.11 and later, not embedded in another program; the main interpreter"
		way = "written in place: one word that the interpreter reads each time"
	)
	threshold := func(generation int, name, standard, description string) Setting {
		return Setting{
			Name: "python.gc." + name, Min: 0, Max: math.MaxInt32, Default: standard, Has: has, WayIn: way, WayBack: backWords,
			Description: description, method: inPlace{object: pythonObject, variable: hidden.PythonThreshold(generation), most: math.MaxInt32},
		}
	}
	return []Setting{
		threshold(0, "threshold0", "700; 2000 since 3.14", "Containers allocated beyond those freed after which the youngest generation is collected; 0: never."),
		threshold(1, "threshold1", "10", "Collections of the youngest generation after which the middle one is collected; in 3.14, the larger the slower old objects are looked through."),
		threshold(2, "threshold2", "10", "Collections of the middle generation after which the oldest is collected; 3.14 ignores it."),
		{
			Name: "python.switch_interval_us", Min: 1, Max: 10_000_000, Default: "5000", Has: has, WayIn: way, WayBack: backWords,
			Description: "Microseconds that a thread runs before others may ask it for the interpreter's lock, as sys.setswitchinterval.",
			method:      inPlace{object: pythonObject, variable: hidden.PythonSwitchInterval(), most: 1_000_000_000},
		},
	}
}
