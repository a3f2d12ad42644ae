// SPDX-License-Identifier: Apache-2.0

// Package policy says which tuning actions are allowed, to whom and with which
// values, and what a service may do to whose processes at all.
// docs/reference/policy.md describes the file.
//
// A [Policy] is immutable and may be used from any goroutine. The zero value
// of *Policy, nil, is what holds where there is no file: a user may do
// anything to their own processes, root to all, and a service nothing.
package policy
