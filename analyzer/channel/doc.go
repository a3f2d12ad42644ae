// SPDX-License-Identifier: Apache-2.0

// Package channel is the Analyzer's end of the event and the management
// channel: the gRPC services that Application Controllers dial. It knows no
// session; a [Route] finds the one that a hello belongs to, and its messages go
// there until the channel or the session ends.
//
// Locking rule: there is no state of its own but the queue of requests to each
// controller, which is a Go channel, and what was taken of each connection's events,
// which its management channel tells; the lock of those is a leaf.
package channel
