// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"sync"

	"github.com/attune-hpc/attune/controller/bpf/procevent"
	"github.com/attune-hpc/attune/controller/bpf/uprobe"
	"github.com/attune-hpc/attune/controller/track"
)

// errBPFOff is the reason where the owner does not want BPF.
var errBPFOff = errors.New("BPF is switched off (--no-bpf)")

// kernel is what is loaded into the kernel, on demand.
type kernel struct {
	mu      sync.Mutex // guards what follows
	asked   bool
	uprobes *uprobe.Uprobes
	err     error
}

// uprobes returns the kernel's way to watch functions, or why there is none.
// Nothing is loaded before a point needs it.
func (c *Controller) uprobes() (*uprobe.Uprobes, error) {
	k := &c.kernel
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.asked {
		return k.uprobes, k.err
	}
	k.asked = true
	if !c.config.UseBPF {
		k.err = errBPFOff
		return nil, k.err
	}
	k.uprobes, k.err = uprobe.New(c.config.uprobes)
	if k.err == nil {
		uprobes := k.uprobes
		c.run("uprobes", func(ctx context.Context) error { return uprobes.Run(ctx, c.uprobeRecords) })
	}
	return k.uprobes, k.err
}

// loadedUprobes returns them if they were asked for, else nil.
func (c *Controller) loadedUprobes() *uprobe.Uprobes {
	c.kernel.mu.Lock()
	defer c.kernel.mu.Unlock()
	return c.kernel.uprobes
}

func (k *kernel) close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.uprobes == nil {
		return nil
	}
	err := k.uprobes.Close()
	if errors.Is(err, uprobe.ErrDetaching) {
		err = nil // the kernel finishes by itself
	}
	return err
}

// source of process events: the best that this user may have. Nil: /proc is
// polled.
func (c *Controller) source() track.Source {
	if c.config.Source != nil {
		return c.config.Source
	}
	if c.config.UseBPF {
		events, err := procevent.New(procevent.Options{})
		if err == nil {
			return track.FromBPF(events)
		}
		c.log.Info("no process events by BPF", "reason", err)
	}
	connector, err := track.NewConnector()
	if err != nil {
		c.log.Info("no process connector, polling /proc", "reason", err)
		return nil
	}
	return connector
}
