// SPDX-License-Identifier: Apache-2.0

// Package access does things inside a process that runs: it finds what is there,
// writes words of its memory, and has its threads make calls, by DMLib at a safe point
// or by a thread that is stopped ([Way]).
//
// It knows nothing of changes and their undoing, nor of libraries. Whoever calls it
// holds the lock of the process ([Process]).
package access
