// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/internal/procid"
)

// reached is an error if a process has passed a limit.
func (r resource) reached(t *Target, _ Place, value string) error {
	limit, err := bounds(value)
	if r.used == nil || err != nil || limit.Cur == unix.RLIM_INFINITY {
		return err
	}
	if binds, err := r.binds(t); !binds || err != nil {
		return err
	}
	return r.used(t, limit.Cur)
}

// binds says whether the kernel holds a process to a limit.
func (r resource) binds(t *Target) (bool, error) {
	status, err := procid.ReadStatus(t.pid())
	if err != nil {
		return false, procid.GoneError(err)
	}
	has := func(capability uintptr) bool { return status.Effective>>capability&1 == 1 }
	exempt := slices.ContainsFunc(r.exempt, has) || r.rootExempt && status.Users.Real == 0
	return !exempt || !procid.InInitialUsers(t.pid()), nil
}

// errPast means that what is used never becomes less, so that the limit stays as it is.
const errPast = access.Final("it would be killed")

// usedCPU looks at the CPU time of all threads that the process has had.
func usedCPU(t *Target, seconds uint64) error {
	used, err := procid.CPUTime(t.pid())
	if err != nil {
		return procid.GoneError(err)
	}
	if used.Seconds() >= float64(seconds) {
		return fmt.Errorf("the process has used %v: %w", used, errPast)
	}
	return nil
}

// usedMemory looks at fields of the status file: a program that has more mapped, or locked where
// all that it maps is, than it may gets no more, and its stack cannot grow.
func usedMemory(fields ...string) func(*Target, uint64) error {
	return func(t *Target, most uint64) error {
		for _, field := range fields {
			var used uint64
			if _, err := procid.ReadNumbers(procid.Path(t.pid(), "status"), map[string]*uint64{field: &used}); err != nil {
				return procid.GoneError(err)
			}
			if used>>10 > most>>10 {
				return fmt.Errorf("%s of the process is %d kB: it would get no more memory", field, used>>10)
			}
		}
		return nil
	}
}

// usedThreads looks at the threads of all processes of the process' user that are to be seen: the
// kernel counts those together.
func usedThreads(t *Target, most uint64) error {
	status, err := procid.ReadStatus(t.pid())
	if err != nil {
		return procid.GoneError(err)
	}
	pids, err := procid.List()
	if err != nil {
		return err
	}
	var used uint64
	for _, pid := range pids {
		var user, threads uint64 // the real user's id is the first of that line
		_, err := procid.ReadNumbers(procid.Path(pid, "status"), map[string]*uint64{"Uid": &user, "Threads": &threads})
		if err == nil && user == uint64(status.Users.Real) { // else it has ended
			used += threads
		}
	}
	if used > most {
		return fmt.Errorf("user %d has %d threads: the process could start no more", status.Users.Real, used)
	}
	return nil
}

// usedDescriptors looks at what the process has open.
func usedDescriptors(t *Target, most uint64) error {
	numbers, err := procid.AppendNumbers(nil, procid.Path(t.pid(), "fd"))
	for _, number := range numbers {
		if uint64(number) >= most {
			return fmt.Errorf("the process has descriptor %d: it could open no more files", number)
		}
	}
	return err
}

// usedFileSize looks at the files that the process may write to: a write beyond the limit
// kills, also in a file that is as long already.
func usedFileSize(t *Target, bytes uint64) error {
	numbers, err := procid.AppendNumbers(nil, procid.Path(t.pid(), "fd"))
	for _, number := range numbers {
		d, err := procid.ReadDescriptor(t.pid(), number)
		if err != nil || d.Flags&unix.O_ACCMODE == unix.O_RDONLY {
			continue // closed meanwhile, or only read
		}
		st, err := t.file(number)
		if err == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && uint64(max(st.Size, 0)) >= bytes {
			return fmt.Errorf("the file of descriptor %d has %d bytes: it would be killed when it writes there", number, st.Size)
		}
	}
	return err
}

// usedRealtime looks for threads that the limit is about. How long one has run without a
// pause is not to be seen.
func usedRealtime(t *Target, _ uint64) error {
	places, err := t.threads()
	if err != nil {
		return err
	}
	for _, place := range places {
		attr, err := unix.SchedGetAttr(place.Number, 0)
		if err == nil && realtime(int(attr.Policy)) {
			return fmt.Errorf("%s has a realtime policy, and may be killed", place)
		}
	}
	return nil
}
