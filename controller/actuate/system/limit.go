// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

// resource is one resource limit; see getrlimit(2).
type resource struct {
	name, what string
	number     int
	// fatal: a program that reaches it is killed, so it is only ever raised.
	fatal bool
	// used says that a program has passed a limit, which is not put back then; nil: that does
	// not harm, or is not to be seen.
	used func(t *Target, soft uint64) error
	// exempt are the capabilities of processes that the limit does not bind, nor those of root
	// where rootExempt.
	exempt     []uintptr
	rootExempt bool
}

var resources = []resource{
	{name: "as", what: "Bytes of address space", number: unix.RLIMIT_AS, used: usedMemory("VmSize")},
	{name: "core", what: "Bytes of a core file", number: unix.RLIMIT_CORE},
	{name: "cpu", what: "Seconds of CPU time", number: unix.RLIMIT_CPU, fatal: true, used: usedCPU},
	{name: "data", what: "Bytes of data segment", number: unix.RLIMIT_DATA, used: usedMemory("VmData")},
	{name: "fsize", what: "Bytes of a file that it writes", number: unix.RLIMIT_FSIZE, fatal: true, used: usedFileSize},
	{name: "memlock", what: "Bytes that may be locked into memory", number: unix.RLIMIT_MEMLOCK, used: usedMemory("VmLck", "VmPin"), exempt: []uintptr{unix.CAP_IPC_LOCK}},
	{name: "msgqueue", what: "Bytes in POSIX message queues", number: unix.RLIMIT_MSGQUEUE},
	{name: "nice", what: "20 minus the least nice value that it may set", number: unix.RLIMIT_NICE},
	{name: "nofile", what: "One more than the greatest descriptor", number: unix.RLIMIT_NOFILE, used: usedDescriptors},
	{name: "nproc", what: "Threads of its user", number: unix.RLIMIT_NPROC, used: usedThreads, exempt: []uintptr{unix.CAP_SYS_RESOURCE, unix.CAP_SYS_ADMIN}, rootExempt: true},
	{name: "rtprio", what: "Greatest realtime priority that it may set", number: unix.RLIMIT_RTPRIO},
	{name: "rttime", what: "Microseconds of realtime scheduling without a pause", number: unix.RLIMIT_RTTIME, fatal: true, used: usedRealtime},
	{name: "sigpending", what: "Signals queued for its user", number: unix.RLIMIT_SIGPENDING},
	{name: "stack", what: "Bytes of stack of its first thread; of new threads, where the program read it at its start", number: unix.RLIMIT_STACK, used: usedMemory("VmStk")},
}

func limitKnobs() []knob {
	list := make([]knob, len(resources))
	for i, r := range resources {
		description := r.what + ". SOFT alone keeps the hard limit."
		if r.fatal {
			description += " It is only raised: a program that reaches it is killed."
		}
		list[i] = knob{
			Knob: Knob{
				Name: "limit." + r.name, On: OnProcess, Values: "SOFT or SOFT:HARD, numbers or " + unlimited,
				Examples: []string{unlimited}, Description: description,
				Privilege: "CAP_SYS_RESOURCE to raise the hard limit",
				Undo:      exactly + "; lowering the hard limit needs the privilege, to raise it again",
			},
			parse:    parseLimit,
			places:   wholeProcess,
			complete: r.complete,
			check:    limitUndo,
			harm:     r.reached,
			open: func(t *Target, _ Place) (slot, error) {
				return &limitSlot{target: t, resource: r.number}, nil
			},
		}
	}
	return list
}

// wholeProcess is the only place of a knob that processes have once.
func wholeProcess(*Target, int) ([]Place, error) { return []Place{{Scope: OnProcess}}, nil }

// parseLimit returns SOFT or SOFT:HARD.
func parseLimit(text string) (string, error) {
	soft, hard, both := strings.Cut(text, ":")
	low, err := parseBound(soft)
	if err != nil {
		return "", err
	}
	if !both {
		return formatBound(low), nil
	}
	high, err := parseBound(hard)
	if err != nil {
		return "", err
	}
	if low > high {
		return "", badValue("soft limit %s is above hard limit %s", soft, hard)
	}
	return formatBound(low) + ":" + formatBound(high), nil
}

// bounds splits SOFT:HARD.
func bounds(text string) (unix.Rlimit, error) {
	soft, hard, _ := strings.Cut(text, ":")
	low, err := parseBound(soft)
	if err != nil {
		return unix.Rlimit{}, err
	}
	high, err := parseBound(hard)
	return unix.Rlimit{Cur: low, Max: high}, err
}

// complete keeps the hard limit where only the soft one was asked for.
func (r resource) complete(_ *Target, old, asked string) (string, error) {
	was, err := bounds(old)
	if err != nil {
		return "", err
	}
	if !strings.Contains(asked, ":") {
		asked += ":" + formatBound(was.Max)
	}
	will, err := bounds(asked)
	switch {
	case err != nil:
		return "", err
	case will.Cur > will.Max:
		return "", badValue("above the hard limit %s; give SOFT:HARD", formatBound(was.Max))
	case r.fatal && will.Cur < was.Cur:
		return "", badValue("lowering it from %s could kill the program", formatBound(was.Cur))
	}
	return asked, nil
}

func limitUndo(_ *Target, old, value string) error {
	was, _ := bounds(old) // canonical
	will, _ := bounds(value)
	if will.Max >= was.Max || capable(unix.CAP_SYS_RESOURCE) {
		return nil
	}
	return fmt.Errorf("raising the hard limit to %s again needs CAP_SYS_RESOURCE", formatBound(was.Max))
}

// limitSlot is one limit. prlimit(2) names the process by number, which the
// pidfd that is held proves to be right as long as the process is not reaped.
type limitSlot struct {
	target   *Target
	resource int
}

func (s *limitSlot) get() (string, error) {
	var limit unix.Rlimit
	if err := unix.Prlimit(s.target.pid(), s.resource, nil, &limit); err != nil {
		return "", procid.GoneError(err)
	}
	if !s.target.process.Alive() {
		return "", errPlaceGone
	}
	return formatBound(limit.Cur) + ":" + formatBound(limit.Max), nil
}

func (s *limitSlot) set(value string) error {
	limit, err := bounds(value)
	if err != nil {
		return err
	}
	if !s.target.process.Alive() {
		return errPlaceGone
	}
	return unix.Prlimit(s.target.pid(), s.resource, &limit, nil)
}

func (s *limitSlot) Close() error { return nil }
