// SPDX-License-Identifier: Apache-2.0

// Package confine takes from a process what it does not need: rights that it would have
// from a service which has started it, system calls, and memory of the machine.
package confine

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/briefthread"
)

// Rights are capabilities that a thread keeps of those that it has.
type Rights struct {
	// Keep are those of the thread, and of what it executes as user 0.
	Keep []uintptr
	// Start are those that it has beside them to start something, which does not have
	// them: to become another user.
	Start []uintptr
}

// Apart calls f, and waits for it, in a thread that is to have no capabilities but those to
// keep, of which it gets none that it had not, nor any that the file of a program would
// give that it executes; err is why it has others. The thread ends with f, and with it children
// that are to (PR_SET_PDEATHSIG).
func Apart(f func(err error), rights Rights) {
	briefthread.Do(func() { f(drop(rights)) })
}

// drop takes rights from this thread, and from what it executes.
func drop(rights Rights) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	kept := setOf(rights.Keep)
	for number := range uintptr(64) {
		if kept.Has(number) {
			continue
		}
		// EPERM without CAP_SETPCAP: then what is permitted bounds an exec, too,
		// since there are no new privileges. EINVAL: the kernel has no more.
		err := unix.Prctl(unix.PR_CAPBSET_DROP, number, 0, 0, 0)
		if err != nil && !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("drop capability %d: %w", number, err)
		}
	}
	header, has, err := readCapabilities()
	if err != nil {
		return err
	}
	kept |= setOf(rights.Start)
	for i := range has {
		has[i].Effective &= uint32(kept >> (32 * i))
		has[i].Permitted &= uint32(kept >> (32 * i))
		has[i].Inheritable = 0
	}
	if err := unix.Capset(&header, &has[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return nil
}

// AsNobody has a command run as [Nobody], with those of some capabilities that this thread
// has, and sets its SysProcAttr for that; false without CAP_SETUID and CAP_SETGID, or where
// the user namespace has no such user: the command stays this process' user's.
func AsNobody(command *exec.Cmd, keep []uintptr) (is bool, err error) {
	effective, err := Effective()
	if err != nil || !effective.Has(unix.CAP_SETUID) || !effective.Has(unix.CAP_SETGID) || !mapsNobody() {
		return false, err
	}
	attributes := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: Nobody, Gid: Nobody}}
	for _, number := range keep {
		if effective.Has(number) {
			attributes.AmbientCaps = append(attributes.AmbientCaps, number)
		}
	}
	command.SysProcAttr = attributes
	return true, nil
}

// Nobody is the user, and the group, that has no files.
const Nobody = 65534

// mapsNobody says whether a process of this user namespace can become nobody: one that a user made
// without rights has that user only, as root.
func mapsNobody() bool {
	for _, name := range []string{"uid_map", "gid_map"} {
		text, err := os.ReadFile("/proc/self/" + name)
		if err == nil && !holdsID(string(text), Nobody) {
			return false
		}
	}
	setgroups, err := os.ReadFile("/proc/self/setgroups")
	return err != nil || strings.TrimSpace(string(setgroups)) != "deny"
}

// holdsID says whether an id is one of a map of a user namespace, of lines of a first id within, the
// first id outside and how many follow; see user_namespaces(7).
func holdsID(text string, id uint64) bool {
	for line := range strings.Lines(text) {
		var first, outside, length uint64
		if _, err := fmt.Sscan(line, &first, &outside, &length); err == nil && id >= first && id-first < length {
			return true
		}
	}
	return false
}

// oomScore is added to that of the process which has started this one, whose maximum is
// maxOOMScore.
const (
	oomScore    = 200
	maxOOMScore = 1000
)

// Limits are what a process may take of the machine.
type Limits struct {
	// MemoryGoal is where Go's collector tries hard, and Memory where the process ends, in
	// bytes of private memory (RLIMIT_DATA), since address space is also what other
	// processes share with it.
	MemoryGoal int64
	Memory     uint64
	// CPU is where the kernel ends the process, in its whole life, up to a second; 0: it
	// does not.
	CPU time.Duration
}

// Bound bounds what this process takes of the machine. It leaves no core, nobody but root
// looks into it, and the kernel ends it before whatever has started it. Without
// CAP_SYS_RESOURCE it cannot take more later.
func Bound(l Limits) error {
	debug.SetMemoryLimit(l.MemoryGoal)
	limits := map[int]uint64{unix.RLIMIT_CORE: 0, unix.RLIMIT_DATA: l.Memory}
	if l.CPU > 0 {
		limits[unix.RLIMIT_CPU] = uint64(math.Ceil(l.CPU.Seconds()))
	}
	// First of all: of a process that is not dumpable its files in /proc are root's.
	errs := []error{goFirst()}
	for resource, limit := range limits {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			errs = append(errs, fmt.Errorf("limit %d: %w", resource, err))
		}
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		errs = append(errs, fmt.Errorf("not dumpable: %w", err))
	}
	return errors.Join(errs...)
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
