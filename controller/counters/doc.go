// SPDX-License-Identifier: Apache-2.0

// Package counters is the source of what the kernel and the processor count of each
// thread of a process (perf_event_open).
//
// Three groups of events are opened for a thread: software events; software events of
// the kernel's side, where this user may count there; and the processor's events,
// where it has counters that are not others'. The events of a group count over the
// same time. A processor that has more events to count than counters takes turns
// (multiplexing): a group says for how long it was wanted and for how long it counted,
// and what it counted is as it was, not scaled.
//
// Counting begins when a thread is first read. Counters are not inherited: a thread
// that is started later has its own from the next round on.
//
// A descriptor is taken for each event of each thread. Threads are bounded for each
// process, descriptors for all of them together, and both are given back when nobody
// wants the table of a process any more, at the latest when it ends. A Counters
// belongs to one goroutine.
package counters
