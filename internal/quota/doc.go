// SPDX-License-Identifier: Apache-2.0

// Package quota gives each user of a service a share of what it does for all: so much
// at once, so often. What is beyond is refused or counted, and costs the others nothing.
//
// Everything may be used from any goroutine; each type has a mutex of its own, a leaf
// lock.
package quota
