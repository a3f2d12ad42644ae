// SPDX-License-Identifier: Apache-2.0

package sites

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
)

// Process is what Sites needs of a process.
type Process interface {
	// PID in the controller's pid namespace.
	PID() int
	proc.Holder
	// Memory is what DMLib shares with the controller; nil without DMLib.
	Memory() *shm.Memory
	// Images returns the objects mapped at present.
	Images() ([]objfile.Image, error)
	// Map maps size bytes at start, readable and executable, where DMLib is not in the
	// process; unix.EEXIST where something is mapped.
	Map(ctx context.Context, start, size uint64) error
	// Rewrite makes changes of more than one byte of code while no thread is within. The
	// error says why some were not made: [proc.ErrBusy] where trying again may help.
	Rewrite(ctx context.Context, changes ...proc.Change) error
}

var (
	// ErrNoDMLib means that the process has no DMLib, which measuring needs, or one that
	// serves no patches.
	ErrNoDMLib = errors.New("attune's library (DMLib) is not in the process")
	// ErrTouched means that the code is not what it should be: somebody else
	// changes it as well. Nothing was written.
	ErrTouched = errors.New("code is not what its file says: a debugger, a uprobe or another tool is at work")
	// errStopping: code of several bytes could not be changed.
	errStopping = fmt.Errorf("%w: its threads cannot be stopped for a whole jump", patch.ErrUnpatchable)
)

// writer writes patches into a process from outside. It is safe while the
// process runs: programs and landings are written before anything leads to
// them, and what a thread may be executing or following changes in one byte, or
// while all threads are stopped. Goroutines may share one without mapped.
type writer struct {
	process Process
	dmlib   *shm.Memory // nil: no DMLib
	mapped  *mapped     // nil: mappings are read when they are needed
}

// writerOf returns the writer for a process that can be patched now.
func writerOf(process Process) (writer, error) {
	w := writer{process: process, dmlib: process.Memory()}
	if w.dmlib == nil {
		return w, nil
	}
	app := w.dmlib.App()
	if !app.Ready || app.PatchEntry == 0 {
		return writer{}, fmt.Errorf("%w, or serves no patches there", ErrNoDMLib)
	}
	return w, nil
}

// hooks are what programs call to measure entries and exits; 0 without DMLib.
func (w writer) hooks() (entry, exit uint64) {
	if w.dmlib == nil {
		return 0, 0
	}
	app := w.dmlib.App()
	return app.PatchEntry, app.PatchExit
}

// mapPatience bounds how long memory is waited for. A program that has ended, or is
// idle, comes by no safe point, and who gives something back waits without a limit of
// their own.
const mapPatience = 2 * time.Second

// mapAt has memory mapped: by DMLib, at its next hook or in the start gate, or
// by the process.
func (w writer) mapAt(ctx context.Context, start, end uint64) (err error) {
	ctx, cancel := context.WithTimeout(ctx, mapPatience)
	defer cancel()
	if w.dmlib == nil {
		err = w.process.Map(ctx, start, end-start)
	} else {
		err = w.dmlib.Map(ctx, start, end-start)
	}
	if errors.Is(err, unix.EEXIST) {
		err = fmt.Errorf("%w: %w", patch.ErrUnpatchable, err)
	}
	return err
}

// holds says whether the process has mapped the file of a function where the
// function should lie. What is mapped may change at any time: the answer is as
// good as any that can be had without stopping the process.
func (w writer) holds(f Function) (bool, error) {
	return w.holdsAt(f.Image.Device, f.Image.Inode, f.Symbol.FileOffset, f.address())
}

// holdsAt is holds for any byte of a file.
func (w writer) holdsAt(device, inode, offset, address uint64) (bool, error) {
	mappings, err := w.mapped.all(w.process.PID())
	if err != nil {
		return false, err
	}
	for _, m := range mappings {
		if address >= m.Start && address < m.End {
			return m.Exec && m.Device == device && m.Inode == inode && address-m.Start+m.Offset == offset, nil
		}
	}
	return false, nil
}

// exchange writes what differs in from and to where from stands, and reads it
// back. [ErrTouched] where neither stands.
func (w writer) exchange(ctx context.Context, address uint64, from, to []byte) error {
	code, err := w.read(address, len(to))
	switch {
	case err != nil:
		return err
	case bytes.Equal(code, to):
		return nil
	case !bytes.Equal(code, from):
		return ErrTouched
	}
	first, last := differences(from, to)
	if first == last {
		return w.write(address+uint64(first), to[first:first+1])
	}
	if err := w.process.Rewrite(ctx, proc.Change{Address: address, From: from[:last+1], To: to[:last+1]}); err != nil {
		return fmt.Errorf("%w: %w", errStopping, err)
	}
	return w.check(address, to)
}

// stands says whether a patch is in the code.
func (w writer) stands(site patch.Site) bool {
	code, err := w.read(site.Address, len(site.Original))
	return err == nil && bytes.Equal(code, site.Patched())
}

// differences are the first and the last byte in which two texts differ that do.
func differences(a, b []byte) (first, last int) {
	for first = 0; a[first] == b[first]; first++ {
	}
	for last = len(a) - 1; a[last] == b[last]; last-- {
	}
	return first, last
}

// point makes a pointer lead to another program of its window: its second
// byte changes. The kernel promises no whole words for writes from outside, but
// one byte is old or new.
func (w writer) point(pointer, address uint64) error {
	now, err := w.word(pointer)
	if err != nil {
		return err
	}
	if now/patch.WindowBytes != address/patch.WindowBytes {
		return fmt.Errorf("pointer at %#x leads to %#x, not to the window of %#x", pointer, now, address)
	}
	return w.write(pointer+1, []byte{byte(address >> 8)})
}

func (w writer) word(address uint64) (uint64, error) { return proc.ReadWord(w.process, address) }

func (w writer) read(address uint64, size int) ([]byte, error) {
	code := make([]byte, size)
	err := proc.Read(w.process, address, code)
	return code, err
}

func (w writer) write(address uint64, code []byte) error {
	if err := proc.Write(w.process, address, code); err != nil {
		return err
	}
	return w.check(address, code)
}

// check reads back what was written.
func (w writer) check(address uint64, code []byte) error {
	written, err := w.read(address, len(code))
	if err == nil && !bytes.Equal(written, code) {
		err = fmt.Errorf("code at %#x of process %d reads back differently", address, w.process.PID())
	}
	return err
}
