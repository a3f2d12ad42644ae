// SPDX-License-Identifier: Apache-2.0

// Package archive is `attune archive`: the accounts of earlier tasks, and what the next
// one will need.
package archive
