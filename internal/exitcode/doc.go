// SPDX-License-Identifier: Apache-2.0

// Package exitcode holds the exit codes of Attune's commands and the error
// type that carries one to main. See docs/reference/exit-codes.md.
package exitcode
