// SPDX-License-Identifier: Apache-2.0

// Package bpf loads the Application Controller's BPF programs and gives them
// Go faces:
//
//   - ProcessEvents follows the processes of jobs through fork, exec and exit.
//   - Uprobes counts and records the calls of functions in any mapped file, in
//     the processes that asked to be watched and in no other, with the values
//     that a measure.Program captures.
//
// The C lies in src and include; the objects made from it by go generate are
// committed, so that building needs no clang. Process ids are those of the
// controller's own pid namespace throughout.
//
// What the kernel or the user's privileges do not allow is reported as an
// *UnsupportedError with reason and remedy; everything else goes on without.
//
// # Kernel floor
//
// ProcessEvents: 5.8, Uprobes: 5.15, both with type information
// (CONFIG_DEBUG_INFO_BTF). From 6.6 on one system call attaches all functions
// of a file.
//
// # Locking
//
// All methods may be called from several goroutines unless they say
// otherwise. Each type has one mutex over its own tables; it is never held
// while the kernel detaches a probe, which takes 50 to 100 ms.
package bpf
