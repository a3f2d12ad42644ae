// SPDX-License-Identifier: Apache-2.0

// Package embed is a NATS server with JetStream within this process, for sites
// that have none of their own. It keeps the registry in a directory, or, at a
// site that cannot be reached from outside, passes on what is asked to the
// registry of another site, through one connection that it dials.
//
// Whoever connects is known before anything is done for them: over the network
// by a certificate (package pki), on the same host by the user of the process at
// the other end of a Unix socket. Services (role node) may read and write the
// registry; persons may ask which Analyzers there are, and nothing else.
//
// Programs that only use the registry do not import this package: it is large.
package embed
