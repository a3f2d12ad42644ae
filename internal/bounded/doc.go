// SPDX-License-Identifier: Apache-2.0

// Package bounded reads what others wrote without believing the sizes that it
// claims: allocations, decompression and work, each with a limit that the error
// names ([ErrLimit]). What reads files of others goes through it; the linter refuses the
// functions that it stands in for (docs/design/0054).
//
// The functions keep nothing and may be called from any goroutine. A [Work] is for
// one goroutine.
package bounded
