// SPDX-License-Identifier: Apache-2.0

// Package track knows which processes belong to a job, from the first image
// to the last exit, and tells a [Handler] about each image once.
//
// A process belongs to the job if it was named by Follow or registered through
// DMLib, if its parent belonged, if it carries ATTUNE_JOB with the job's id
// (so also when it was re-parented), or if it lives in a session that a
// process of the job leads. It does not belong if it carries another job's id,
// or ATTUNE=off, if it is Attune itself, or a child of such an Attune.
//
// What happens is learned from a [Source]: BPF ([FromBPF]), or the kernel's
// process connector ([NewConnector]), which works without privileges on
// Linux 6.6 and later. Without a source, and slowly beside one, /proc is
// scanned: that finds re-parented processes and heals what was lost, but
// alone it misses most processes that live shorter than its interval.
//
// A fork that is followed by an exec at once is no image worth telling:
// forked processes are told of when they exec, register, exit, or have lived
// for [Grace]. If two execs follow each other faster than /proc can be read,
// only the last image is seen.
//
// What most processes are too short-lived for is put off: the list of objects
// is read 10 ms after an image was told of, or on Refresh, and is empty until then.
//
// # Files
//
// The files have an order. A file uses those below it, and those after it in its line:
//
//	tracker                             the goroutines, and what others may ask
//	requests, state                     what is asked for, what happens
//	scan, refresh                       what nobody tells, what becomes known later
//	admit                               who belongs to the job
//	image                               what the Handler is told
//	members, outsiders                  who belongs, who does not
//	due, digest, member                 when to look at whom; sums of executables; a process
//	programs, usable, describe, job     what is found out about a process
//	belongings                          what may never answer, read by helpers
//	environ, procfs, variables, clock   what /proc tells
//	options                             what a Tracker is given
//	feed                                the source, while it tells
//	connector, wire, bpfsource, event   where events come from
//
// # Goroutines
//
// All state is that of the type state, with all that it has, and belongs to one
// goroutine of Run; there is no lock. Everybody else posts a closure to that goroutine
// and waits for it. Handlers are called by it, one call at a time and in order, so they
// must neither block nor call the Tracker's methods. Reading /proc for one process
// (0.06 ms) happens there, too, between events that wait in the source meanwhile, or
// waits there for helpers that do it (package readers); hashing executables does not.
package track
