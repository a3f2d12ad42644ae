// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
)

// claim makes sure that one controller at a time enters a process: a lock that
// ends with its owner, on a file that every process has. Whoever may open a file may
// have it locked, which for this one only those may that could enter the process as
// well. The caller calls release.
func claim(pid int) (release func(), err error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return nil, fmt.Errorf("pid %d: %w", pid, procid.GoneError(err))
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = fmt.Errorf("%w: it is entering it right now", ErrHeld)
		}
		return nil, errors.Join(err, file.Close())
	}
	return func() {
		// A process that is just being started has the descriptor as well, until it
		// execs, so that to close it would not end the lock.
		_ = unix.Flock(int(file.Fd()), unix.LOCK_UN)
		_ = file.Close()
	}, nil
}

// Controller returns the process id, as it numbers itself, of the controller that
// lives and has a process; 0 if there is none beside this process.
func Controller(process *proc.Handle) (int, error) {
	self, err := shm.ThisProcess()
	if err != nil {
		return 0, err
	}
	all, err := owners(process)
	for _, owner := range all {
		if owner != self && owner.Alive() {
			return owner.PID, nil
		}
	}
	return 0, err
}

// orphaned says whether a process is under a controller that has died without
// letting go; [ErrHeld] if it is under one that lives.
func orphaned(process *proc.Handle) (bool, error) {
	all, err := owners(process)
	for _, owner := range all {
		if owner.Alive() {
			return false, fmt.Errorf("%w: process %d", ErrHeld, owner.PID)
		}
	}
	return len(all) > 0, err
}

// owners are the controllers that have not let go of a process: each has written
// itself down in the memory that it shares with the process. What a forked child has
// of its parent's is not the child's.
func owners(process *proc.Handle) (all []shm.Owner, err error) {
	self, err := procid.InnerID(process.PID(), process.PID())
	if err != nil {
		return nil, err
	}
	mappings, err := objfile.Mappings(process.PID())
	if err != nil {
		return nil, err
	}
	for _, m := range mappings {
		if m.Path != "/memfd:"+shm.FileName || m.Offset != 0 {
			continue
		}
		header := make([]byte, shm.HeaderSize)
		if err := process.Read(m.Start, header); err != nil {
			return nil, err
		}
		owner, detached, err := shm.ReadOwner(header)
		if of := shm.ProcessOf(header); err == nil && !detached && (of == 0 || of == self) {
			all = append(all, owner)
		}
	}
	return all, nil
}
