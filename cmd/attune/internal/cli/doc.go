// SPDX-License-Identifier: Apache-2.0

// Package cli is what all commands of attune have in common: the process that they
// run in, the environment that it was given, and how arguments are refused and
// completed.
package cli
