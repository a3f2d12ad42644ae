// SPDX-License-Identifier: Apache-2.0

// Package link has what the Analyzer is to be told, and takes it there.
//
// Client is the controller's end of the two channels to the Analyzer:
// the event channel carries what happens in the application, the management
// channel carries requests and their answers. They are two connections, so
// that a flood of events never delays a command. The controller dials both.
//
// With an Analyzer at a fixed address the first connection is the only one. With
// a [Finder] the client goes where the Analyzer is: it connects again when a
// connection breaks, when nothing was heard for too long, and when the session
// has moved. The client hands back, to be counted, what was queued for a connection
// that broke, and what was sent there and not acknowledged (docs/design/0082); the
// controller tells again what an Analyzer has to know.
//
// [Outbox] holds the news of processes back for a moment, and for as long as there
// is no Analyzer; [Losses] counts what did not get there.
//
// Client may be used by any number of goroutines. Messages handed to it belong
// to it from then on.
package link
