// SPDX-License-Identifier: Apache-2.0

// Package calls makes the calls to one tunlet, in order and from a bounded queue, so
// that a tunlet which is slow or does not answer holds up nobody else. Measured data
// that does not fit is dropped and counted, and later calls tell of it; where what must
// not get lost does not fit, the tunlet is hung.
//
// Any goroutine may use a [Worker]. Its mutex is a leaf.
package calls
