// SPDX-License-Identifier: Apache-2.0

package inherit

// Written by attune_entry before the runtime starts; see entry_amd64.s.
var (
	captured uint64
	closed   uint64
	ignored  uint64
	blocked  uint64
	// action receives one struct sigaction of the kernel: handler, flags,
	// restorer, mask.
	action [4]uint64
)
