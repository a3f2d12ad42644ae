// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/cgroup"
)

// group is the command's control group, if there can be one.
type group struct {
	made *cgroup.Made
	err  error // why there is none
	held bool  // the kernel holds a limit
}

func newGroup() *group {
	made, err := cgroup.Make()
	return &group{made: made, err: err}
}

// fd is the descriptor of a group of version 2 to fork into; 0: none.
func (g *group) fd() int {
	if g.made == nil {
		return 0
	}
	return g.made.FD()
}

// required says whether the command must begin in the group of version 2: only there the
// kernel holds its limit.
func (g *group) required() bool { return g.held && g.made.MemoryInV2() }

// around calls start while this thread, which is locked, is in the group.
func (g *group) around(start func() error) error {
	if g.made == nil {
		return start()
	}
	tid := unix.Gettid()
	if g.err = g.made.Enter(tid); g.err != nil {
		if g.held {
			return fmt.Errorf("a limit of memory cannot be held: %w", g.err)
		}
		return start()
	}
	err := start()
	if leave := g.made.Leave(tid); leave != nil {
		g.err = leave
	}
	return err
}

// memory is what the group is charged with now and was at most.
func (g *group) memory() (now, peak uint64, known bool) {
	if g.made == nil || g.err != nil {
		return 0, 0, false
	}
	now, known = g.made.Memory()
	peak, _ = g.made.MemoryPeak()
	return now, peak, known
}

// peak is the most that the group was charged with.
func (g *group) peak() (uint64, bool) {
	if g.made == nil || g.err != nil {
		return 0, false
	}
	return g.made.MemoryPeak()
}

// reason is why there is no peak.
func (g *group) reason() string {
	if g.err != nil {
		return "no control group: " + g.err.Error()
	}
	return "the memory controller does not serve groups below the one of attune"
}

// began says whether the command began in the group of version 2.
func (g *group) began(inside bool) {
	if g.made == nil || inside {
		return
	}
	if g.made.MemoryInV2() {
		g.err = errors.New("the kernel does not let the command begin in one")
	}
	if err := g.made.DropV2(); err != nil && g.err == nil {
		g.err = err
	}
}

// hold has the kernel let the group have no more memory than that: it reclaims, and
// kills when that is not enough.
func (g *group) hold(bytes uint64) error {
	if g.made == nil {
		return g.err
	}
	g.held = true
	return g.made.LimitMemory(bytes)
}

// killedForMemory says whether the kernel has killed because the group had as many bytes.
func (g *group) killedForMemory(bytes uint64) bool {
	return g.made != nil && g.made.KilledForMemory(bytes)
}

// kill kills what is in the group of version 2, if there is one.
func (g *group) kill() {
	if g.made != nil {
		g.made.Kill()
	}
}

func (g *group) close() error {
	if g.made == nil {
		return nil
	}
	return g.made.Remove()
}
