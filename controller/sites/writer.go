// SPDX-License-Identifier: Apache-2.0

package sites

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
)

// writer writes patches into a process from outside. It is safe while the
// process runs: programs and landings are written before anything leads to
// them, and what a thread may be executing or following changes in one byte, or
// while all threads are stopped.
type writer struct {
	memory   *shm.Memory // nil: no DMLib
	mapper   Mapper      // instead
	rewriter Rewriter    // nil: threads cannot be stopped
	process  proc.Holder
	pid      int
	seen     *seen // of a batch; nil: everything is read when it is needed
}

// hooks are what programs call to measure entries and exits; 0 without DMLib.
func (w writer) hooks() (entry, exit uint64) {
	if w.memory == nil {
		return 0, 0
	}
	app := w.memory.App()
	return app.PatchEntry, app.PatchExit
}

const anyPoint = shm.AtAlloc | shm.AtLock | shm.AtIO | shm.AtStub | shm.AtPatch | shm.AtGate

// mapAt has memory mapped: by DMLib, at its next hook or in the start gate, or
// by the mapper.
func (w writer) mapAt(ctx context.Context, start, end uint64) (err error) {
	if w.memory == nil {
		err = w.mapper.Map(ctx, start, end-start)
	} else {
		_, err = w.memory.Run(ctx, shm.Command{Op: shm.OpMap, At: anyPoint, Args: [8]uint64{start, end - start}})
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
	mappings, err := w.mappings()
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

// mappings are those of the process, in a batch as of a moment ago. Code that
// was unloaded since is not what is compared before it is changed.
func (w writer) mappings() (found []objfile.Mapping, err error) {
	if w.seen == nil {
		return objfile.Mappings(w.pid)
	}
	if now := time.Now(); now.After(w.seen.stale) {
		w.seen.mappings, err = objfile.Mappings(w.pid)
		w.seen.stale = time.Now().Add(mappingsAge * time.Since(now))
	}
	return w.seen.mappings, err
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
	if w.rewriter == nil {
		return errNoRewriter
	}
	if err := w.rewriter.Rewrite(ctx, proc.Change{Address: address, From: from[:last+1], To: to[:last+1]}); err != nil {
		return fmt.Errorf("%w: %w", errStopping, err)
	}
	return w.check(address, to)
}

// rehearse finds out whether a place can be patched that needs all threads to be
// stopped.
func (w writer) rehearse(ctx context.Context, p *spot) error {
	if !p.site.Wide() || p.active {
		return nil
	}
	if err := w.rewriter.Rewrite(ctx, proc.Change{Address: p.site.Address, From: p.site.Original, To: p.site.Original}); err != nil {
		return fmt.Errorf("%w: %w", errStopping, err)
	}
	return nil
}

var (
	// errStopping: code of several bytes could not be changed.
	errStopping   = fmt.Errorf("%w: its threads cannot be stopped for a whole jump", patch.ErrUnpatchable)
	errNoRewriter = fmt.Errorf("%w: nobody here may stop its threads for a whole jump", patch.ErrUnpatchable)
)

// differences are the first and the last byte in which two texts differ that do.
func differences(a, b []byte) (first, last int) {
	for first = 0; a[first] == b[first]; first++ {
	}
	for last = len(a) - 1; a[last] == b[last]; last-- {
	}
	return first, last
}

func (w writer) word(address uint64) (uint64, error) {
	content, err := w.read(address, 8)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(content), nil
}

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
		err = fmt.Errorf("code at %#x of process %d reads back differently", address, w.pid)
	}
	return err
}
