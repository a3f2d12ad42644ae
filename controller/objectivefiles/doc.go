// SPDX-License-Identifier: Apache-2.0

// Package objectivefiles measures the owner's objective (docs/reference/objective.md) of a session
// where the session's processes on this node write it to files. Whoever runs it may have more
// rights than the owner, so nothing is looked up by a path: read is what a process of the
// session has open, and only if it is the session's user's (docs/design/0076).
//
// A [Meter] may be used from any goroutine.
package objectivefiles
