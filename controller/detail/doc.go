// SPDX-License-Identifier: Apache-2.0

// Package detail reads what series.Details tell of a process beside its
// threads: sockets, pipes, and what its memory is made of. (Threads come from
// package sample, which reads their files anyway.)
//
// # What it does to a process
//
// Nothing is read from the process itself, and it is never stopped. A file of
// /proc that says what a descriptor is costs it nothing. A descriptor that is
// borrowed (pidfd_getfd(2)) does: as long as we have it, the kernel goes on
// treating a socket as open that the process has closed, so that its peer hears
// of it late, and an epoll set may name it once more. So
//
//   - what is not in two listings, one after the other, is never borrowed:
//     connections that live for moments only are left alone,
//   - a TCP socket is borrowed when it is first read, which tells its addresses
//     and options, and again after [LookEvery] only. In between the kernel is
//     asked by address and cookie (sock_diag(7)),
//   - a Unix socket is not borrowed: the kernel finds it by its inode,
//   - a pipe has to be borrowed each time, but nobody waits for its last end but
//     a reader for the end of the file.
//
// The kernel answers sock_diag for the namespace of the one who asks, where that may be
// asked and the kernel has the module for it. Other sockets (containers) are borrowed, at most every
// [LookForeign].
//
// Links in /proc/PID/fd are read and not followed, since a file of a server that
// is out of reach may not answer. The exception is what the last listing found to
// be a socket, which is asked for its protocol once.
//
// # What it costs
//
// docs/reference/signals.md has the figures of BenchmarkRead. A round lists at
// most descriptorsPerRound descriptors of a process and reads at most
// as many items as the caller says; both go on in the next round where they
// ended. Reading what memory is made of takes the longer the more there is, so
// it is done again only after a hundred times as long ([paceShare]).
//
// A [Reader] belongs to one goroutine.
package detail
