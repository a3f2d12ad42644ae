// SPDX-License-Identifier: Apache-2.0

// Package probe puts measure points into processes by the cheapest mechanism
// that can serve them: a hook of DMLib, a stub of DMLib bound through the GOT,
// a patch of the function's entry and exits (controller/sites), or a uprobe.
//
// A Placer holds two sets, points and processes, and keeps every point placed
// in every process that it is meant for, whichever comes first. Each process
// has a mutex of its own, held while something is placed in it; the Placer's
// mutex guards the two sets and is taken after none. Placing in a running
// process waits for DMLib's safe points, so it happens on a goroutine per
// process, which Close waits for. What is asked for meanwhile is then placed
// together, in one look at the process and at one safe point: a hundred points
// take little longer than one. All methods may be called from any goroutine.
package probe
