// SPDX-License-Identifier: Apache-2.0

// Package procid says which process is meant. A pid alone is never enough,
// because the kernel reuses it: an [Identity] is the pid with the start time,
// the boot and the executable's inode, and a [Process] holds a pidfd, so that
// nothing done through it can reach another process.
//
// Reading /proc is separated from parsing it: ParseStat has no access to the
// machine.
//
// There is no shared state but inside a Process, whose methods may be called
// from any goroutine at once. Linux 5.10 is the least kernel (PIDFD_NONBLOCK).
package procid
