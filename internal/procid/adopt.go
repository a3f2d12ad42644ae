// SPDX-License-Identifier: Apache-2.0

package procid

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// OfPidfd returns the pid of the process that a pidfd refers to. [ErrGone] if it
// has been reaped; any other descriptor is an error too.
func OfPidfd(fd int) (int, error) {
	info, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(fd))
	if err != nil {
		return 0, fmt.Errorf("pid of a pidfd: %w", err)
	}
	for line := range strings.Lines(string(info)) {
		text, found := strings.CutPrefix(line, "Pid:")
		if !found {
			continue
		}
		pid, err := strconv.Atoi(strings.TrimSpace(text))
		if err == nil && pid <= 0 {
			err = fmt.Errorf("process of a pidfd: %w", ErrGone)
		}
		return pid, err
	}
	return 0, fmt.Errorf("descriptor %d is no pidfd", fd)
}

// Adopt takes hold of a process by a pidfd that it opened of itself, however long
// ago: it may have ended, and its pid be another's. pid and startTicks are what it
// was; of one that has ended the executable is not known. Adopt owns fd, also
// after an error: [ErrGone] if the pidfd is of another process.
func Adopt(fd, pid int, startTicks uint64) (*Process, error) {
	p := &Process{fd: fd, exited: make(chan struct{}), watched: make(chan struct{})}
	var err error
	if p.identity, err = adopted(fd, pid, startTicks); err == nil {
		err = unix.SetNonblock(fd, true) // as os.NewFile wants it for the poller
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("pidfd of %d: %w", pid, err)
	}
	return p, nil
}

func adopted(fd, pid int, startTicks uint64) (Identity, error) {
	boot, err := BootID()
	known := Identity{BootID: boot, PID: pid, StartTicks: startTicks}
	if err != nil {
		return known, err
	}
	owner, err := OfPidfd(fd)
	if errors.Is(err, ErrGone) {
		return known, nil
	}
	if err != nil {
		return known, err
	}
	identity, err := Of(owner)
	switch {
	case errors.Is(err, ErrGone):
		return known, nil // a zombie, or reaped since
	case err != nil:
		return known, err
	case !identity.SameProcess(known):
		return known, fmt.Errorf("it is of pid %d: %w", owner, ErrGone)
	}
	return identity, nil
}
