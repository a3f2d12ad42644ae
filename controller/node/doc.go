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
// # Files
//
// The files have an order. A file uses those below it, and those after it in its line;
// the others it calls only by functions that [New] gives it:
//
//	node                              joins the others; Run
//	local                             what is answered at the local socket
//	handover, found                   how processes come in
//	record, switch, trouble, figures  what the node tells of itself, and what it watches
//	serve, maker, journals            one session from its controller's start to its end
//	waiting                           who waits to be followed
//	list                              which sessions there are, and who has which process
//	registrations                     what is registered, and telling Analyzers of it
//	audit                             who asks for what
//	session, task, grant, refusal     a session, what is handed over, what is allowed or refused
//	workers, notes, owner, config     goroutines, troubles, who has which registration
//
// # Goroutines
//
// Each session has one, which makes its controller, hands processes to it, and
// ends it. The list of sessions has a mutex, which also guards what waits for each.
// Beneath it only those locks are taken that a controller's list of processes and the
// workers have, and nothing waits: discovery asks while it holds up the node's events.
package node
