// SPDX-License-Identifier: Apache-2.0

// Package objfile knows ELF files: whether a program can be run with DMLib
// preloaded ([Inspect]), which symbols and GOT slots an object has ([File]),
// also those that only its separate debug file knows ([File.Lookup]), and where
// a process has mapped it ([Images], [Resolve]).
//
// Files come from users and are not trusted: every offset is checked against
// the file's size, every table has a greatest size, and nothing is allocated
// for what the file merely claims. Only 64-bit little-endian files are read
// beyond their first bytes; section headers are a help, not a need, since a
// stripped file may lack them.
//
// A [File] is immutable after it was opened and may be used by any goroutine;
// whoever opened it closes it. A [Cache] and [Digests] have one mutex each,
// held only for look-ups in memory, never while a file is read.
package objfile
