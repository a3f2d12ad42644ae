// SPDX-License-Identifier: Apache-2.0

// Package packfile writes and reads packed programs: one ELF file that holds a
// program and what tunes it. dmlib/glue is what such a file starts with, and
// reads the same format (glue/format.h):
//
//	glue | parts, each at a multiple of 4096 | table | record
//
// The record has a fixed size and stands at the very end. Checksums are XXH64:
// they find damage, and are quick enough for every start. They are no
// signature: whoever may write the file may run anything as its user anyway.
//
// A File is safe for concurrent use.
package packfile
