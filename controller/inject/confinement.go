// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"errors"
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/internal/procid"
)

// Confinement returns a guard for the commands of a process that DMLib is in
// ([shm.Executor.SetGuard]): it refuses them, by [shm.ErrConfined], once the
// process is under other seccomp filters than before. DMLib itself asks as well, in
// the thread that is to execute a command, but that takes a system call. Only
// the first thread is looked at here.
func Confinement(pid int, before procid.Status) (guard func() error) {
	return func() error {
		now, err := procid.ReadStatus(pid)
		if err == nil && (now.Seccomp != before.Seccomp || now.Filters != before.Filters) {
			return shm.ErrConfined
		}
		return nil
	}
}

// ErrOtherFilters is why [SameFilters] does not vouch for a process.
var ErrOtherFilters = errors.New("other seccomp filters")

// SameFilters says why a process that was forked by another one may be under other
// seccomp filters than that one is now; nil: all its threads are under the same, which
// are inherited and never fewer.
func SameFilters(forked, by int) error {
	parent, err := procid.ReadThread(by, by)
	if err != nil {
		return err
	}
	child, err := procid.ReadThread(forked, forked)
	if err != nil {
		return err
	}
	switch {
	case child.Seccomp != parent.Seccomp || child.Filters != parent.Filters:
		return fmt.Errorf("%w: it has put itself under some since it was forked", ErrOtherFilters)
	case child.Seccomp == unix.SECCOMP_MODE_STRICT:
		return fmt.Errorf("%w: it is in the strict mode, which is none", ErrOtherFilters)
	}
	return checkFilters(forked)
}

// Unfiltered says why a process may be under a seccomp filter; nil: none of its
// threads is.
func Unfiltered(pid int) error {
	tids, _, err := procid.AllThreads(pid)
	if err != nil {
		return err
	}
	for _, tid := range tids {
		s, err := procid.ReadThread(pid, tid)
		switch {
		case errors.Is(err, procid.ErrGone): // the thread has ended
		case err != nil:
			return err
		case s.Seccomp != 0:
			return fmt.Errorf("%w: it has some", ErrOtherFilters)
		}
	}
	return nil
}

// checkFilters refuses a process of whose threads some are under more seccomp
// filters than others: what one of them may do another, which comes to a hook
// later, may not. Those with as many are taken to have the same, since filters
// are inherited.
func checkFilters(pid int) error {
	tids, _, err := procid.AllThreads(pid)
	if err != nil {
		return err
	}
	least, most := math.MaxInt, 0
	for _, tid := range tids {
		if s, err := procid.ReadThread(pid, tid); err == nil { // else it has ended
			least, most = min(least, s.Filters), max(most, s.Filters)
		}
	}
	if least < most {
		return fmt.Errorf("%w: its threads are under different seccomp filters", ErrUnsuited)
	}
	return nil
}
