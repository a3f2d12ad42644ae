// SPDX-License-Identifier: Apache-2.0

package procevent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"

	"github.com/attune-hpc/attune/controller/bpf"
	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/procid"
)

// ProcessEvents follows processes through fork, exec and exit. Children of
// members become members in the kernel, at fork; a process leaves with its
// last thread.
type ProcessEvents struct {
	objects  allObjects
	wanted   wantedNames
	attached bpf.Tracepoints
	reader   *ringbuf.Reader
	shares   shares
	hurry    atomic.Bool // the ring is looked at without a rest
	close    sync.Once
	closed   error
}

// Options tunes ProcessEvents; the zero value is good.
type Options struct {
	// RingBytes is the size of the event buffer, a power of two and a
	// multiple of the page size; 0: 1 MiB, which holds the life of 1,000 processes.
	RingBytes uint32
	// MaxProcesses bounds the members alive at one time; 0: 16,384.
	MaxProcesses uint32
	// NodeWide also tells of processes that are no members when they execute a
	// file whose name is wanted, see Want. Slots have shares of MaxProcesses, see Shares.
	NodeWide bool
	// Accounts has a node-wide one account for those, for members from their next exec on
	// and for whom Account names, and for what comes of them. A program looks at each
	// switch of each CPU for that.
	Accounts bool
}

// eventObjects are the programs of which a ProcessEvents needs each.
type eventObjects struct {
	processEventsMaps
	processEventsVariables
	Exec *ebpf.Program `ebpf:"process_exec"`
	Exit *ebpf.Program `ebpf:"process_exit"`
	Fork *ebpf.Program `ebpf:"process_fork"`
}

// allObjects are those of one that accounts.
type allObjects struct {
	eventObjects
	Switch *ebpf.Program `ebpf:"process_switch"` // nil: it is none
}

func (o Options) accounts() bool { return o.NodeWide && o.Accounts }

const processEvents = "process events"

// New loads and attaches the programs; from then on forks of
// members are followed. It fails with an *UnsupportedError without privilege
// or without kernel type information. The caller must Close it.
func New(opts Options) (*ProcessEvents, error) {
	spec, err := processEventsSpec(opts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", processEvents, err)
	}
	p := &ProcessEvents{}
	p.Hurry(opts.NodeWide)
	var wanted any = &p.objects.eventObjects
	if opts.NodeWide {
		spec.Programs[processEventsProgProcessExec] = spec.Programs[processEventsProgProcessExecNamed]
	}
	if opts.accounts() {
		wanted = &p.objects
	}
	err = spec.LoadAndAssign(wanted, &ebpf.CollectionOptions{
		Programs: ebpf.ProgramOptions{KernelTypes: bpf.KernelTypes(spec.Types, slices.Concat(bpf.ExecStructs, bpf.TakenStructs))},
	})
	if err != nil {
		return nil, bpf.Explain(processEvents, err)
	}
	if err := p.start(opts); err != nil {
		return nil, errors.Join(bpf.Explain(processEvents, err), p.Close())
	}
	return p, nil
}

func processEventsSpec(opts Options) (*ebpf.CollectionSpec, error) {
	spec, err := loadProcessEvents()
	if err != nil {
		return nil, err
	}
	if opts.RingBytes != 0 {
		spec.Maps[processEventsMapProcessRing].MaxEntries = opts.RingBytes
	}
	if opts.MaxProcesses != 0 {
		spec.Maps[processEventsMapJobTgids].MaxEntries = opts.MaxProcesses
		spec.Maps[processEventsMapAccounts].MaxEntries = opts.MaxProcesses
	}
	if !opts.accounts() {
		spec.Maps[processEventsMapAccounts].MaxEntries = 1 // and that is not used
	}
	var room uint32
	if opts.NodeWide {
		room = spec.Maps[processEventsMapJobTgids].MaxEntries
	}
	err = errors.Join(spec.Variables[processEventsVarAccounting].Set(opts.accounts()), spec.Variables[processEventsVarSharedRoom].Set(room))
	if err != nil {
		return nil, err
	}
	return spec, bpf.SetPIDNamespace(spec)
}

