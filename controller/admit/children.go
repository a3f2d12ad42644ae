// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/gate"
	"github.com/attune-hpc/attune/controller/inject"
	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
)

const (
	// childrenPace is between two looks at whether forked children ask to register,
	// childrenRest the same while no process has DMLib, or nothing is measured in any.
	childrenPace = 50 * time.Millisecond
	childrenRest = 500 * time.Millisecond
)

// children lets forked children of processes with DMLib register.
type children struct {
	ways
	told member.Keep[atomic.Bool] // that a child of a process was refused
}

// run attends to children that ask until ctx ends.
func (c *children) run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		pace := childrenRest
		for _, t := range c.Members.List() {
			memory := t.Memory()
			if memory == nil {
				continue
			}
			if c.Placer.Points() > 0 {
				pace = childrenPace
			}
			memory.Beat()
			if memory.ChildAsks() {
				c.Go(func() { c.attend(ctx, t, memory) })
			}
		}
		timer.Reset(time.Until(beat.Near(time.Now().Add(pace))))
	}
}

// attend attends to a child. That one is refused is said once of each process: it may
// have many, or say so itself.
func (c *children) attend(ctx context.Context, parent *member.Member, memory *shm.Memory) {
	err := memory.AttendChild(ctx)
	if err != nil && !c.told.Of(parent).Swap(true) {
		c.Log.Info("forked child not instrumented", "forked_by", parent.PID(), "reason", err)
	}
}

// nurse looks at the children of a process that came to the gate or was entered.
func (w ways) nurse(a gate.Attachment) shm.Nurse {
	inode := a.Memory.Inode()
	return func(id int) func() error {
		child := &askingChild{
			parent: a.PID, inode: inode, id: id, injected: a.Hello.Flags&gate.Injected != 0, gate: w.GatePath,
		}
		child.find()
		return child.free
	}
}

// askingChild is a forked child of a process that has the process' memory file mapped.
// It names itself as its C library does, which in a pid namespace of its own is how
// others call themselves as well, and after a fork past the C library is its parent.
type askingChild struct {
	parent, id int
	inode      uint64 // of the memory file
	injected   bool   // the parent did not come to the gate, whose system calls its filters may forbid
	gate       string // path of the socket that it is to register at

	found     []int // all that it may be
	strangers []int // processes that it is not, in the order of their ids
}

var errNoChild = errors.New("which process asks is not to be found")

// find looks for the processes that have come since it was called last.
func (c *askingChild) find() {
	if c.is(c.id) {
		c.found = []int{c.id}
		return
	}
	pids, err := procid.List()
	if err != nil {
		return
	}
	for _, pid := range pids {
		at, known := slices.BinarySearch(c.strangers, pid)
		if known || slices.Contains(c.found, pid) {
			continue
		}
		if inner, err := procid.InnerID(pid, pid); err == nil && inner == c.id && c.is(pid) {
			c.found = append(c.found, pid)
			continue
		}
		c.strangers = slices.Insert(c.strangers, at, pid)
	}
}

// is says whether a process, or one of its threads, has the memory file and is not of the
// one that it belongs to: a thread of that has forked past the C library, where its child
// goes by its id.
func (c *askingChild) is(pid int) bool {
	if pid <= 0 {
		return false
	}
	if status, err := procid.ReadStatus(pid); err != nil || status.Process == c.parent {
		return false
	}
	mappings, err := objfile.Mappings(pid)
	return err == nil && slices.ContainsFunc(mappings, func(m objfile.Mapping) bool {
		return m.Inode == c.inode && m.Path == "/memfd:"+shm.FileName
	})
}

// free says why the child must make no system calls, or register where it would.
func (c *askingChild) free() error {
	c.find()
	if len(c.found) == 0 {
		return errNoChild
	}
	for _, pid := range c.found {
		var err error
		if c.injected {
			err = inject.Unfiltered(pid)
		} else {
			err = inject.SameFilters(pid, c.parent)
		}
		if err == nil {
			err = meets(pid, c.gate)
		}
		if err != nil {
			return fmt.Errorf("pid %d: %w", pid, err)
		}
	}
	return nil
}

var errOtherGate = errors.New("it has another root directory or mounts, and would register elsewhere")

// resolveCached is RESOLVE_CACHED of <linux/openat2.h>: without asking a file system.
const resolveCached = 0x20

// meets says why a path leads a process to another file than us: who listens there would
// get its memory, and have it call what it likes. Only what the kernel knows already is looked
// at: a file system of the process' own may answer late, or never.
func meets(pid int, path string) error {
	ours, err := fileAt(unix.AT_FDCWD, path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	fd, err := procid.InRoot(pid, path, resolveCached)
	if err != nil {
		return fmt.Errorf("%w: %w", errOtherGate, err)
	}
	defer func() { _ = unix.Close(fd) }()
	if theirs, err := fileAt(fd, ""); err != nil || theirs != ours {
		return errors.Join(errOtherGate, err)
	}
	return nil
}

// file is which one it is.
type file struct {
	major, minor uint32
	inode        uint64
}

func fileAt(folder int, path string) (file, error) {
	var s unix.Statx_t
	err := unix.Statx(folder, path, unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_INO, &s)
	return file{s.Dev_major, s.Dev_minor, s.Ino}, err
}
