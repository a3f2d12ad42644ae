// SPDX-License-Identifier: Apache-2.0

// Package pointtext reads measure points as people write them:
//
//	libc.so.6:write take fd=arg0, n=arg2 if n > 4096 every 100
//
// The grammar stands in docs/reference/probes.md. What is read is a message of
// the protocol; whether the function exists, and what its parameters are, is
// found out where the point is placed. Functions may be called from any
// goroutine.
package pointtext