func (p *ProcessEvents) start(opts Options) error {
	var err error
	if opts.NodeWide {
		if p.shares.counts, err = bpf.MapArray[processEventsMemberShare](p.objects.MemberShares); err != nil {
			return fmt.Errorf("map counts of members: %w", err)
		}
		p.shares.room = int64(p.objects.JobTgids.MaxEntries())
	}
	if p.reader, err = ringbuf.NewReader(p.objects.ProcessRing); err != nil {
		return fmt.Errorf("open ring: %w", err)
	}
	if p.objects.Switch != nil {
		if err := p.attached.Attach("sched_switch", p.objects.Switch); err != nil {
			return err
		}
	}
	// Exit first: a member that ends before fork and exec are attached must
	// not stay a member.
	return errors.Join(
		p.attached.Attach("sched_process_exit", p.objects.Exit),
		p.attached.Attach("sched_process_exec", p.objects.Exec),
		p.attached.Attach("sched_process_fork", p.objects.Fork),
	)
}

// Add makes the process a member of job slot 0. Children that it has already
// are not: the caller looks for them after Add, which leaves no gap.
func (p *ProcessEvents) Add(pid int) error { return p.AddTo(pid, 0) }

// AddTo makes the process a member of the given job slot; its descendants
// inherit the slot and their events carry it. [procid.ErrGone] if it is at its end,
// and no event will tell of that; ErrShare if the slot has no share left.
func (p *ProcessEvents) AddTo(pid int, slot uint32) error {
	now, is := p.slotOf(pid)
	if is && now == slot {
		return nil
	}
	if !p.shares.enter(slot) {
		return fmt.Errorf("follow process %d: %w", pid, ErrShare)
	}
	if err := p.objects.JobTgids.Put(int32(pid), slot); err != nil {
		p.shares.leave(slot)
		return fmt.Errorf("follow process %d: %w", pid, err)
	}
	if is {
		p.shares.leave(now)
	}
	// The kernel marks a process as exiting, and then takes it out of the map and tells
	// of its end. What is still in there may have come after that.
	stat, err := procid.ReadStat(pid)
	over := errors.Is(err, procid.ErrGone) || err == nil && stat.Exiting && stat.Threads <= 1
	if over && p.objects.JobTgids.Delete(int32(pid)) == nil {
		p.shares.leave(slot)
		return fmt.Errorf("follow process %d: %w", pid, procid.ErrGone)
	}
	return nil
}

// Remove ends the membership of one process, not of its children. It is no
// error if it was none.
func (p *ProcessEvents) Remove(pid int) error {
	slot, is := p.slotOf(pid)
	err := p.objects.JobTgids.Delete(int32(pid))
	if err == nil && is {
		p.shares.leave(slot)
	}
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("unfollow process %d: %w", pid, err)
	}
	return nil
}

// slotOf is the slot that a process is a member of, if of any.
func (p *ProcessEvents) slotOf(pid int) (slot uint32, is bool) {
	err := p.objects.JobTgids.Lookup(int32(pid), &slot)
	return slot, err == nil
}

// Account accounts for a process, in all its life, and for what comes of it from its next
// exec on. It does nothing without Options.Accounts. A process that executes nothing any
// more is forgotten in favour of others.
func (p *ProcessEvents) Account(pid int) error {
	if p.objects.Switch == nil {
		return nil
	}
	if err := p.objects.HandedOver.Put(int32(pid), uint32(1)); err != nil {
		return fmt.Errorf("account for process %d: %w", pid, err)
	}
	return nil
}

// Has says whether a process is a member now: its descendants are, from its next
// fork on.
func (p *ProcessEvents) Has(pid int) bool {
	_, is := p.slotOf(pid)
	return is
}

// Hurry says whether events are wanted at once, rather than at the next beat at less
// cost. They are from the beginning if NodeWide was given, else not. It may be
// called from any goroutine.
func (p *ProcessEvents) Hurry(hurry bool) { p.hurry.Store(hurry) }

