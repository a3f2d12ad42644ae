// SPDX-License-Identifier: Apache-2.0

// Package node is the Application Controller of a node: the part of attuned
// that takes the processes which discovery finds, and which are handed to it,
// and gives each session that has processes here a controller of its own
// (docs/design/0022).
//
// A [Node] asks the site's policy before it takes a process, announces what it
// has in the registry, and answers who looks for processes. Nothing ends when
// the registry or an Analyzer is away.
//
// # Goroutines
//
// Each session has one, which makes its controller, hands processes to it, and
// ends it. Node.mu guards the list of sessions and what waits for each. Beneath
// it only those locks are taken that a controller's list of processes has, and
// nothing waits: discovery asks while it holds up the node's events.
package node
