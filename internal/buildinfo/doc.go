// SPDX-License-Identifier: Apache-2.0

// Package buildinfo says which version of Attune this binary is. It holds no
// mutable state.
package buildinfo
