// SPDX-License-Identifier: Apache-2.0

// Package sample reads the signals of attunev1.Signal from /proc, at no cost to
// the program that is watched but the kernel's locks.
//
// # What it costs
//
// Measured on the machine of FACTS (2 × EPYC, Linux 6.18), reading through a
// descriptor that is kept open, and with open and close each time:
//
//	stat        3.0 µs   8.0 µs
//	schedstat   0.8 µs   4.7 µs
//	status      6.3 µs  10.1 µs
//
// So descriptors are kept, up to a limit: a process with one thread costs
// three of them and about 13 µs a sample. Parsing by hand takes 0.5 µs of
// that; prometheus/procfs parses stat by fmt.Sscan in more time than the
// kernel needs to write it, and is therefore not used here.
//
// The kernel sums CPU time and page faults over all threads, ended ones
// included, but neither run time, nor run-queue wait, nor context switches:
// /proc/PID/schedstat is that of the first thread. They are read per thread
// and summed here; what a thread had when it was last seen stays in the sum
// when it has ended, so sums never fall. A thread that lives between two
// samples only is not counted, nor is what a thread did after its last sample.
//
// Per thread, schedstat and stat are read in each round, 3.5 µs, but of
// [Options.ThreadsPerRound] threads at most, in turn: beyond that number run
// time and wait are as old as the turn is long. status, which alone tells of
// switches and allowed CPUs, is read of new threads and of
// [Options.StatusPerRound] more.
//
// A [Sampler] may be used by several goroutines; it has one mutex for the list
// of processes and one per process, the latter held while that one is read.
package sample
