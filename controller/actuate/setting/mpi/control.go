// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/inject"
	"github.com/attune-hpc/attune/internal/symname"
)

// Offsets in the memory of a visit, of what MPI writes and is given.
const (
	atThreads   = 8 * iota
	atRank      // in MPI_COMM_WORLD
	atRanks     // of MPI_COMM_WORLD
	atIndex     // of the variable
	atLength    // of whatever text
	atVerbosity // what nobody wants to know
	atType
	atEnum
	atBind
	atScope
	atItems
	atHandle
	atCount
	atValue
	atGiven

	atText        = 1 << 10 // the variable's name
	atTypeName    = 2 << 10
	atDescription = 4 << 10
	atNumbers     = 12 << 10 // those of an enumeration, 8 bytes each
	atLengths     = 16 << 10 // of texts, 8 bytes each
	atTexts       = 20 << 10 // textBytes each
	textBytes     = 128
	mostText      = 1 << 10
	mostDescribed = 8 << 10
	mostItems     = 256
	mostSuggested = 3
)

// Scopes of MPI_T, as Open MPI numbers them; MPICH begins elsewhere.
const (
	scopeConstant = iota
	scopeReadOnly
	scopeLocal
	scopeGroup
	scopeGroupEqual
	scopeAll
	scopeAllEqual

	mpichScopes   = 60438
	mpichNoObject = 9700
)

// control is an MPI control variable of a rank that stands at the entry of a
// function of MPI: it is not inside MPI then.
type control struct {
	*mpiLibrary
	visit  *inject.Visit
	memory uint64
	name   string
	handle uint64 // 0: there is none
	facts  mpiFacts
}

// openControl finds out all about the variable, and gets a handle for it. The
// caller closes it, after an error as well.
func (l *mpiLibrary) openControl(v *inject.Visit, name string) (*control, error) {
	c := &control{mpiLibrary: l, visit: v, name: name}
	var err error
	if c.memory, err = v.Memory(); err != nil {
		return c, err
	}
	if err := c.begin(); err != nil {
		return c, err
	}
	if err := c.describe(); err != nil {
		return c, err
	}
	if err := c.do(c.call("MPI_T_cvar_handle_alloc", c.number(atIndex), 0, c.memory+atHandle, c.memory+atCount)); err != nil {
		return c, err
	}
	c.handle = c.number(atHandle)
	if count := c.number(atCount); uint32(count) != 1 {
		return c, fmt.Errorf("%s has %d elements; only single numbers are changed", name, uint32(count))
	}
	c.facts.old, err = c.read()
	return c, err
}

// begin asks who the rank is, initializes MPI_T and finds the variable.
func (c *control) begin() error {
	err := c.do(
		c.call("PMPI_Query_thread", c.memory+atThreads),
		c.call("PMPI_Comm_rank", c.world, c.memory+atRank),
		c.call("PMPI_Comm_size", c.world, c.memory+atRanks),
		c.call("MPI_T_init_thread", 0, c.memory+atVerbosity),
	)
	if err != nil {
		return err
	}
	c.facts.rank, c.facts.ranks = int(int32(c.number(atRank))), int(int32(c.number(atRanks)))
	if int32(c.number(atThreads)) >= multipleThreads {
		return fmt.Errorf("its threads may all be inside MPI at a time (MPI_THREAD_MULTIPLE): set %s at launch", c.name)
	}
	if len(c.name) >= mostText {
		return fmt.Errorf("no control variable has a name of %d bytes", len(c.name))
	}
	if err := c.visit.Write(c.memory+atText, append([]byte(c.name), 0)); err != nil {
		return err
	}
	code, err := c.try(c.call("MPI_T_cvar_get_index", c.memory+atText, c.memory+atIndex))
	if err == nil && code != 0 {
		err = c.unknown()
	}
	return err
}

// describe asks what the variable is.
func (c *control) describe() error {
	for at, length := range map[uint64]uint64{atLengths: mostText, atLengths + 8: mostDescribed, atLength: mostText} {
		if err := c.visit.Write(c.memory+at, binary.LittleEndian.AppendUint64(nil, length)); err != nil {
			return err
		}
	}
	err := c.do(c.call("MPI_T_cvar_get_info", c.number(atIndex), c.memory+atText, c.memory+atLengths, c.memory+atVerbosity,
		c.memory+atType, c.memory+atEnum, c.memory+atDescription, c.memory+atLengths+8, c.memory+atBind, c.memory+atScope))
	if err != nil {
		return err
	}
	if err := c.do(c.call("PMPI_Type_get_name", c.number(atType), c.memory+atTypeName, c.memory+atLength)); err != nil {
		return err
	}
	scope, bind := int(int32(c.number(atScope))), int(int32(c.number(atBind)))
	if scope >= mpichScopes {
		scope, bind = scope-mpichScopes, bind-mpichNoObject
	}
	c.facts.scope = scope
	kind, err := c.text(atTypeName)
	if err != nil {
		return err
	}
	c.facts.size = mpiTypes[kind]
	switch {
	case scope == scopeConstant:
		return fmt.Errorf("%s is a constant of the MPI library", c.name)
	case scope == scopeReadOnly:
		return fmt.Errorf("%s is read-only while the job runs: set it at launch", c.name)
	case scope < 0 || scope > scopeAllEqual:
		return fmt.Errorf("%s has a scope that is not known: %d", c.name, scope)
	case bind != 0:
		return fmt.Errorf("%s belongs to an object of MPI (a communicator, a window); only those of the library are changed", c.name)
	case c.facts.size == 0:
		return fmt.Errorf("%s holds values of type %s; only whole numbers are changed", c.name, kind)
	}
	return c.findWords()
}

