// SPDX-License-Identifier: Apache-2.0

package digest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/quantity"
)

// part is something that the time went into.
type part struct {
	name    string
	seconds *float64
	bounded func(*account.Account) string // what bounds the program where most went into it
}

func parts(a *account.Account) []part {
	t := &a.Time
	return []part{
		{"computing", t.Computing, boundedByCores},
		{"in the kernel", t.Kernel, boundedByCores},
		{"waiting for a CPU", t.CPU, func(*account.Account) string {
			return "CPUs that others had: its threads were ready to run (other programs on the machine, or more threads than CPUs)"
		}},
		{"waiting for storage", t.Disk, boundedByStorage},
		{"waiting for the network", t.Network, func(*account.Account) string { return "the network, or whoever answers at its other end" }},
		{"waiting at a pipe", t.Pipes, func(*account.Account) string { return "another process, at the other end of a pipe or a local socket" }},
		{"waiting for events", t.Events, func(*account.Account) string {
			return "what came from outside: it waited for descriptors or for a time to pass (poll, select, epoll, io_uring)"
		}},
		{"waiting for its threads", t.Locks, func(*account.Account) string {
			return "its own threads, which waited for each other (locks, conditions, joins)"
		}},
		{"sleeping", t.Sleep, func(*account.Account) string { return "itself: it slept for a time that it asked for" }},
		{"anything else", t.Other, func(*account.Account) string { return "something that attune did not see" }},
	}
}

// shown is how many parts Spent names; the rest is one more.
const shown = 3

// Spent are bars of what the wall time went into, the most first: at most four, of which
// the last is all the rest. None where that is not known.
func Spent(a *account.Account) (bars []Bar) {
	if a.WallSeconds <= 0 {
		return nil
	}
	var known []part
	for _, p := range parts(a) {
		if p.seconds != nil && *p.seconds/a.WallSeconds >= 0.005 {
			known = append(known, p)
		}
	}
	slices.SortStableFunc(known, func(x, y part) int {
		if other := a.Time.Other; (x.seconds == other) != (y.seconds == other) { // it says least
			return map[bool]int{true: 1, false: -1}[x.seconds == other]
		}
		return cmp.Compare(*y.seconds, *x.seconds)
	})
	bar := func(name string, seconds float64) {
		bars = append(bars, Bar{name, seconds / a.WallSeconds, quantity.Seconds(seconds)})
	}
	rest, names := 0.0, []string(nil)
	for i, p := range known {
		if i < shown || i == shown && len(known) == shown+1 {
			bar(p.name, *p.seconds)
			continue
		}
		rest += *p.seconds
		names = append(names, p.name)
	}
	if names != nil {
		bar("the rest", rest)
		bars[len(bars)-1].Text += ": " + strings.Join(names, ", ")
	}
	return bars
}

// Bounded says what kept the program from being faster: what most of its time went into.
// Empty where that is not known.
func Bounded(a *account.Account) string {
	var most part
	busy := 0.0
	for i, p := range parts(a) {
		if p.seconds == nil {
			return ""
		}
		if i < 2 { // one cause
			busy += *p.seconds
			p.seconds = &busy
		}
		if most.seconds == nil || *p.seconds > *most.seconds {
			most = p
		}
	}
	return most.bounded(a)
}

func boundedByCores(a *account.Account) string {
	kernel := ""
	if *a.Time.Kernel > *a.Time.Computing {
		kernel = ", most of the time in the kernel, for its system calls and page faults"
	}
	cores := a.Available.Cores
	if a.CoresAverage == nil || cores == nil {
		return "CPU" + kernel
	}
	used := fmt.Sprintf(": %.2f of %s on average", *a.CoresAverage, coresText(*cores))
	switch {
	case *a.CoresAverage >= 0.9**cores:
		return "the CPUs that it may use: it had all of them busy" + kernel
	case *a.CoresAverage <= 1.1:
		return "the speed of one core, for it does one thing after another" + used + kernel
	}
	return "the speed of the cores that it used" + used + kernel
}

func boundedByStorage(a *account.Account) string {
	text := "storage"
	if a.IO.StorageRead != nil && a.IO.StorageWritten != nil {
		text += fmt.Sprintf(": %s were fetched from it and %s are to go to it", bytes(*a.IO.StorageRead), bytes(*a.IO.StorageWritten))
	}
	return text
}
