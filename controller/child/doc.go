// SPDX-License-Identifier: Apache-2.0

// Package child runs the Application Controller of a session in a process of its own,
// so that what a user's processes can crash, hang or fill is that session alone
// (docs/design/0057).
//
// attuned executes itself again. A [Pool] starts such processes, one ahead; a
// [Controller] is what attuned has of one, and [Serve] is what runs in it. They talk
// over one pair of sockets, in messages that may carry a descriptor. attuned trusts
// nothing that comes from there: a message has a greatest size and a known kind, and
// names no process that the session has nothing to do with. What is for the Analyzer
// passes through attuned, which has the node's key and looks at who says hello.
//
// # Files
//
// A file uses those below it, and those in its line:
//
//	controller, ending, list, budget  attuned's side: a session, and what a dead one has left
//	requests                    what its process asks for
//	served, echo                what attuned has for it
//	serve, session              the side of the process
//	source, finder, rules, log  what reaches its controller through attuned
//	pool, guard                 how processes begin, and one that outlives attuned
//	start, confine, calls       and what they may
//	relay                       to the Analyzer
//	roster                      which processes are the session's
//	conversation                calls and notices both ways
//	wire, message               packets, and what is in them
//
// Every exported method may be called from any goroutine.
package child
