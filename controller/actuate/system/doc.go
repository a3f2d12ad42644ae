// SPDX-License-Identifier: Apache-2.0

// Package system changes what the operating system keeps for a process, from
// outside and without stopping it: socket options and pipe sizes through
// pidfd_getfd(2), where and how its threads run, resource limits, advice about
// its memory, and the knobs of its cgroup.
//
// Everything is a [Knob] with a name and a value in text form. A knob has
// places: one per thread, per socket, per pipe, or one for the process or
// cgroup. A [plan] knows the old value at each place before anything is
// touched; its [State] records, written to a journal first, are all that
// [restore] needs to take the change back later, in another process too.
//
// No place is ever named by a number alone, because the kernel reuses them:
// the process is held by a pidfd, a thread has its start time, a descriptor
// the inode of its file, a cgroup the inode of its directory. One gap stays:
// Linux changes threads by number only, so that a thread which ends, and whose
// number is drawn anew, between the check and the system call is not told
// apart.
//
// The functions are safe for concurrent use; a plan belongs to one goroutine.
package system
