// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/attune-hpc/attune/controller/bpf"
	"github.com/attune-hpc/attune/internal/queue"
)

// Uprobes counts and records calls of functions. Nothing is loaded into the
// kernel before the first Attach. Its parts have its methods: attacher for what is
// probed, watchTable for processes and counts, recorder for records.
type Uprobes struct {
	attacher
	watchTable
	recorder
}

// ErrDetaching is returned by Close if the kernel still detached probes when
// its time was up. They go away by themselves.
var ErrDetaching = errors.New("kernel still detaches uprobes")

// New checks that uprobes can be had at all: it fails with an
// *UnsupportedError without the privilege. The caller must Close it.
func New(opts Options) (*Uprobes, error) {
	if err := bpf.RequirePrivilege(uprobes); err != nil {
		return nil, err
	}
	opts.CloseTimeout = cmp.Or(opts.CloseTimeout, time.Second)
	u := &Uprobes{
		attacher: attacher{options: opts, attached: make(map[attachKey]*attached)},
		recorder: recorder{done: make(chan struct{}), begun: queue.NewBell()},
	}
	u.attacher.watches, u.recorder.watches, u.records = &u.watchTable, &u.watchTable, &u.recorder
	return u, nil
}

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
	programs, first := u.detachAll()
	if !first {
		return nil
	}
	u.translators.close()
	close(u.done)
	var errs []error
	if !u.detacher.wait(u.options.CloseTimeout) {
		errs = append(errs, ErrDetaching)
	}
	if programs != nil {
		errs = append(errs, u.unload(programs))
	}
	return errors.Join(errs...)
}
