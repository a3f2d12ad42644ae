// SPDX-License-Identifier: Apache-2.0

// Package confine takes from a process what it does not need: rights that it would have
// from a service which has started it, system calls, and memory of the machine.
package confine

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Apart calls f, and waits for it, in a thread that is to have no capabilities but those to
// keep, of which it gets none that it had not, nor any that the file of a program would
// give that it executes; err is why it has others. The thread ends with f, and with it children
// that are to (PR_SET_PDEATHSIG).
func Apart(f func(err error), keep ...uintptr) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: the thread ends with this goroutine
		if unix.Gettid() == unix.Getpid() {
			// But for the first one, which Go cannot end, and whose rights /proc shows as
			// those of the process. While it is taken, another one is found.
			defer runtime.UnlockOSThread()
			Apart(f, keep...)
			return
		}
		f(drop(keep))
	}()
	<-done
}

// drop takes rights from this thread, and from what it executes.
func drop(keep []uintptr) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	const words, bits = 2, 32
	var kept [words]uint32
	for _, number := range keep {
		kept[number/bits] |= 1 << (number % bits)
	}
	for number := range uintptr(words * bits) {
		if kept[number/bits]&(1<<(number%bits)) != 0 {
			continue
		}
		// EPERM without CAP_SETPCAP: then what is permitted bounds an exec, too,
		// since there are no new privileges. EINVAL: the kernel has no more.
		err := unix.Prctl(unix.PR_CAPBSET_DROP, number, 0, 0, 0)
		if err != nil && !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("drop capability %d: %w", number, err)
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var has [words]unix.CapUserData
	if err := unix.Capget(&header, &has[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	for i := range has {
		has[i].Effective &= kept[i]
		has[i].Permitted &= kept[i]
		has[i].Inheritable = 0
	}
	if err := unix.Capset(&header, &has[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	return nil
}

// Nobody is the user, and the group, that has no files.
const Nobody = 65534

// oomScore is added to that of the process which has started this one, whose maximum is
// maxOOMScore.
const (
	oomScore    = 200
	maxOOMScore = 1000
)

// Bound bounds what this process takes of the machine: Go's collector tries hard from
// goal on, and the process ends at limit, both in bytes of private memory
// (RLIMIT_DATA), since address space is also what other processes share with it. It leaves no core,
// nobody but root looks into it, and the kernel ends it before whatever has started it.
func Bound(goal int64, limit uint64) error {
	debug.SetMemoryLimit(goal)
	var errs []error
	for resource, limit := range map[int]uint64{unix.RLIMIT_CORE: 0, unix.RLIMIT_DATA: limit} {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			errs = append(errs, fmt.Errorf("limit %d: %w", resource, err))
		}
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		errs = append(errs, fmt.Errorf("not dumpable: %w", err))
	}
	return errors.Join(append(errs, goFirst())...)
}

// goFirst has the kernel end this process before the one that has started it where memory
// is short.
func goFirst() error {
	const path = "/proc/self/oom_score_adj"
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	score, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(strconv.Itoa(min(score+oomScore, maxOOMScore))), 0)
}
