// SPDX-License-Identifier: Apache-2.0

package callframe

// basePointer is the number of rbp.
const basePointer = 6

// Row is where the caller of some instructions is found, by the stack pointer and the
// base pointer alone.
type Row struct {
	// Start is the first instruction. The row holds up to the next one, or to the end of
	// the entry.
	Start uint64
	// Frame says by what the frame's address is known, and Offset is added to that.
	Frame  FrameBy
	Offset int64
	// Saved is how far below the frame's address the caller's base pointer lies, bytes;
	// 0: it is in its register.
	Saved int64
}

// FrameBy is what a frame's address is known by.
type FrameBy byte

// What a frame's address is known by.
const (
	ByOther       FrameBy = iota // another register, or the base pointer is nowhere
	ByStack                      // the stack pointer
	ByBase                       // the base pointer
	ByExpression                 // an expression
	WithoutCaller                // there is no caller
)

// Rows calls visit for each row of the entry, in ascending order, as far as it is not
// corrupt.
func (e Entry) Rows(visit func(Row)) {
	m := e.machine()
	for start := e.Start; m.err == nil; start = m.address {
		m.until(start)
		visit(m.summary(start))
		if m.address <= start || m.address >= e.End {
			return
		}
	}
}

// summary says what a row says of the frame.
func (r row) summary(start uint64) Row {
	out := Row{Start: start, Offset: r.frame.offset}
	base := r.saved[basePointer]
	switch {
	case r.saved[returnAddress].kind == lost:
		out.Frame = WithoutCaller
	case r.frame.kind == computed:
		out.Frame = ByExpression
	case r.saved[returnAddress] != rule{kind: inMemory, offset: -wordBytes}, base.kind != same && base.kind != inMemory:
	case r.frame.register == stackPointer:
		out.Frame = ByStack
	case r.frame.register == basePointer:
		out.Frame = ByBase
	}
	if base.kind == inMemory {
		out.Saved = -base.offset
	}
	return out
}
