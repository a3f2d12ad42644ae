// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"slices"
	"sync"

	"github.com/attune-hpc/attune/controller/inject"
	"github.com/attune-hpc/attune/controller/ring"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// brief are the programs that have always been over before anything could be done in
// them. Whoever has DMLib executes these without it, while processes run past the
// gate and can be entered: one that lives after all is, as those are that come without.
type brief struct {
	mu     sync.Mutex // guards what follows, and that the processes know it
	may    bool
	paths  []string
	listed []ring.Brief // of the paths
	ever   bool         // some process may have been started without DMLib
}

// learn takes note of a program that is brief, or is not any more. Of those that there
// is no room for, processes go on to have DMLib.
func (b *brief) learn(c *Controller, path string, is bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at := slices.Index(b.paths, path); at >= 0 {
		b.paths, b.listed = slices.Delete(b.paths, at, at+1), slices.Delete(b.listed, at, at+1)
	}
	if is && len(b.listed) < ring.MaxBrief {
		program, err := ring.BriefAt(path)
		if err != nil {
			c.log.Debug("a program that is brief is started with DMLib all the same", "reason", err)
			return
		}
		b.paths, b.listed = append(b.paths, path), append(b.listed, program)
	}
	if b.may {
		b.tellAll(c)
	}
}

// lets says whether brief programs are started without DMLib from now on.
func (b *brief) lets(c *Controller, may bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if may == b.may {
		return
	}
	b.may = may
	b.tellAll(c)
}

// tellAll tells the processes that have DMLib. The caller holds mu.
func (b *brief) tellAll(c *Controller) {
	for _, t := range c.targets.list() {
		if memory := t.memory.Load(); memory != nil {
			b.tell(memory)
		}
	}
}

// tell tells one process. The caller holds mu.
func (b *brief) tell(memory *ring.Memory) {
	if !b.may {
		memory.SetBrief(nil)
		return
	}
	memory.SetBrief(b.listed)
	b.ever = b.ever || len(b.listed) > 0
}

// welcome tells a process that has come.
func (b *brief) welcome(memory *ring.Memory) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tell(memory)
}

// mechanismPtrace is one of the node.
const mechanismPtrace = "ptrace"

// enters says whether this controller can bring DMLib into whatever process turns out
// to live. Where it reaches descendants only, it may be none of their ancestors.
func (c *Controller) enters() bool {
	return inject.Supported && c.config.LibraryPath != "" && slices.ContainsFunc(c.mechanisms, func(m *attunev1.Mechanism) bool {
		return m.GetName() == mechanismPtrace && m.GetAvailable() && m.GetReason() == ""
	})
}

// spared says whether a process may have been started without DMLib because its
// program, or the one that started it, has been brief: it has not been told where the
// gate is.
func (c *Controller) spared(t *target) bool {
	c.brief.mu.Lock()
	ever := c.brief.ever
	c.brief.mu.Unlock()
	if !ever {
		return false
	}
	environment, err := procid.Environ(t.pid)
	return err == nil && !slices.ContainsFunc(environment, func(entry []byte) bool {
		return bytes.HasPrefix(entry, []byte("ATTUNE_SOCKET="))
	})
}

// mayEnter says whether DMLib is brought into a process while it runs.
func (c *Controller) mayEnter(t *target) bool { return c.config.LateLibrary || t.spared.Load() }
