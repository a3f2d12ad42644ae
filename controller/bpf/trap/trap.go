// SPDX-License-Identifier: Apache-2.0

package trap

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"

	"github.com/attune-hpc/attune/controller/bpf"
)

// Trap sends SIGTRAP to chosen threads of one process when they come to an
// instruction, as a breakpoint does; whoever traces them sees them stop before
// anything else happens to them: one instruction further, or at the exit of a
// function where it returned to. Threads that are not chosen, and those that block the
// signal, pass by. It is made of uprobes, so the code must lie in a mapped file, and
// goes with this process at the latest.
//
// Its methods may be called from any goroutine, but Close once.
type Trap struct {
	objects trapsObjects
	links   []link.Link
	disarm  sync.Once
}

// Options says where a trap is set.
type Options struct {
	PID int
	// File is the executable file, which the process has mapped, and Offset where
	// the instruction lies in it.
	File   *os.File
	Offset uint64
	// AtExit means where the function returns to that begins there. A call that
	// another one was made in does not count.
	AtExit bool
}

const traps = "breakpoints by uprobes"

// New sets a trap. It fails with an *UnsupportedError without privilege. The
// caller must Close it.
func New(o Options) (*Trap, error) {
	spec, err := loadTraps()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", traps, err)
	}
	kernel, err := features.LinuxVersionCode()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", traps, err)
	}
	bpf.Preallocate(spec, kernel)
	multi := bpf.MultiInOneProcess(kernel) && features.HaveBPFLinkUprobeMulti() == nil
	if !multi {
		for _, program := range spec.Programs {
			program.AttachType = ebpf.AttachNone
		}
	}
	if err := bpf.SetPIDNamespace(spec); err != nil {
		return nil, fmt.Errorf("%s: %w", traps, err)
	}
	t := &Trap{}
	err = spec.LoadAndAssign(&t.objects, &ebpf.CollectionOptions{
		Programs: ebpf.ProgramOptions{KernelTypes: bpf.KernelTypes(spec.Types, bpf.KernelStructs)},
	})
	if err != nil {
		return nil, bpf.Explain(traps, err)
	}
	if err := t.attach(o, multi); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// attach puts the probes in. The one at the exit comes first: of a call that was
// seen to begin it must be seen to end.
func (t *Trap) attach(o Options, multi bool) error {
	executable, err := link.OpenExecutable(bpf.DescriptorPath(o.File))
	if err != nil {
		return err
	}
	probes := []bpf.Probe{{Program: t.objects.Trap}}
	if o.AtExit {
		probes = []bpf.Probe{{Program: t.objects.TrapLeft, AtExit: true}, {Program: t.objects.TrapEntered}}
	}
	for _, probe := range probes {
		added, err := probe.Attach(executable, []bpf.Spot{{Offset: o.Offset}}, o.PID, multi)
		if err != nil {
			return explain(err, multi)
		}
		t.links = append(t.links, added)
	}
	return nil
}

// explain says what is missing where each probe is one of perf, for which the two narrow
// capabilities are not enough.
func explain(err error, multi bool) error {
	if !multi && errors.Is(err, os.ErrPermission) {
		return &bpf.UnsupportedError{Feature: traps, Reason: "not permitted", Remedy: "needs root or CAP_SYS_ADMIN before Linux 6.10", Err: err}
	}
	return bpf.Explain(traps, err)
}

// Choose has a thread sent the signal when it comes there the next time, also if it
// has been before, as long as it is traced: the signal would end it else.
func (t *Trap) Choose(tid int) error {
	if err := t.objects.Trapped.Put(uint32(tid), trapsTrapHit{}); err != nil {
		return fmt.Errorf("%s: thread %d: %w", traps, tid, err)
	}
	return nil
}

// Forget is for a thread that is not to be sent the signal any more.
func (t *Trap) Forget(tid int) { _ = t.objects.Trapped.Delete(uint32(tid)) } // it may never have been chosen

// Hit says whether a chosen thread was sent the signal since it was chosen.
func (t *Trap) Hit(tid int) bool {
	var hit trapsTrapHit
	err := t.objects.Trapped.Lookup(uint32(tid), &hit)
	return err == nil && hit.Instruction != 0
}

// Disarm has nobody sent the signal any more. A thread that is just there may be
// sent it still; [Trap.Hit] tells then.
func (t *Trap) Disarm() {
	t.disarm.Do(func() { _ = t.objects.Disarmed.Set(uint32(1)) }) // it only fails after Close
}

// Close disarms the trap and takes it away, for which the kernel takes 0.1 s.
func (t *Trap) Close() error {
	t.Disarm()
	var errs []error
	for _, l := range t.links {
		errs = append(errs, l.Close())
	}
	return errors.Join(append(errs, t.objects.Close())...)
}
