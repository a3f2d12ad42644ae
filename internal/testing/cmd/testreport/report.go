// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// How many tests are named as the slowest.
const slowest = 30

// The verdicts of steps.
const (
	passed  = "passed"
	leftOut = "not run"
)

// step is one command of the suite. Seconds are by the clock; cpu counts the
// seconds of CPU time of all the processes that it waited for.
type step struct {
	name, verdict, reason string
	seconds, cpu          float64
}

// test names a test by its package, relative to the module, and its own name.
// The name is empty for the package as a whole.
type test struct{ pkg, name string }

func (t test) String() string { return t.pkg + " " + t.name }

// outcome is how a test ended, and the last thing that it said before.
type outcome struct {
	test
	step, action, words string
	seconds             float64
}

// report is what is known of a run.
type report struct {
	steps            []step
	allowed          map[test]string
	tests            []outcome // those without subtests' parts
	skipped, failed  []outcome
	passes, failures int
}

// add counts each test once: subtests are parts of theirs, but a part that was
// skipped or failed is named itself.
func (r *report) add(o outcome) {
	part := strings.Contains(o.name, "/")
	if o.name == "" { // a package: its tests speak for it, unless it did not build or get so far
		if o.action == "fail" && !r.failedIn(o.pkg) {
			r.failed = append(r.failed, o)
			r.failures++
		}
		return
	}
	switch o.action {
	case "skip":
		r.skipped = append(r.skipped, o)
		return
	case "fail":
		r.failed = append(r.failed, o)
	}
	if part {
		return
	}
	r.tests = append(r.tests, o)
	if o.action == "fail" {
		r.failures++
	} else {
		r.passes++
	}
}

func (r *report) failedIn(pkg string) bool {
	return slices.ContainsFunc(r.failed, func(o outcome) bool { return o.pkg == pkg })
}

// reasonFor returns why a skip is allowed, and whether it is.
func (r *report) reasonFor(t test) (string, bool) {
	for {
		if reason, listed := r.allowed[t]; listed {
			return reason, true
		}
		cut := strings.LastIndexByte(t.name, '/')
		if cut < 0 {
			return "", false
		}
		t.name = t.name[:cut]
	}
}

// unknown lists the skips that nobody has allowed.
func (r *report) unknown() []outcome {
	return slices.DeleteFunc(slices.Clone(r.skipped), func(o outcome) bool {
		_, listed := r.reasonFor(o.test)
		return listed
	})
}

func (r *report) passed() bool {
	return r.passes > 0 && r.failures == 0 && len(r.unknown()) == 0 &&
		!slices.ContainsFunc(r.steps, func(s step) bool { return s.verdict != passed && s.verdict != leftOut })
}

func (r *report) write(to io.Writer) {
	r.writeSlowest(to)
	r.writeSkips(to)
	if len(r.failed) > 0 {
		fmt.Fprintf(to, "\nfailed tests\n")
		for _, o := range r.failed {
			fmt.Fprintf(to, "  %-10s %s\n", o.step, o.test)
		}
	}
	fmt.Fprintf(to, "\n%-24s %-8s %7s %7s\n", "step", "", "wall s", "CPU s")
	for _, s := range r.steps {
		if s.verdict == leftOut {
			fmt.Fprintf(to, "%-24s %-8s %s\n", s.name, s.verdict, s.reason)
		} else {
			fmt.Fprintf(to, "%-24s %-8s %7.0f %7.0f\n", s.name, s.verdict, s.seconds, s.cpu)
		}
	}
	if r.passes+r.failures == 0 {
		fmt.Fprintln(to, "\nno test ran: that is a failure")
	}
	fmt.Fprintf(to, "\n%d passed, %d failed, %d skipped\n", r.passes, r.failures, len(r.skipped))
}

func (r *report) writeSlowest(to io.Writer) {
	byTime := slices.SortedFunc(slices.Values(r.tests), func(a, b outcome) int {
		return cmp.Or(cmp.Compare(b.seconds, a.seconds), cmp.Compare(a.String(), b.String()))
	})
	fmt.Fprintf(to, "\nthe %d slowest tests\n", min(slowest, len(byTime)))
	for _, o := range byTime[:min(slowest, len(byTime))] {
		fmt.Fprintf(to, "  %6.1f s  %-10s %s\n", o.seconds, o.step, o.test)
	}
}

// writeSkips names each skip once, however many steps it was skipped in.
func (r *report) writeSkips(to io.Writer) {
	if len(r.skipped) == 0 {
		return
	}
	words := map[test]string{}
	for _, o := range r.skipped {
		words[o.test] = o.words
	}
	fmt.Fprintf(to, "\nskipped tests\n")
	for _, t := range slices.SortedFunc(maps.Keys(words), func(a, b test) int { return cmp.Compare(a.String(), b.String()) }) {
		if reason, listed := r.reasonFor(t); listed {
			fmt.Fprintf(to, "  allowed      %s: %s\n", t, reason)
		} else {
			fmt.Fprintf(to, "  NOT ALLOWED  %s: %s (mend it, or list it in scripts/allowed-skips)\n", t, words[t])
		}
	}
}
