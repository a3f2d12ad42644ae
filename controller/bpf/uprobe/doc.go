// SPDX-License-Identifier: Apache-2.0

// Package uprobe counts and records the calls of functions in any mapped file, in
// the processes that asked to be watched and in no other, with the values that a
// capture.Program captures.
//
// It needs kernel 5.15 with type information (CONFIG_DEBUG_INFO_BTF). From 6.6 on
// one system call attaches all functions of a file.
//
// # Locking
//
// All methods may be called from several goroutines unless they say otherwise. Each
// part of Uprobes has one mutex over its own tables. That of attacher comes before
// those of planTable, watchTable and recordRing; none is held while the kernel
// detaches a probe, which takes 50 to 100 ms.
package uprobe
