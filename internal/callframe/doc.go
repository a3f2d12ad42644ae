// SPDX-License-Identifier: Apache-2.0

// Package callframe reads call frame information: the section .eh_frame, which says
// for each instruction of a program where its caller's registers are (System V psABI
// for x86-64, 4.2.4; DWARF 5, 6.4 and 7.24; LSB 5.0, 10.5 to 10.7). Stripping leaves
// it. What is read may be anybody's, and anything: nothing is believed of its lengths.
package callframe

import "errors"

var (
	// ErrCorrupt says that it contradicts itself.
	ErrCorrupt = errors.New("corrupt call frame information")
	// ErrUnsupported says that it is of a form that is not read here: encodings that no
	// compiler for x86-64 uses, and expressions, which some hand-written code has.
	ErrUnsupported = errors.New("unsupported call frame information")
	// ErrNone says that there is none for an address.
	ErrNone = errors.New("no call frame information")
	// ErrOutermost says that a frame has no caller.
	ErrOutermost = errors.New("the outermost frame")
)
