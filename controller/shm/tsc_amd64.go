// SPDX-License-Identifier: Apache-2.0

package shm

// ticks reads the time-stamp counter that DMLib stamps records with.
//
//go:noescape
func ticks() uint64
