// SPDX-License-Identifier: Apache-2.0

// Package discover knows which processes of a node are meant by the
// registrations of a site, and tells a [Handler] of each once.
//
// A [Watcher] has one stream of process events for the whole node: BPF, where
// the kernel looks at names and wakes nobody for others, with accounts of what
// processes take or without; else the kernel's process connector; else /proc,
// looked through at an interval. When one fails, the next takes over. Whoever
// runs among the processes when registrations change is looked at as well.
//
// The controllers of sessions follow their processes through views of the same
// stream ([Watcher.Source]): however many sessions there are, a node has one
// stream.
//
// # Who is meant
//
// A process goes under the path of its executable and the path that it was
// started by: a script's own, or that of a symbolic link. A registration must
// fit in everything that it gives. Of several the one of the process's own user
// comes before the site's, the more exact before the less exact, the older
// before the newer: the same on all nodes. A process that a session has, with
// all that it forks, is not given to another; nor is Attune itself, nor what
// another Attune (`attune run`, a packed program) has started.
//
// A process is looked at when it executes a program, and when everybody is. Of one that
// takes another user's id in between and executes nothing after that no stream tells, and
// to look at everybody again and again would cost more than all else here: it goes by the
// user that it had.
//
// # Goroutines
//
// The stream has a goroutine, which also feeds the views; the state of who is
// known belongs to another one, which calls the Handler. What belongs to a user is
// looked at by a goroutine of that user's while there is something to look at, in
// their order, and checksums by one for each: what one user has that never answers (package
// readers) holds up nobody else. The hub's mutex is the only lock that they share,
// beside that of what waits to be looked at, and is held for look-ups in memory only.
//
// # Files
//
// The files have an order. A file uses those below it, and those after it in its line;
// the others it calls only by interfaces:
//
//	discover                              joins the others; Run
//	state, ways                           who was looked at; which stream feeds the hub
//	decide                                who gets a process
//	examine                               looks at what belongs to users, side by side
//	hub                                   between the stream of the day and the views
//	member                                one process of a view
//	poll, kernel, view                    the streams, and who listens to them
//	registered, gift, checksum            what is looked for, what was given, what is read
//	registration, candidate, batch        one registration, one process
//	belongings                            what may never answer, read by helpers
//	process, stream, users                what /proc, the kernel and the directory tell
//	handler, status                       what others are told
package discover
