// SPDX-License-Identifier: Apache-2.0

package system

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/cpulist"
	"github.com/attune-hpc/attune/internal/procid"
)

// threadUndo is what all knobs of threads have in common.
const threadUndo = exactly + "; threads created since get what the first thread had"

func threadKnobs() []knob {
	list := []knob{
		{
			Knob: Knob{
				Name: "thread.affinity", Values: "list of CPUs, e.g. 0-3,8", Examples: []string{"0", "0-1"},
				Description: "CPUs that a thread may run on. Those that its cpuset does not allow are refused.",
				Undo:        threadUndo,
			},
			parse:    cpuList,
			complete: onlineOnly,
			open:     openThread(affinityOf, setAffinity),
		},
		{
			Knob: Knob{
				Name: "thread.nice", Values: "-20 to 19", Examples: []string{"5", "10", "19"},
				Description: "Share of a CPU that others compete for; 19 is the least.",
				Privilege:   "CAP_SYS_NICE, or a sufficient limit.nice of the process, to lower it",
				Undo:        threadUndo + "; raising it needs the privilege, to lower it again",
			},
			parse: whole(-20, 19),
			check: niceUndo,
			open:  openThread(niceOf, setNice),
		},
		{
			Knob: Knob{
				Name: "thread.policy", Values: "other, batch, idle, fifo:PRIORITY or rr:PRIORITY (1 to 99)",
				Examples:    []string{"other", "batch", "idle", "fifo:1", "rr:1"},
				Description: "Scheduling policy. Nice value and reset-on-fork are kept.",
				Privilege:   "CAP_SYS_NICE, or a sufficient limit.rtprio of the process, for fifo and rr; CAP_SYS_NICE to leave idle",
				Undo:        threadUndo + "; idle needs the privilege, to leave it again, and so do fifo and rr, to go back to them",
			},
			parse:    parsePolicy,
			complete: keepResetOnFork,
			check:    policyUndo,
			open:     openThread(policyOf, setPolicy),
		},
		{
			Knob: Knob{
				Name: "thread.ionice", Values: "none, idle, best-effort:LEVEL or realtime:LEVEL (0 to 7)",
				Examples:    []string{"none", "idle", "best-effort:0", "best-effort:7"},
				Description: "I/O priority; only some I/O schedulers heed it.",
				Privilege:   "CAP_SYS_NICE for realtime",
				Undo:        threadUndo + "; realtime needs the privilege, to go back to it",
			},
			parse: parseIONice,
			check: ioniceUndo,
			open:  openThread(ioniceOf, setIONice),
		},
	}
	for i := range list {
		list[i].On, list[i].places, list[i].follows = OnThreads, threadPlaces, true
	}
	return list
}

// threadPlaces lists all threads or finds one.
func threadPlaces(t *Target, on int) ([]Place, error) {
	if on != Everywhere {
		started, err := t.threadStart(on)
		if err != nil {
			return nil, fmt.Errorf("the process has no thread %d", on)
		}
		return []Place{{Scope: OnThreads, Number: on, Started: started}}, nil
	}
	return t.threads()
}

// threadSlot is one thread.
type threadSlot struct {
	target *Target
	place  Place
	read   func(tid int) (string, error)
	write  func(tid int, value string) error
}

func openThread(read func(int) (string, error), write func(int, string) error) func(*Target, Place) (slot, error) {
	return func(t *Target, p Place) (slot, error) {
		s := &threadSlot{target: t, place: p, read: read, write: write}
		if err := s.check(); err != nil {
			return nil, err
		}
		return s, nil
	}
}

// check says whether the thread is still the one meant.
func (s *threadSlot) check() error {
	started, err := s.target.threadStart(s.place.Number)
	if err == nil && started != s.place.Started {
		err = errPlaceGone
	}
	return err
}

func (s *threadSlot) get() (string, error) {
	value, err := s.read(s.place.Number)
	return value, errors.Join(err, s.check()) // read from the thread meant
}

