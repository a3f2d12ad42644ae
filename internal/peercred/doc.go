// SPDX-License-Identifier: Apache-2.0

// Package peercred asks the kernel who is at the other end of a Unix socket
// (SO_PEERCRED, SO_PEERPIDFD; see unix(7)). The answer cannot be forged: for a
// peer that connected it is the effective ids when it called connect, for one
// that listens those when it called listen. Who was handed a connected socket
// by somebody else speaks as them.
//
// It has no state; everything may be called from any goroutine.
package peercred
