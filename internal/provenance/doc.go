// SPDX-License-Identifier: Apache-2.0

// Package provenance records what a command ran with: its executable, inputs and outputs with
// their checksums, environment, user, machine, batch jobs, and what it wrote to its
// standard streams. Nothing of it touches the command: files are read when it has ended, and
// streams are captured only where they are files.
//
// A Record goes one way: Begin, Started, End. It is for one goroutine.
package provenance