// Run hands events to handle, in the order of the kernel, until ctx ends (nil) or
// Close is called (nil). Events that happened before ctx ended are handed over
// first. One Run at a time.
func (p *ProcessEvents) Run(ctx context.Context, handle func(Event)) error {
	stop := context.AfterFunc(ctx, func() {
		// The only error is that of a closed reader, which ends Run as well.
		_ = p.reader.Flush()
	})
	defer stop()
	// While events come, the ring is looked at once a beat: a script's processes live
	// and end between two, and to be woken by each would cost more than they do.
	for quiet := beat.Quiet; ; {
		hurry := p.hurry.Load()
		seen, err := p.look(hurry || quiet >= beat.Quiet, handle)
		switch {
		case errors.Is(err, ringbuf.ErrFlushed), errors.Is(err, os.ErrClosed):
			return nil
		case err != nil:
			return fmt.Errorf("read process events: %w", err)
		case hurry:
			continue
		}
		quiet++
		if seen {
			quiet = 0
		}
		beat.Wait(ctx)
	}
}

// look hands over the events that there are, or waits for one and hands that over.
func (p *ProcessEvents) look(wait bool, handle func(Event)) (seen bool, err error) {
	handOver := func(sample []byte) error {
		event, err := decodeEvent(sample)
		if err != nil {
			return err
		}
		handle(event)
		seen = true
		return nil
	}
	if !wait {
		err = bpf.DrainRing(p.reader, handOver)
		return seen, err
	}
	p.reader.SetDeadline(time.Time{})
	record, err := p.reader.Read()
	if err == nil {
		err = handOver(record.RawSample)
	}
	return seen, err
}

// Refused returns how many children of a slot's members, or of others with the same share,
// were not followed because that share is in use. Not after Close.
func (p *ProcessEvents) Refused(slot uint32) uint64 { return p.shares.refused(slot) }

// Lost returns how many events were lost: those that found the ring full, and the
// children that could not be followed because MaxProcesses was reached. Those of Refused are
// not among them: nobody else has lost anything.
func (p *ProcessEvents) Lost() uint64 {
	var events, members uint64
	// Reading a loaded map's variable fails only after Close.
	_ = p.objects.LostEvents.Get(&events)
	_ = p.objects.LostMembers.Get(&members)
	return events + members
}

// Close detaches the programs and ends Run. It is idempotent.
func (p *ProcessEvents) Close() error {
	p.close.Do(func() {
		var err error
		if p.reader != nil {
			err = p.reader.Close()
		}
		p.closed = errors.Join(err, p.attached.Close(), p.shares.counts.Unmap(), p.objects.close())
	})
	return p.closed
}

func (o *allObjects) close() error {
	// Of the embedded ones the maps alone have a Close, and programs may be nil.
	return errors.Join(o.Close(), o.Exec.Close(), o.Exit.Close(), o.Fork.Close(), o.Switch.Close())
}

// decodeEvent decodes a process_event, an exec_event or an exit_event, which their sizes
// tell apart. The bytes are copied, for they need not be aligned.
func decodeEvent(raw []byte) (Event, error) {
	var about struct {
		event processEventsProcessEvent
		exec  processEventsExecEvent
		exit  processEventsExitEvent
	}
	switch {
	case copied(&about.event, raw):
		return eventOf(&about.event), nil
	case copied(&about.exec, raw):
		event := eventOf(&about.exec.Event)
		event.Program = programOf(&about.exec)
		return event, nil
	case copied(&about.exit, raw):
		event := eventOf(&about.exit.Event)
		event.Taken = takenOf(&about.exit)
		return event, nil
	}
	return Event{}, fmt.Errorf("process event of %d bytes, want %d, %d or %d",
		len(raw), unsafe.Sizeof(about.event), unsafe.Sizeof(about.exec), unsafe.Sizeof(about.exit))
}

// copied fills in a value from its bytes; false: they are of another size.
func copied[T any](to *T, raw []byte) bool {
	if len(raw) != int(unsafe.Sizeof(*to)) {
		return false
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(to)), len(raw)), raw)
	return true
}
