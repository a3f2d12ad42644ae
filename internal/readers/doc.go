// SPDX-License-Identifier: Apache-2.0

// Package readers reads what belongs to strangers, in processes of its own.
//
// The memory of a process (its arguments and environment, too) and its files can be
// backed by whoever runs it: a FUSE server or a userfaultfd that does not answer. Whoever
// reads them waits for ever then, and not even SIGKILL ends that. So a service does not
// read them itself: it has one [Pool] of helper processes, of which each runs [Serve] and
// does one [Operation] at a time. A helper that does not answer in time is killed and left
// behind; the user whose process it read is refused for a while, and everybody else is
// served meanwhile by other helpers.
//
// A Pool may be used from any goroutine. A nil *Pool is valid: it does every operation
// in this process, for a user who reads their own only.
//
// The files have an order: operation, pool, helpers, helper, and below them message; serve is the
// helpers' side, and calls what they may ask of the kernel (docs/design/0058).
//
// What the kernel has by itself needs no helper: /proc/PID/stat and status, where the
// links of /proc/PID lead, and what procid.FileOf tells of a file.
package readers