func (s *threadSlot) set(value string) error {
	if err := s.check(); err != nil {
		return err
	}
	return s.write(s.place.Number, value)
}

func (s *threadSlot) Close() error { return nil }

// onlineOnly refuses CPUs that there are not: the kernel would drop them
// silently.
func onlineOnly(_ *Target, _, asked string) (string, error) {
	online, err := cpulist.Online()
	if err != nil {
		return "", err
	}
	cpus, err := cpulist.Parse(asked)
	if err != nil {
		return "", err
	}
	for _, cpu := range cpus {
		if !slices.Contains(online, cpu) {
			return "", badValue("CPU %d is not online; there are %s", cpu, cpulist.Format(online))
		}
	}
	return asked, nil
}

// niceOf reads a thread's nice value; the system call returns 20 - nice.
func niceOf(tid int) (string, error) {
	n, err := unix.Getpriority(unix.PRIO_PROCESS, tid)
	return strconv.Itoa(20 - n), err
}

func setNice(tid int, value string) error {
	n, err := strconv.Atoi(value)
	if err != nil {
		return err
	}
	return unix.Setpriority(unix.PRIO_PROCESS, tid, n)
}

// niceUndo says whether a raised nice value could be lowered again.
func niceUndo(t *Target, old, value string) error {
	was, _ := strconv.Atoi(old) // canonical
	will, _ := strconv.Atoi(value)
	if will <= was {
		return nil
	}
	return t.mayReachNice(was)
}

// mayReachNice says whether the kernel would let this user lower a nice value
// that far: see RLIMIT_NICE in getrlimit(2).
func (t *Target) mayReachNice(nice int) error {
	if capable(unix.CAP_SYS_NICE) {
		return nil
	}
	var limit unix.Rlimit
	if err := unix.Prlimit(t.pid(), unix.RLIMIT_NICE, nil, &limit); err != nil {
		return procid.GoneError(err)
	}
	if limit.Cur >= uint64(20-nice) {
		return nil
	}
	return fmt.Errorf("going back to nice %d needs CAP_SYS_NICE or limit.nice=%d", nice, 20-nice)
}

// Scheduling policies by name; see sched(7).
var policies = map[string]int{
	"other": unix.SCHED_NORMAL, "batch": unix.SCHED_BATCH, "idle": unix.SCHED_IDLE,
	"fifo": unix.SCHED_FIFO, "rr": unix.SCHED_RR,
}

const (
	resetOnFork     = 0x40000000 // SCHED_RESET_ON_FORK, or-ed to the policy
	resetOnForkText = "+reset-on-fork"
	maxPriority     = 99
)

func realtime(policy int) bool { return policy == unix.SCHED_FIFO || policy == unix.SCHED_RR }

func parsePolicy(text string) (string, error) {
	name, level, given := strings.Cut(strings.ToLower(text), ":")
	policy, known := policies[name]
	if !known || given != realtime(policy) {
		return "", badValue("%q is not other, batch, idle, fifo:PRIORITY or rr:PRIORITY", text)
	}
	if !given {
		return name, nil
	}
	priority, err := strconv.Atoi(level)
	if err != nil || priority < 1 || priority > maxPriority {
		return "", badValue("priority %q is not from 1 to %d", level, maxPriority)
	}
	return fmt.Sprintf("%s:%d", name, priority), nil
}

func keepResetOnFork(_ *Target, old, asked string) (string, error) {
	if strings.HasPrefix(old, "policy ") {
		return "", fmt.Errorf("the thread has %s, which only its program may leave", old)
	}
	if strings.HasSuffix(old, resetOnForkText) {
		asked += resetOnForkText
	}
	return asked, nil
}

