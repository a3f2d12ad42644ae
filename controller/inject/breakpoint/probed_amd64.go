// SPDX-License-Identifier: Apache-2.0

package breakpoint

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/arch/x86/x86asm"
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/bpf/trap"
	"github.com/attune-hpc/attune/controller/inject/tracer"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
)

// probed is a breakpoint by uprobes. The kernel has written its own instruction over
// the first byte. At an entry it sends the signal when the one that was there has
// been executed, at an exit before anything else.
type probed struct {
	trap *trap.Trap
	exit bool
}

// Longest is how many bytes an instruction has at most.
const Longest = 15

// si_code of a signal that the kernel sends by itself, and the instruction by which
// it probes.
const (
	siKernel = 0x80
	int3     = 0xcc
)

func newProbed(process *proc.Handle, address uint64, exit bool) (Breakpoint, error) {
	const why = "the debug registers of this machine stop nobody (its hypervisor does not pass them on), and without them"
	pid := process.PID()
	if exit {
		if err := survivesReturnProbes(pid); err != nil {
			return nil, fmt.Errorf("%w: %s a return probe is needed: %w", tracer.ErrUnsuited, why, err)
		}
	}
	mapped, err := fileBehind(pid, address)
	if err != nil {
		return nil, fmt.Errorf("%w: %s %w", tracer.ErrUnsuited, why, err)
	}
	file, err := objfile.OpenMapped(pid, mapped)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	offset := address - mapped.Start + mapped.Offset
	if err := isOriginal(process, address, file, offset); err != nil {
		return nil, fmt.Errorf("%w: %s %w", tracer.ErrUnsuited, why, err)
	}
	trap, err := trap.New(trap.Options{PID: pid, File: file, Offset: offset, AtExit: exit})
	switch {
	case err == nil:
		return probed{trap, exit}, nil
	case errors.Is(err, os.ErrPermission):
		return nil, fmt.Errorf("%w: %s a uprobe is needed: %w", tracer.ErrDenied, why, err)
	case errors.Is(err, unix.ESRCH):
		return nil, tracer.ErrInterrupted
	}
	return nil, fmt.Errorf("%w: %s a uprobe is needed: %w", tracer.ErrUnsuited, why, err)
}

// survivesReturnProbes says why a return probe could end a process.
func survivesReturnProbes(pid int) error {
	images, err := objfile.Images(pid)
	if err != nil {
		return err
	}
	return objfile.ReturnProbes(images, objfile.Image.GOTSlots)
}

// fileBehind finds the file that the code at an address is mapped from.
func fileBehind(pid int, address uint64) (objfile.Mapping, error) {
	files, err := objfile.Mappings(pid)
	if err != nil {
		return objfile.Mapping{}, err
	}
	i := slices.IndexFunc(files, func(m objfile.Mapping) bool { return m.Exec && address >= m.Start && address < m.End })
	if i < 0 {
		return objfile.Mapping{}, fmt.Errorf("code that is in no file cannot be waited for: %#x", address)
	}
	return files[i], nil
}

// isOriginal refuses code that somebody has patched: the kernel would execute, and
// when the probe is taken out write back, what the file has there. A probe that is
// there already is the kernel's own.
func isOriginal(process *proc.Handle, address uint64, file *os.File, offset uint64) error {
	var want, got [Longest]byte
	n, err := file.ReadAt(want[:], int64(offset))
	if n == 0 {
		return err
	}
	if inst, err := x86asm.Decode(want[:n], 64); err == nil {
		n = inst.Len
	}
	if err := process.Read(address, got[:n]); err != nil {
		return err
	}
	if got[0] == int3 {
		got[0] = want[0]
	}
	if !bytes.Equal(got[:n], want[:n]) {
		return fmt.Errorf("code that was changed cannot be waited for: %#x", address)
	}
	return nil
}

func (p probed) Set(tid int) error {
	if err := p.trap.Choose(tid); err != nil {
		return fmt.Errorf("%w: %w", tracer.ErrUnsuited, err)
	}
	return nil
}

// Stopped takes note: the next signal of its kind may be the program's own.
func (p probed) Stopped(t *tracer.Thread, signal unix.Signal) bool {
	code, _, err := t.TrapCode(signal)
	return err == nil && code == siKernel && p.trap.Hit(t.ID) && p.trap.Choose(t.ID) == nil
}

func (p probed) AtExit() bool { return p.exit }

// Reached is known by then: the probe itself has looked.
func (probed) Reached(int, uint64) bool { return true }

func (p probed) Unset(tid int) { p.trap.Forget(tid) }

// Pause does nothing: the kernel's program stops nobody for a process that has ended.
func (probed) Pause(bool) {}

func (p probed) Disable() { p.trap.Disarm() }

func (p probed) Close() error { return p.trap.Close() }
