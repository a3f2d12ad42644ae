// SPDX-License-Identifier: Apache-2.0

// Package outfile opens the files into which a user wants results written, as
// early as they are named: what is wrong with them is refused before anything
// is started, and opening never waits. What a file held before stays until there is something to
// write. [Put] and [PutDurably] do so for files of Attune's own.
//
// The functions are safe for concurrent use.
package outfile
