// SPDX-License-Identifier: Apache-2.0

// Package launch starts a program so that neither the program nor whoever
// started Attune can tell that Attune stands between them.
//
// What passes through: standard streams and every other inherited descriptor
// (the very same ones; none of ours is added), terminal, session, process
// group, working directory, umask, limits, priority, signal mask, ignored
// signals, exit code, death by signal, stop and continue.
//
// Signals. A signal sent to the whole process group (by the terminal, by a
// shell's kill %1, by a batch system) has already reached the program and must
// not reach it twice; one sent to Attune alone is passed on. The two look the
// same to the receiver, so a witness decides: a process of a few pages in the
// same group that blocks every signal, whose pending set says what the group
// was sent. Where there can be no witness (see package inherit), signals of
// the keyboard are passed on unless this group owns the terminal, and others
// always.
//
// Known limits: an ignored SIGCHLD and ignored synchronous signals (SIGSEGV,
// SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSTKFLT, SIGSYS) reach the program as
// default, since Go cannot ignore them; the "core dumped" bit of the program's
// status is not repeated.
//
// One goroutine starts, waits and ends: the types here are not safe for
// concurrent use, unless a method says otherwise.
package launch
