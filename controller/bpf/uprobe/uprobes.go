// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attune-hpc/attune/controller/bpf"
)

const uprobes = "uprobes"

// Uprobes counts and records calls of functions. Nothing is loaded into the
// kernel before the first Attach.
type Uprobes struct {
	options Options
	// done is closed by Close, recording once some point delivers records.
	done      chan struct{}
	recording chan struct{}
	drain     atomic.Pointer[drain] // of Run, once it drains
	plans     planTable
	watches   watchTable
	ring      recordRing
	detacher  detacher

	// mu is held while the kernel attaches (8 ms), never while it detaches.
	// It comes before the mutexes of plans, watches and ring.
	mu       sync.Mutex
	programs *uprobePrograms
	attached map[attachKey]*attached
	closed   bool
}

// Options tunes Uprobes; the zero value is good.
type Options struct {
	// RingBytes is the size of the record buffer, a power of two and a
	// multiple of the page size; 0: 2 MiB, which hold 52,428 records: 50 ms
	// of a million a second, and the reader comes every millisecond.
	RingBytes uint32
	// MaxWatches bounds the pairs of process and point that are watched at
	// one time; 0: 1,024. Each takes 650 bytes.
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

// ErrClosed is returned by whatever is called after Close.
var ErrClosed = errors.New("uprobes are closed")

// ErrDetaching is returned by Close if the kernel still detached probes when
// its time was up. They go away by themselves.
var ErrDetaching = errors.New("kernel still detaches uprobes")

// New checks that uprobes can be had at all: it fails with an
// *UnsupportedError without the privilege. The caller must Close it.
func New(opts Options) (*Uprobes, error) {
	if err := bpf.RequirePrivilege(uprobes); err != nil {
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

// Lost returns how many records found the ring full, of all processes.
func (u *Uprobes) Lost() uint64 { return u.ring.lost() }

// Settle waits until the kernel has taken out all probes of attachments that
// were closed before, or until ctx ends. Nobody needs to: it is for whoever
// measures what comes next.
func (u *Uprobes) Settle(ctx context.Context) error {
	select {
	case <-u.detacher.settled():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
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

	var errs []error
	if !u.detacher.wait(u.options.CloseTimeout) {
		errs = append(errs, ErrDetaching)
	}
	if programs != nil {
		errs = append(errs, u.ring.close(), u.plans.close(), u.watches.close(), programs.close())
	}
	return errors.Join(errs...)
}
