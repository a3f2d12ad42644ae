// SPDX-License-Identifier: Apache-2.0

// Package store keeps what sessions learn about applications: which changes
// tunlets advised, how often each was tried, kept and undone, and what it gained.
// It is one SQLite file (modernc.org/sqlite, no C), by default in the user's state
// directory, and belongs to that user alone.
//
// An application is known by the SHA-256 of its executable, to which a service adds
// the user: another build is another application. Knowledge is a hint only: what helped before is tried first
// the next time, and verified again.
//
// A Store is safe for use by several goroutines, and its file by several
// processes; each call waits at most busyTimeout for another one's.
package store
