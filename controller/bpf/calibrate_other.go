// SPDX-License-Identifier: Apache-2.0

//go:build !amd64

package bpf

// No functions are kept for calibration on this architecture.
func calibrationEntries() (nop, push, other uintptr) { return 0, 0, 0 }

func callEntry(uintptr, int) {}