// findWords finds the names of the values, if they have any.
func (c *control) findWords() error {
	c.facts.words = make(map[string]int64)
	enum := c.number(atEnum)
	if enum == 0 {
		description, err := c.text(atDescription)
		if err == nil {
			c.facts.words = describedWords(c.name, description)
		}
		return err
	}
	if err := c.do(c.call("MPI_T_enum_get_info", enum, c.memory+atItems, c.memory+atTypeName, c.memory+atLength)); err != nil {
		return err
	}
	names, err := c.list(min(int(int32(c.number(atItems))), mostItems), func(i, name, length uint64) batchCall {
		return c.call("MPI_T_enum_get_item", enum, i, c.memory+atNumbers+8*i, name, length)
	})
	for i, name := range names {
		c.facts.words[name] = int64(int32(c.number(atNumbers + 8*uint64(i))))
	}
	return err
}

// unknown is the error for a name that the library does not know.
func (c *control) unknown() error {
	unknown := fmt.Errorf("the MPI library has no control variable %s", c.name)
	if c.do(c.call("MPI_T_cvar_get_num", c.memory+atItems)) != nil {
		return unknown
	}
	names, err := c.list(int(int32(c.number(atItems))), func(i, name, length uint64) batchCall {
		call := c.call("MPI_T_cvar_get_info", i, name, length, 0, 0, 0, 0, 0, 0, 0)
		call.mayFail = true // of a component that was closed
		return call
	})
	if near := symname.Near(c.name, names, mostSuggested); err == nil && len(near) > 0 {
		return fmt.Errorf("%w; did you mean %s?", unknown, strings.Join(near, ", "))
	}
	return unknown
}

// list has the names of n things told, by calls that take where the i-th goes.
func (c *control) list(n int, tell func(i, name, length uint64) batchCall) (names []string, err error) {
	for first := 0; first < n; first += maxBatch {
		some := min(n-first, maxBatch)
		var calls []batchCall
		for i := range uint64(some) {
			length := binary.LittleEndian.AppendUint64(nil, textBytes)
			if err := c.visit.Write(c.memory+atLengths+8*i, length); err != nil {
				return nil, err
			}
			if err := c.visit.Write(c.memory+atTexts+textBytes*i, []byte{0}); err != nil {
				return nil, err
			}
			calls = append(calls, tell(uint64(first)+i, c.memory+atTexts+textBytes*i, c.memory+atLengths+8*i))
		}
		if err := c.do(calls...); err != nil {
			return nil, err
		}
		for i := range uint64(some) {
			name, err := c.text(atTexts + textBytes*i)
			if err != nil {
				return nil, err
			}
			names = append(names, name)
		}
	}
	return names, nil
}

// read returns the variable's value.
func (c *control) read() (int64, error) {
	if err := c.do(c.call("MPI_T_cvar_read", c.handle, c.memory+atValue)); err != nil {
		return 0, err
	}
	shift := 64 - 8*c.facts.size
	return int64(c.number(atValue)<<shift) >> shift, nil
}

// write gives the variable a value, and reads it back.
func (c *control) write(value int64) error {
	if err := c.visit.Write(c.memory+atGiven, access.BytesOf(value, 8)); err != nil {
		return err
	}
	if err := c.do(c.call("MPI_T_cvar_write", c.handle, c.memory+atGiven)); err != nil {
		return err
	}
	now, err := c.read()
	if err == nil && now != value {
		err = fmt.Errorf("%s reads back as %d instead of %d", c.name, now, value)
	}
	return err
}

// close lets go of the variable; the value stays. MPI_T stays initialized, for it
// counts: where the program does not use it itself, the variables would be gone for
// the rest of the run when the count came back to 0 (MPICH 4.0).
func (c *control) close() {
	if c.handle != 0 {
		_ = c.do(c.call("MPI_T_cvar_handle_free", c.memory+atHandle)) // it is MPI's to lose
	}
}

func (c *control) call(function string, arguments ...uint64) batchCall {
	return batchCall{name: function, function: c.functions[function], arguments: arguments}
}

// do makes calls, which all have to succeed.
func (c *control) do(calls ...batchCall) error {
	code, err := c.try(calls...)
	if err == nil && code != 0 {
		number := code >> 32 // from the process: it may be anything
		if number < 1 || number > uint64(len(calls)) {
			return fmt.Errorf("%d calls of MPI: no answer of ours: %#x", len(calls), code)
		}
		err = fmt.Errorf("%s: MPI error %d", calls[number-1].name, int32(code))
	}
	return err
}

// try makes calls up to the first that fails, and returns what [batchCode] does.
func (c *control) try(calls ...batchCall) (uint64, error) {
	return c.visit.Call(batchCode(calls))
}

// number reads a word of the memory; 0 where it cannot be read, which no call
// leaves there that has succeeded.
func (c *control) number(at uint64) uint64 {
	word := make([]byte, 8)
	if c.visit.Read(c.memory+at, word) != nil {
		return 0
	}
	return binary.LittleEndian.Uint64(word)
}

// text reads a text of the memory.
func (c *control) text(at uint64) (string, error) {
	data := make([]byte, mostDescribed)
	if err := c.visit.Read(c.memory+at, data); err != nil {
		return "", err
	}
	text, _, _ := bytes.Cut(data, []byte{0})
	return string(text), nil
}