// policyUndo says whether this user could leave idle, or give a realtime policy back: see
// RLIMIT_RTPRIO in getrlimit(2).
func policyUndo(t *Target, old, value string) error {
	if capable(unix.CAP_SYS_NICE) {
		return nil
	}
	if name, level, given := strings.Cut(strings.TrimSuffix(old, resetOnForkText), ":"); given {
		priority, _ := strconv.ParseUint(level, 10, 64) // made by policyOf
		var limit unix.Rlimit
		if err := unix.Prlimit(t.pid(), unix.RLIMIT_RTPRIO, nil, &limit); err != nil {
			return procid.GoneError(err)
		}
		if limit.Cur < priority {
			return fmt.Errorf("going back to %s:%d needs CAP_SYS_NICE or limit.rtprio=%d", name, priority, priority)
		}
	}
	if !strings.HasPrefix(value, "idle") {
		return nil
	}
	// To the kernel, leaving idle is lowering the nice value to what it is.
	nice, err := niceOf(t.pid())
	if err != nil {
		return err
	}
	n, _ := strconv.Atoi(nice) // made by niceOf
	if err := t.mayReachNice(n); err != nil {
		return fmt.Errorf("leaving idle for %s: %w", old, err)
	}
	return nil
}

func policyOf(tid int) (string, error) {
	attr, err := unix.SchedGetAttr(tid, 0)
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("policy %d", attr.Policy) // deadline, ext
	for name, policy := range policies {
		if uint32(policy) == attr.Policy {
			text = name
		}
	}
	if realtime(int(attr.Policy)) {
		text += ":" + strconv.Itoa(int(attr.Priority))
	}
	if attr.Flags&unix.SCHED_FLAG_RESET_ON_FORK != 0 {
		text += resetOnForkText
	}
	return text, nil
}

// setPolicy uses sched_setscheduler(2), which, unlike sched_setattr(2), leaves
// the nice value of a thread alone.
func setPolicy(tid int, value string) error {
	text, reset := strings.CutSuffix(value, resetOnForkText)
	name, level, _ := strings.Cut(text, ":")
	policy, known := policies[name]
	if !known {
		return badValue("policy %q", value)
	}
	var priority int32
	if level != "" {
		n, err := strconv.ParseInt(level, 10, 32)
		if err != nil {
			return err
		}
		priority = int32(n)
	}
	if reset {
		policy |= resetOnFork
	}
	return schedSetScheduler(tid, policy, priority)
}

// I/O priority classes; see ioprio_set(2).
var ioClasses = []string{"none", "realtime", "best-effort", "idle"}

const (
	ioClassShift = 13
	ioLevelMask  = 7
)

func parseIONice(text string) (string, error) {
	name, level, given := strings.Cut(strings.ToLower(text), ":")
	class := slices.Index(ioClasses, name)
	if class < 0 || given != (name == "realtime" || name == "best-effort") {
		return "", badValue("%q is not none, idle, best-effort:LEVEL or realtime:LEVEL", text)
	}
	if !given {
		return name, nil
	}
	n, err := strconv.ParseUint(level, 10, 8)
	if err != nil || n > ioLevelMask {
		return "", badValue("level %q is not from 0 to %d", level, ioLevelMask)
	}
	return fmt.Sprintf("%s:%d", name, n), nil
}

func ioniceUndo(_ *Target, old, _ string) error {
	if !strings.HasPrefix(old, "realtime:") || capable(unix.CAP_SYS_NICE) {
		return nil
	}
	return fmt.Errorf("going back to %s needs CAP_SYS_NICE", old)
}

func ioniceOf(tid int) (string, error) {
	raw, err := ioprioGet(tid)
	if err != nil {
		return "", err
	}
	class := raw >> ioClassShift & 7
	if class >= len(ioClasses) || raw > math.MaxUint16 {
		return "", fmt.Errorf("unknown I/O priority %#x", raw)
	}
	if name := ioClasses[class]; name == "none" || name == "idle" {
		return name, nil
	}
	return fmt.Sprintf("%s:%d", ioClasses[class], raw&ioLevelMask), nil
}

func setIONice(tid int, value string) error {
	name, level, _ := strings.Cut(value, ":")
	raw := slices.Index(ioClasses, name) << ioClassShift
	if level != "" {
		n, err := strconv.Atoi(level)
		if err != nil {
			return err
		}
		raw |= n
	}
	return ioprioSet(tid, raw)
}
