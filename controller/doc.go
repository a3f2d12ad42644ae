// SPDX-License-Identifier: Apache-2.0

// Package controller wires one Application Controller: it lets DMLib in at the
// start gate, follows the processes of a job, places measure points, drains
// events, samples signals, executes tuning actions, and carries all of it to
// and from the Analyzer. The same controller serves `attune run`, where it
// lives beside the Analyzer, and the node daemon.
//
// New constructs everything, Start runs it, Stop gives back what was changed
// and ends it. The set of processes is kept in targets.go, the only file that
// touches it. Lock order: the registry's mutex is taken last and never held
// while /proc is read or a process is acted on.
package controller
