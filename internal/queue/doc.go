// SPDX-License-Identifier: Apache-2.0

// Package queue holds the one bounded queue of this program. What finds no room
// is dropped and counted, never kept in silence; who puts something in chooses
// whether to wait for room ([Queue.Put]), to lose what is new ([Queue.Offer]) or
// what is oldest ([Queue.Push]).
//
// A [Bell] is for the many places that have nothing to queue, and wake a
// goroutine that looks for itself what there is to do.
//
// The methods of both may be called from any goroutine. Their locks are leaves.
package queue
