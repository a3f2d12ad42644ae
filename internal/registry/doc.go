// SPDX-License-Identifier: Apache-2.0

// Package registry is the place where the parts of a site find each other:
// which applications are registered, which Analyzer has them, and who is there.
// It is a client of NATS with JetStream; package embed is the server for sites
// that have none.
//
// # What lies there
//
// Three key-value buckets, each record a protobuf message in binary form:
//
//	attune_orders       registration.ID  Registration    on disk
//	                    owner.ID         OwnerRecord     on disk
//	                    revoked.WHAT     Revocation      on disk
//	attune_analyzers    ID               AnalyzerRecord  in memory, ends with its Analyzer
//	attune_sessions     ID               SessionRecord   on disk, a week after it was put last
//
// Watchers of registrations and owners have no consumer at the server: each
// change is published again by the bucket's stream, with its sequence number,
// and goes to all of them as one message does in NATS. A gap in the numbers, a
// new connection, and time (messages may be lost without a gap behind them)
// make a watcher compare its copy with the stream, and read what it lacks.
//
// # A registry that is lost
//
// A Client connects again for ever. Nothing ends because the registry is away:
// watchers keep what they know, owners what they have. A registry that comes
// back empty takes nothing back either: registrations end by being deleted, not
// by missing, and whoever has one puts it there again.
//
// # Leases
//
// An Analyzer that is announced writes its record again in intervals. A
// registration's owner is a record that names an Analyzer and is changed by
// compare-and-swap only; it may be taken by another one when the Analyzer it
// names has not written for Options.TTL, on the clock of the one who takes, or
// has said good-bye. The owner itself counts its lease as valid for two thirds
// of that since it began its last successful write, on its own clock: clocks
// need not agree, nor be right, they only have to run at about the same speed.
// A computer that was suspended wakes up with a valid lease for a moment; the
// epoch of the record tells who came later.
//
// All methods of Client may be called by many goroutines at a time.
package registry
