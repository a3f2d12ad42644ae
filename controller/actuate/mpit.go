// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/attune-hpc/attune/internal/objfile"
)

// mpiPrefix begins the names of MPI's control variables.
const mpiPrefix = "mpi_t."

// Offsets in the scratch page, after those of the allocators.
const (
	atHandle = 536
	atCount  = 544
)

// largestControl is what a control variable may hold to be taken for an
// integer: the bits of a floating-point number look far greater.
const largestControl = 1 << 48

// control is an MPI control variable of one rank, and a handle for it. Every
// call that it takes is made before a call of one of the program's own MPI
// functions, so that the thread is not inside MPI already.
type control struct {
	library
	name      string
	functions map[string]uint64
	page      scratch
	handle    uint64
	size      int // of the variable
}

// controlFunctions are those of MPI_T that a control needs. MPI_T_cvar_get_info
// takes too many arguments; what it would tell is found out by other means.
var controlFunctions = []string{
	"MPI_T_init_thread", "MPI_T_finalize", "MPI_T_cvar_get_index", "MPI_T_cvar_handle_alloc",
	"MPI_T_cvar_handle_free", "MPI_T_cvar_read", "MPI_T_cvar_write",
}

// openControl gets a handle for the variable. The caller closes it.
func openControl(ctx context.Context, process Process, l library, name string) (*control, error) {
	c := &control{library: l, name: name, functions: make(map[string]uint64)}
	for _, function := range controlFunctions {
		found, err := single(process, function)
		if err != nil {
			return nil, err
		}
		c.functions[function] = found.Address
	}
	var err error
	if c.page, err = l.mapScratch(ctx, process); err != nil {
		return nil, err
	}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.page.close(ctx))
	}
	return c, nil
}

// start initializes MPI_T and opens the variable, or leaves both as they were.
func (c *control) start(ctx context.Context) error {
	if err := c.do(ctx, "MPI_T_init_thread", 0, c.page.address+atSize); err != nil {
		return err
	}
	if err := c.open(ctx); err != nil {
		return errors.Join(err, c.do(context.WithoutCancel(ctx), "MPI_T_finalize"))
	}
	return nil
}

func (c *control) open(ctx context.Context) error {
	at, err := c.page.text(atName, c.name)
	if err != nil {
		return err
	}
	if err := c.do(ctx, "MPI_T_cvar_get_index", at, c.page.address+atSize); err != nil {
		return fmt.Errorf("no control variable %s: %w", c.name, err)
	}
	index, err := c.page.read(atSize, 4)
	if err != nil {
		return err
	}
	if err := c.do(ctx, "MPI_T_cvar_handle_alloc", uint64(index), 0, c.page.address+atHandle, c.page.address+atCount); err != nil {
		return err
	}
	handle, err := c.page.read(atHandle, 8)
	if err != nil {
		return err
	}
	c.handle = uint64(handle)
	count, err := c.page.read(atCount, 4)
	if err == nil && count != 1 {
		err = fmt.Errorf("%s has %d elements; only single numbers are changed", c.name, count)
	}
	if err == nil {
		err = c.measure(ctx)
	}
	if err != nil {
		return errors.Join(err, c.do(context.WithoutCancel(ctx), "MPI_T_cvar_handle_free", c.page.address+atHandle))
	}
	return nil
}

// measure finds the variable's size: how many bytes a read writes over.
func (c *control) measure(ctx context.Context) error {
	var seen [2]uint64
	for i, fill := range []int64{0, -1} {
		if _, err := c.page.write(atOld, bytesOf(fill, 8)); err != nil {
			return err
		}
		if err := c.do(ctx, "MPI_T_cvar_read", c.handle, c.page.address+atOld); err != nil {
			return err
		}
		now, err := c.page.read(atOld, 8)
		if err != nil {
			return err
		}
		seen[i] = uint64(now)
	}
	for same := seen[0] ^ ^seen[1]; c.size < 8 && same>>(8*c.size)&0xff == 0xff; {
		c.size++
	}
	if c.size != 1 && c.size != 4 && c.size != 8 {
		return fmt.Errorf("%s is no integer: it has %d bytes", c.name, c.size)
	}
	return nil
}

// read returns the variable's value.
func (c *control) read(ctx context.Context) (int64, error) {
	if err := c.do(ctx, "MPI_T_cvar_read", c.handle, c.page.address+atOld); err != nil {
		return 0, err
	}
	value, err := c.page.read(atOld, c.size)
	if err == nil && (value > largestControl || value < -largestControl) {
		err = fmt.Errorf("%s does not hold an integer", c.name)
	}
	return value, err
}

// write is the call that gives the variable a value.
func (c *control) write(value int64) (Call, error) {
	data := bytesOf(value, c.size)
	at, err := c.page.write(atNew, data)
	if err == nil && c.size < 8 && value != value<<(64-8*c.size)>>(64-8*c.size) {
		err = fmt.Errorf("%d does not fit into %s", value, c.name)
	}
	return Call{Function: c.functions["MPI_T_cvar_write"], Arguments: []uint64{c.handle, at}}, err
}

// rehearse writes the present value: a rank that would refuse does so now.
func (c *control) rehearse(ctx context.Context, value int64) error {
	if _, err := c.write(value); err != nil {
		return err
	}
	return c.do(ctx, "MPI_T_cvar_write", c.handle, c.page.address+atNew)
}

// close lets go of the variable and of MPI_T.
func (c *control) close(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	_, err := c.page.write(atHandle, bytesOf(int64(c.handle), 8))
	return errors.Join(err,
		c.do(ctx, "MPI_T_cvar_handle_free", c.page.address+atHandle),
		c.do(ctx, "MPI_T_finalize"), c.page.close(ctx))
}

// do calls a function of MPI_T.
func (c *control) do(ctx context.Context, function string, arguments ...uint64) error {
	result, _, err := c.call(ctx, c.functions[function], arguments...)
	if err == nil {
		err = mpiError(result)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", function, err)
	}
	return nil
}

// mpiError is an MPI function's result.
func mpiError(result uint64) error {
	if code := int32(result); code != 0 {
		return fmt.Errorf("MPI error %d", code)
	}
	return nil
}

// isMPI says whether a setting is an MPI control variable, and which.
func isMPI(name string) (variable string, ok bool) { return strings.CutPrefix(name, mpiPrefix) }

// numbering is what a process must offer whose function calls are counted.
type numbering interface {
	// Numbered finds the function's counter. The error says why it has none.
	Numbered(function objfile.Resolved) (Numbered, error)
}
