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
//
// # Files
//
// A file uses those below it, and those in its line:
//
//	resolve, elsewhere, returnprobe    a name in a process: where, or what comes close; who survives
//	images, image, knownas             objects as a process has mapped them
//	calls, slot, relocation, unwind    what a file has beside symbols
//	functions, lookup, separate        names in a file, and in its debug file
//	cache, digest, inspect, script, privileged, kind, reason
//	                                   files kept open; programs before they are run
//	file, answers, checksums, outline, frames, address, debugdirs
//	                                   an open file and what it remembers
//	search, found                      what fits a query
//	symbols, gosymbols                 its symbol tables, searched
//	symboltable, symbol, version, origin, dynamic
//	                                   one table; what the loader finds
//	section, segment, code, layout, header, reader, names, kepttables
//	                                   what lies where, by the headers
//	maps, mapped                       which file that is
package objfile
