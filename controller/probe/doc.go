// SPDX-License-Identifier: Apache-2.0

// Package probe puts measure points into processes by the cheapest mechanism
// that can serve them: a hook of DMLib, a stub of DMLib bound through the GOT,
// a patch of the function's entry and exits (controller/sites), or a uprobe.
//
// A Placer holds two sets, points and tenants, which are the processes, and keeps
// every point placed in every process that it is meant for, whichever comes first.
// Placing in a running process waits for DMLib's safe points, so it happens on a
// goroutine per process, which Close waits for. What is asked for meanwhile is then
// placed together, in one look at the process and at one safe point: a hundred
// points take little longer than one. All methods may be called from any goroutine.
//
// # Layers
//
// A host is a process as the mechanisms see it: hooks, stubs, patches
// and uprobes. Beneath them lie what a point captures (captures), how it is
// delivered (delivery.go) and what becomes of it in a process (placement).
// mechanisms chooses among them; occupancy has what was placed, and what the
// overhead budget has left of it, and tells of it; a tenant adds the mutex, the
// wishes and the decisions. kernel is what uprobes in all processes have in common,
// for a uprobe belongs to a file.
//
// # Locking
//
// Each tenant has a mutex, held while something is placed in its process; only
// handOver holds several. The mutexes of tenants, kernel, watchOwners, points and
// work guard their own tables and come after it.
package probe
