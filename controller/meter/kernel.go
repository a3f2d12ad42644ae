// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"github.com/attune-hpc/attune/controller/bpf/uprobe"
	"github.com/attune-hpc/attune/controller/member"
)

// errBPFOff is the reason where the owner does not want BPF.
var errBPFOff = errors.New("BPF is switched off (--no-bpf)")

// kernel is what is loaded into the kernel, on demand.
type kernel struct {
	use     bool // BPF may be used
	options uprobe.Options
	members *member.Set
	records *records
	account *account
	hurry   func() // has news told at once
	run     func(part string, f func(context.Context) error)
	log     *slog.Logger

	mu      sync.Mutex // guards what follows
	asked   bool
	uprobes *uprobe.Uprobes
	err     error
}

// load returns the kernel's way to watch functions, or why there is none. Nothing
// is loaded before a point needs it.
func (k *kernel) load() (*uprobe.Uprobes, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.asked {
		return k.uprobes, k.err
	}
	k.asked = true
	if !k.use {
		k.err = errBPFOff
		return nil, k.err
	}
	k.options.Log = k.log
	k.uprobes, k.err = uprobe.New(k.options)
	if k.err == nil {
		uprobes := k.uprobes
		k.run("uprobes", func(ctx context.Context) error { return uprobes.Run(ctx, k.take) })
	}
	return k.uprobes, k.err
}

// loaded returns them if they were asked for, else nil.
func (k *kernel) loaded() *uprobe.Uprobes {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.uprobes
}

// lost returns how many records the kernel's ring had no room for.
func (k *kernel) lost() uint64 {
	if uprobes := k.loaded(); uprobes != nil {
		return uprobes.Lost()
	}
	return 0
}

// take passes on what the kernel recorded of one process. It must not wait for the
// Analyzer, or nobody would empty the kernel's ring.
func (k *kernel) take(batch uprobe.Batch) {
	for _, t := range slices.Backward(k.members.List()) { // the newest image of a pid
		if uint32(t.PID()) != batch.Process {
			continue
		}
		if k.records.takeUprobed(t, batch) { // it was expected, and is faster than its news
			k.hurry()
		}
		return
	}
	k.account.add(totals{lostBPF: batch.Hits}) // the process is not there any more
}

// flush passes on what the kernel has recorded up to now. It must not be called
// under the mutex of records.
func (k *kernel) flush() {
	uprobes := k.loaded()
	if uprobes == nil {
		return
	}
	if err := uprobes.Flush(); err != nil {
		k.log.Warn("records of uprobes", "error", err)
	}
}

func (k *kernel) close() error {
	uprobes := k.loaded()
	if uprobes == nil {
		return nil
	}
	err := uprobes.Close()
	if errors.Is(err, uprobe.ErrDetaching) {
		err = nil // the kernel finishes by itself
	}
	return err
}
