// SPDX-License-Identifier: Apache-2.0

// Package shm is the memory file of one process, seen from the Application
// Controller: it creates and seals the file, sets the control words of measure
// points, drains the per-thread rings, reads the aggregates and runs commands
// through the mailbox. The layout is declared in
// dmlib/include/attune/dmlib_abi.h, from which package dmlib/abi is generated.
//
// # Trust
//
// The application can write every byte of the file at any time. Whatever is
// read from it is untrusted: indices are checked against the controller's own
// geometry (never against the header, which the application could change),
// counters that cannot be right end the use of that slot and are counted, and
// numbers that are merely wrong stay numbers. Nothing the application writes
// makes this package panic or touch memory outside the mapping, or pages that nobody
// has written (presence).
//
// # Parts
//
// A Memory is made of parts, which stand side by side on the mapping and may be held
// alone: [Points] sets measure points and reads their aggregates; [Rings] drains
// records; [Mailbox] posts commands, and [Executor] above it waits for them, with the
// attendant's help; [Children] answers forked children. Points and Rings share the
// ownership of local points, which says whose a record is.
//
// # Locking
//
// A Memory and its parts may be used by several goroutines at once. The locks, in
// the order in which they are taken:
//
//   - life (RWMutex): held for reading by each method while it touches the
//     mapping, for writing by Close, so that nobody reads unmapped memory;
//   - mu of Points, Rings (one Drain or Reclaim at a time) or Mailbox, never two
//     of them;
//   - mu of ownership.
//
// Drain calls its callback with life and Rings.mu held: the callback must call no
// method of the same Memory (with a Close waiting, taking life once more would
// never end), and should be quick. A Drainer belongs to one goroutine. A Clock
// may be shared by all.
package shm
