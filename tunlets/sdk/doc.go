// SPDX-License-Identifier: Apache-2.0

// Package sdk is the Dynamic Tunlet API: all that the author of a tunlet
// imports.
//
// A tunlet holds the knowledge about one performance problem: which measure
// points show it, a model of what it costs, and the tuning actions that cure
// it. It is a program of its own, started by the Analyzer:
//
//	func main() { sdk.Serve(func() sdk.Tunlet { return mytunlet.New() }) }
//
// The only method that a tunlet must have is Describe. What else it wants to
// hear, it says by implementing further one-method interfaces (Configurer,
// ProcessStartObserver, SampleHandler, AggregateHandler, Ticker, ...). What it
// wants to happen, it tells the Host that each of those methods is given.
//
// Without any measure point it sees the signals of each process, and the details
// (threads, sockets, pipes, memory) that it asks for with Host.WantDetails;
// docs/reference/signals.md lists both.
//
// Its process is not there before one of the conditions in Description.Wake
// holds; it should have some, or every application pays for the process.
//
// Locking: the Analyzer's calls reach a tunlet one at a time and in the order
// in which things happened (package feed states it: of a round, the samples come
// before the aggregates), so a tunlet needs no lock unless it starts goroutines of its
// own. A Host is valid during the call that it came with and
// must not be used by another goroutine.
//
// A tunlet is a guest: it opens no connection, and ends when the Analyzer ends. It answers
// each call within 5 seconds (10 in the suite of package tunlettest and in a replay) with 4 MiB
// at most, and takes 128 MB of resident memory and 80 % of a processor at most, unless
// --tunlet-memory and --tunlet-cpu say otherwise: one that does not is ended. Printing is
// allowed everywhere but before Serve (in package initialisation or in main), where it would
// come between the two programs' handshake; see Logger. A panic ends the program; the Analyzer
// reports it, starts the tunlet again after a pause, and goes on without it if that is in vain.
package sdk
