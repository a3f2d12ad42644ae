// SPDX-License-Identifier: Apache-2.0

// Package rundir finds the directories of a run: a private one for its
// sockets, which goes when the run ends, and those that outlive it (installed
// library, undo journals).
//
// A run directory is held by a file lock for as long as the process lives, so
// that one whose process died is known by its free lock and removed by the
// next run. The functions are safe for concurrent use by any number of
// processes; a Dir belongs to one goroutine.
package rundir
