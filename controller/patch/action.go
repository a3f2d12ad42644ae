// SPDX-License-Identifier: Apache-2.0

package patch

// Class says in which registers the calling convention passes a value.
type Class int

// Classes.
const (
	// Integer is an integer, pointer or truth value.
	Integer Class = iota
	// Real is a double or float.
	Real
	// None is no value: the result of a void function.
	None
)

// Value is what a register holds: the bits of an integer, sign-extended to 64
// bits where it is signed, or those of a double or float (math.Float64bits,
// math.Float32bits).
type Value struct {
	Class Class
	Bits  uint64
}

// Replace makes every call of a function go to another one of the same
// parameters and result.
type Replace struct {
	// Target is the address of the other function.
	Target uint64
}

// Remove makes a function return at once. It does nothing else: no register
// but that of the result changes.
type Remove struct {
	// Result is what it returns. A struct or a long double cannot be.
	Result Value
	// Callers, if there are any, are the stretches of code whose calls are
	// removed; a function that is in parts has several. Who reaches the
	// function by a tail call is not its caller: whoever called that one is.
	Callers []Range
}

// Range is code from Start up to End, which is the first address behind.
type Range struct{ Start, End uint64 }

// Parameter gives a parameter another value.
type Parameter struct {
	// Number among the parameters of its class, from 0: up to 5 for integers,
	// up to 7 for reals. A struct passed by value takes the numbers of its
	// members, a pointer to a large result is number 0.
	Number int
	// Value is the new one.
	Value Value
	// Old, if set, is the value that it must have, and Width how many of its
	// bytes are compared: 1, 2, 4 or 8, the size of the parameter's type. For
	// reals the bits are compared: -0 is not 0.
	Old   *uint64
	Width int
}

// Call calls another function before a function begins, or when it is about to
// return. All registers, the flags and errno are as they were when that one
// returns. A function that leads back to where the call was inserted calls
// itself without end. The caller may hold any lock, also the allocator's.
type Call struct {
	// Target is the address of the function to call.
	Target uint64
	// AtExit calls it at the returns of the function instead of at its entry.
	AtExit bool
	// Arguments, at most 6 integers and 8 reals. The function may be variadic.
	Arguments []Argument
}

// Source says where an argument comes from.
type Source int

// Sources of arguments.
const (
	// Constant is Argument.Bits.
	Constant Source = iota
	// FromParameter is the parameter Argument.Number of the function, as other
	// actions left it; at its entry only.
	FromParameter
	// FromResult is what the function returns; at its exit only.
	FromResult
	// Text is the address of Argument.Text, ended by a zero byte. It stays
	// there for as long as the process lives, and cannot be written.
	Text
)

// Argument of an inserted call.
type Argument struct {
	Source Source
	// Class of a constant, parameter or result.
	Class Class
	// Number of a parameter, as in Parameter.
	Number int
	// Bits of a constant.
	Bits uint64
	// Text of at most 255 bytes.
	Text string
}
