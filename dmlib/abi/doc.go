// SPDX-License-Identifier: Apache-2.0

// Package abi has, as Go constants, what the headers in dmlib/include/attune declare:
// the layout of what DMLib and the controller share, and of what they say to each
// other, and DMLib's hooks. Nothing else in the project states it in Go.
//
// A constant ATTUNE_SLOT_USED of the headers is SlotUsed here, the size of a struct
// attune_slot is SlotBytes, and where its field head lies is SlotHeadAt. All are untyped.
// Who writes a field, and what it means, stands in the headers.
package abi

//go:generate go run ./internal/gen ../include/attune abi.go

// Hook is one of DMLib's own hooks.
type Hook struct {
	// Index is its local point index.
	Index int
	// Name is the hooked function.
	Name string
	// Family is the safe-point family that it belongs to: one of the constants At….
	Family uint32
}
