// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/ringbuf"
)

const uprobes = "uprobes"

// Uprobes counts and records calls of functions. Nothing is loaded into the
// kernel before the first Attach.
type Uprobes struct {
	options UprobesOptions
	// done is closed by Close, recording once some point delivers records.
	done      chan struct{}
	recording chan struct{}
	watches   watchTable
	detaching sync.WaitGroup

	// mu is held while the kernel attaches (8 ms), never while it detaches.
	// It comes before the mutex of watches.
	mu       sync.Mutex
	programs *uprobePrograms
	attached map[attachKey]*attached
	closed   bool
}

// UprobesOptions tunes Uprobes; the zero value is good.
type UprobesOptions struct {
	// RingBytes is the size of the record buffer, a power of two and a
	// multiple of the page size; 0: 1 MiB, which holds 21,845 records.
	RingBytes uint32
	// MaxWatches bounds the pairs of process and point that are watched at
	// one time; 0: 1,024. Each takes 600 bytes.
	MaxWatches uint32
	// MaxCalls bounds the calls under way at points with entry and exit; 0:
	// 8,192. Beyond it the oldest are forgotten.
	MaxCalls uint32
	// CloseTimeout bounds how long Close waits for the kernel to detach; 0:
	// one second.
	CloseTimeout time.Duration

	// singly attaches with one perf event per function, as kernels before
	// 6.6 need it, so that a test can try that way on newer ones.
	singly bool
}

// uprobePrograms is what is loaded at the first Attach.
type uprobePrograms struct {
	objects uprobesObjects
	reader  *ringbuf.Reader
	multi   bool
	whyNot  string // multi, if it is not
	kernel  uint32
}

// ErrClosed is returned by whatever is called after Close.
var ErrClosed = errors.New("uprobes are closed")

// ErrDetaching is returned by Close if the kernel still detached probes when
// its time was up. They go away by themselves.
var ErrDetaching = errors.New("kernel still detaches uprobes")

// NewUprobes checks that uprobes can be had at all: it fails with an
// *UnsupportedError without the privilege. The caller must Close it.
func NewUprobes(opts UprobesOptions) (*Uprobes, error) {
	if err := uprobesSupported(); err != nil {
		return nil, err
	}
	if err := requirePrivilege(uprobes); err != nil {
		return nil, err
	}
	if opts.CloseTimeout == 0 {
		opts.CloseTimeout = time.Second
	}
	return &Uprobes{
		options:   opts,
		done:      make(chan struct{}),
		recording: make(chan struct{}),
		attached:  make(map[attachKey]*attached),
	}, nil
}

// load puts the programs into the kernel. The caller holds mu.
func (u *Uprobes) load() error {
	if u.programs != nil {
		return nil
	}
	whyNot, err := u.whyNotMulti()
	if err != nil {
		return err
	}
	p := &uprobePrograms{multi: whyNot == "", whyNot: whyNot}
	spec, err := u.spec(p.multi)
	if err != nil {
		return fmt.Errorf("%s: %w", uprobes, err)
	}
	if err := spec.LoadAndAssign(&p.objects, nil); err != nil {
		return explain(uprobes, err)
	}
	if err := p.start(&u.watches); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", uprobes, err), p.objects.Close())
	}
	u.programs = p
	return nil
}

// whyNotMulti says why each function needs a probe of its own; "" if not.
func (u *Uprobes) whyNotMulti() (string, error) {
	if u.options.singly {
		return "not wanted", nil
	}
	err := features.HaveBPFLinkUprobeMulti()
	switch {
	case err == nil:
		return "", nil
	case errors.Is(err, ebpf.ErrNotSupported):
		return "not in this kernel (6.6 or newer)", nil
	}
	return "", explain(uprobes, err)
}

func (u *Uprobes) spec(multi bool) (*ebpf.CollectionSpec, error) {
	spec, err := loadUprobes()
	if err != nil {
		return nil, err
	}
	for _, program := range spec.Programs {
		if !multi {
			program.AttachType = ebpf.AttachNone
		}
	}
	size := func(name string, entries uint32) {
		if entries != 0 {
			spec.Maps[name].MaxEntries = entries
		}
	}
	size(uprobesMapRecordRing, u.options.RingBytes)
	size(uprobesMapWatched, u.options.MaxWatches)
	size(uprobesMapWatches, u.options.MaxWatches)
	size(uprobesMapCalls, u.options.MaxCalls)
	namespace, err := ownPIDNamespace()
	if err != nil {
		return nil, err
	}
	return spec, errors.Join(
		spec.Variables[uprobesVarPidNamespaceDevice].Set(namespace.device),
		spec.Variables[uprobesVarPidNamespaceInode].Set(namespace.inode),
	)
}

func (p *uprobePrograms) start(watches *watchTable) error {
	var err error
	if p.kernel, err = features.LinuxVersionCode(); err != nil {
		return err
	}
	if p.reader, err = ringbuf.NewReader(p.objects.RecordRing); err != nil {
		return err
	}
	if err := watches.open(p.objects.Watched, p.objects.Watches, p.objects.Interval); err != nil {
		return errors.Join(err, p.reader.Close())
	}
	return nil
}

// Lost returns how many records found the ring full, of all processes.
func (u *Uprobes) Lost() uint64 {
	return u.counter(func(p *uprobePrograms) *ebpf.Variable { return p.objects.LostRecords })
}

// Unpaired returns how many returns from functions with probes at both ends
// could not be paired with a call: it was under way already when the probe
// came, or MaxCalls was exceeded. They are not counted as hits.
func (u *Uprobes) Unpaired() uint64 {
	return u.counter(func(p *uprobePrograms) *ebpf.Variable { return p.objects.UnpairedReturns })
}

func (u *Uprobes) counter(choose func(*uprobePrograms) *ebpf.Variable) uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	var n uint64
	if u.programs != nil {
		// Reading a mapped variable fails only if its size is not n's.
		_ = choose(u.programs).Get(&n)
	}
	return n
}

// Close detaches everything, ends Run and waits for the kernel as long as
// CloseTimeout says. It is idempotent.
func (u *Uprobes) Close() error {
	u.mu.Lock()
	if u.closed {
		u.mu.Unlock()
		return nil
	}
	u.closed = true
	close(u.done)
	for key, a := range u.attached {
		delete(u.attached, key)
		u.detach(a)
	}
	programs := u.programs
	u.mu.Unlock()

	errs := []error{u.awaitDetached()}
	if programs != nil {
		errs = append(errs, u.watches.close(), programs.reader.Close(), programs.objects.Close())
	}
	return errors.Join(errs...)
}

func (u *Uprobes) awaitDetached() error {
	detached := make(chan struct{})
	go func() { // ends with the kernel's work, which nothing can hurry
		u.detaching.Wait()
		close(detached)
	}()
	timeout := time.NewTimer(u.options.CloseTimeout)
	defer timeout.Stop()
	select {
	case <-detached:
		return nil
	case <-timeout.C:
		return ErrDetaching
	}
}
