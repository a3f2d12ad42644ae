// SPDX-License-Identifier: Apache-2.0

package inherit

// WitnessArg is the argv[0] with which a process that was linked with the entry
// does nothing but wait for the end of its standard input; package launch uses
// it to learn which signals were sent to the whole process group. Only where
// State.Exact is true.
const WitnessArg = "attune-witness"

// Written by attune_entry before the runtime starts; see entry_amd64.s.
var (
	captured uint64
	closed   uint64
	ignored  uint64
	blocked  uint64
	// action receives one struct sigaction of the kernel: handler, flags,
	// restorer, mask.
	action [4]uint64 //nolint:unused // only by that code
)
