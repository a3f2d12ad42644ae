// SPDX-License-Identifier: Apache-2.0

package patch

import "encoding/json"

// SlotBytes is the alignment of programs and the unit of their size.
const SlotBytes = 256

// MaxProgramBytes is the size of the largest program; actions without end are a
// mistake.
const MaxProgramBytes = 16 * SlotBytes

// Environment is what programs need to know of a process.
type Environment struct {
	// Hook is DMLib's function for entries or for exits.
	Hook uint64
	// ErrnoLocation is the address of __errno_location; 0: the program has no
	// errno.
	ErrnoLocation uint64
	// Spare is the slot of the program's window in which its patch can go on to
	// another window.
	Spare uint64
	// XSave says that the processor has XSAVE.
	XSave bool
}

// Program is what happens where code is patched: first what is measured, then
// the actions, then what the code does anyway.
type Program struct {
	// Numbers of the local points that are measured.
	Numbers []uint32 `json:"numbers,omitempty"`
	// Giver tells who has given the numbers: those of another one mean other points.
	Giver string `json:"giver,omitempty"`
	// Steps in any order: parameters are changed first, then calls made, then
	// the function is removed or replaced.
	Steps []Step `json:"steps,omitempty"`
}

// Idle says whether nothing is done but what the code does anyway.
func (p Program) Idle() bool { return len(p.Numbers)+len(p.Steps) == 0 }

// Key tells programs that do different things from one another.
func (p Program) Key() string {
	description, err := json.Marshal(p)
	if err != nil {
		panic(err) // numbers and texts only
	}
	return string(description)
}
