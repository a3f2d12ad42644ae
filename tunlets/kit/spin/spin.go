// SPDX-License-Identifier: Apache-2.0

// Package spin tells threads that spin while they wait from those that sleep or
// yield, by the CPU time between their context switches.
package spin

// MaxVoluntary is the voluntary switches per CPU second up to which threads count as
// ones that never sleep.
const MaxVoluntary = 400

// leastSlice is how long, in seconds, threads that spin keep a CPU on the average:
// until their time slice ends or something else preempts them. Measured with LAMMPS,
// 4 ranks on 2 CPUs at HZ=250, on an idle and on a busy machine: 240 us to 4 ms when
// they spin, 2 to 56 us when they yield already.
const leastSlice = 125e-6

// Detect says that threads keep their CPUs until the scheduler takes them away: run is
// the CPU seconds that they get, voluntary and involuntary their context switches,
// each per second. They are judged by CPU time, since threads on a busy machine do
// everything less often.
func Detect(run, voluntary, involuntary float64) bool {
	return run > 0 && voluntary <= MaxVoluntary*run && (voluntary+involuntary)*leastSlice <= run
}
