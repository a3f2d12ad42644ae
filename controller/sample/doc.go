// SPDX-License-Identifier: Apache-2.0

// Package sample reads the signals of a process from /proc, at no cost to
// the program that is watched but the kernel's locks, and one from the memory of
// programs in Python.
//
// # What it costs
//
// Measured on the machine of FACTS (2 × EPYC, Linux 6.18), reading through a
// descriptor that is kept open, and with open and close each time:
//
//	stat        3.0 µs   8.0 µs
//	schedstat   0.8 µs   4.7 µs
//	status      6.3 µs  10.1 µs
//	io          1.5 µs   6.2 µs
//
// So descriptors are kept, up to a limit. A whole sample takes, in CPU time
// (BenchmarkSample, cpu-ns/op, on a busy machine):
//
//	1 thread         19 µs, 4 descriptors
//	8 threads        98 µs
//	64 threads      430 µs
//	256 threads     900 µs, 64 of them read in each round
//	2,000 threads  1600 µs, as before; half is the kernel's own sum over threads
//
// Parsing takes about 1 µs of that. prometheus/procfs opens each file anew and
// parses stat by reflection (fmt.Fscan), so it is not used here.
//
// The kernel sums CPU time and page faults over all threads, ended ones
// included, but neither run time, nor run-queue wait, nor context switches:
// /proc/PID/schedstat is that of the first thread. They are read per thread
// and summed here; what a thread had when it was last seen stays in the sum
// when it has ended, so sums never fall. A thread that lives between two
// samples only is not counted, nor is what a thread did after its last sample.
//
// Per thread, schedstat and stat are read in each round, but of
// threadsPerRound (64) threads at most, in turn: beyond that number run
// time and wait are as old as a turn is long, though their rise per round is
// right in the mean. status, which alone tells of switches and allowed CPUs, is
// read of new threads and of statusPerRound (4) more. The CPUs allowed
// are those of all threads together, since threads may be pinned apart.
//
// With details of threads all three files are read of the threads
// that are next in turn: some 12 µs more for each of them (BenchmarkSampleThreads).
//
// What belongs to a program may never answer (docs/design/0053): one goroutine at a
// time reads it, and a round waits for it no longer than 50 ms, once 0.5 s. The interpreter
// of a Python program is looked for once, which takes 0.7 ms, and only when it has run
// for 0.25 s; to read its counts takes some 2 µs in each round.
//
// A [Sampler] may be used by several goroutines; it has one mutex for the list
// of processes and one per process, the latter held while that one is read.
package sample
