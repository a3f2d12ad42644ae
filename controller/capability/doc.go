// SPDX-License-Identifier: Apache-2.0

// Package capability finds out what can be done on this node, by this user:
// which ways into a process are open, and for those that are not, why and what
// would open them.
//
// Where it can, a probe does the thing itself, in small and on a child of its
// own or on nothing, and does not guess from version numbers. It leaves no
// child, descriptor, mapping or setting behind.
//
// There are two sets. The fast one, for the start of attuned, makes a few
// cheap system calls and starts no process; the full one, for attune doctor,
// attaches real probes and takes some tenths of a second.
//
// # Locking
//
// Nothing is shared between calls; Probe may run several times at once.
package capability
