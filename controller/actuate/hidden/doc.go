// SPDX-License-Identifier: Apache-2.0

// Package hidden finds variables of libraries and interpreters that have no
// symbol, by differential probing: a process of ours loads the same file, is
// told a value in the documented way (an environment variable, a call, a line
// of script), and the word of the file's data that holds the value is the
// variable. This is done with several values, each in a process of its own, and
// the answer must be one place and the same for all.
//
// A [Variable] says how its library is told; a [Prober] runs the processes and
// remembers what it found, by build id, for as long as the file is the same.
// The process that is going to be changed is not touched here.
//
// A Prober is safe for concurrent use. It probes one variable at a time.
package hidden
