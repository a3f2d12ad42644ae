// SPDX-License-Identifier: Apache-2.0

// Package turns tells which rows of details are still there. Threads, sockets and pipes are
// read in turn, some of them in a round, and nobody tells of their end: what is not read
// although all the others were has gone.
//
// It keeps no rows: a tunlet keeps the [Turn] of each beside what it knows of it, and one
// [Table] for all. Nothing here is safe for use by several goroutines.
package turns
