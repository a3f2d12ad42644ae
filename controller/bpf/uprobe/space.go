// SPDX-License-Identifier: Apache-2.0

package uprobe

// Space is the code of a process, by which its stacks are walked and named. Its methods
// may be called from any goroutine, and keep working when the process has ended.
type Space interface {
	// Objects are what the process has mapped, in ascending order.
	Objects() []Object
	// Name is what lies at an address, as OBJECT:FUNCTION; call says that a call
	// returns there.
	Name(address uint64, call bool) string
	// Renew looks again at what the process has mapped, if one of the addresses is in no
	// object that is known, and says whether there are others now.
	Renew(addresses []uint64) bool
	// Close ends its use. A name that is asked for later is an address.
	Close() error
}

// Object is an executable file in a process.
type Object struct {
	// Start and End enclose it. Base is what its rows count from.
	Start, End, Base uint64
	// File tells it from other files.
	File FileID
	// Rows reads how to walk through its frames; an error, or none, leaves it to frame
	// pointers.
	Rows func() ([]Row, error)
}

// FileID tells files apart.
type FileID struct{ Device, Inode uint64 }

// Row is where the caller is found from a range of instructions.
type Row struct {
	// PC is where the range begins, from the object's base. It ends at the next row.
	PC uint32
	// Frame is so many words above the stack pointer or the base pointer, by Kind.
	Frame uint16
	Kind  RowKind
	// Saved is how many words below the frame the caller's base pointer is; 0: in its
	// register.
	Saved uint8
}

// RowKind is how a frame is found: ROW_* of include/uprobe_maps.h.
type RowKind uint8

// The kinds of rows.
const (
	RowNone RowKind = iota
	RowStack
	RowBase
	RowLinkage
	RowOutermost
	RowOther
)
