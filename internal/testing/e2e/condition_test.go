// SPDX-License-Identifier: Apache-2.0

//go:build e2e || vm

package e2e

import (
	"fmt"
	"slices"

	"github.com/attune-hpc/attune/analyzer/report"
)

// condition is what a test waits for in a timeline.
type condition struct {
	what string
	met  func([]report.Entry) bool
}

// kept is the condition that a tunlet's changes were kept in so many processes, or more.
// Only a change whose effect no other load hides is certain to be kept.
func kept(tunlet string, processes int) condition {
	return changed("kept by", tunlet, processes, func(e report.Entry, _ report.EntryChange) bool { return e.Kind == "kept" })
}

// applied is the condition that a tunlet's changes have given something another
// value in so many processes.
func applied(tunlet string, processes int) condition {
	return changed("applied by", tunlet, processes, func(e report.Entry, c report.EntryChange) bool { return e.Kind == "applied" && isSet(c) })
}

// judged is the condition that a tunlet's changes have given something another
// value in so many processes, and that their effect was measured, whatever the
// verdict is: other load may hide a weak effect, and up to one in twenty useful
// changes is undone (analyzer/core's simulator). bench/catalogue measures how
// much they gain.
func judged(tunlet string, processes int) condition {
	return changed("judged of", tunlet, processes, func(e report.Entry, c report.EntryChange) bool {
		verdict := e.Kind == "kept" || e.Kind == "undoing"
		return verdict && isSet(c) && e.Objective != nil && e.Objective.P != nil
	})
}

// changed is the condition that a tunlet has made changes that are as wanted in so many
// processes, or more.
func changed(what, tunlet string, processes int, wanted func(report.Entry, report.EntryChange) bool) condition {
	return condition{
		what: fmt.Sprintf("%s %s in %d processes", what, tunlet, processes),
		met: func(entries []report.Entry) bool {
			return processesOf(entries, func(e report.Entry, c report.EntryChange) bool { return e.Tunlet == tunlet && wanted(e, c) }) >= processes
		},
	}
}

// happened is the condition that there is such an entry.
func happened(what string, is func(report.Entry) bool) condition {
	return condition{what: what, met: func(entries []report.Entry) bool { return slices.ContainsFunc(entries, is) }}
}

// isSet returns whether a change was made, and another value was read back.
func isSet(c report.EntryChange) bool {
	return c.Outcome == "applied" && c.New.Known() && c.Old.String() != c.New.String()
}

// processesOf counts the processes with a change that is as wanted.
func processesOf(entries []report.Entry, wanted func(report.Entry, report.EntryChange) bool) int {
	found := map[int]bool{}
	for _, e := range entries {
		for _, c := range e.Changes {
			if wanted(e, c) {
				found[c.Process] = true
			}
		}
	}
	return len(found)
}
