// SPDX-License-Identifier: Apache-2.0

package track

import (
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// briefRuns is after how many images in a row that were brief a program is one that
// always is.
const briefRuns = 8

// briefs knows which programs are always brief: over within Grace, by themselves, with
// nothing started and nothing else executed. By path; neverBrief is what has once not
// been.
type briefs struct {
	runs map[string]int
	tell func(executable string, brief bool)
}

const neverBrief = -1

// note takes note of an image of a program that has been brief, or is not.
func (b *briefs) note(executable string, brief bool) {
	known := b.runs[executable]
	switch {
	case executable == "" || b.tell == nil || known == neverBrief:
	case !brief:
		b.set(executable, neverBrief)
		if known >= briefRuns {
			b.tell(executable, false)
		}
	default:
		b.set(executable, known+1)
		if known+1 == briefRuns {
			b.tell(executable, true)
		}
	}
}

func (b *briefs) set(executable string, runs int) {
	if len(b.runs) < maxPrograms || b.runs[executable] != 0 {
		b.runs[executable] = runs
	}
}

// judge takes note of how a member's image has ended. That of a fork is its parent's,
// which has been more than brief.
func (s *state) judge(m *member, ended *attunev1.ProcessEnded) {
	if !m.executed {
		return
	}
	lived := time.Duration(ended.GetEndedUnixNano() - m.message.GetSeenUnixNano())
	s.briefs.note(m.message.GetExecutable(), !ended.GetReplacedByExec() && !m.forked && lived < Grace)
}

// seenAlive takes note of an image that has lived longer.
func (s *state) seenAlive(m *member, now time.Time) {
	if m.executed && now.UnixNano()-m.message.GetSeenUnixNano() >= int64(Grace) {
		s.briefs.note(m.message.GetExecutable(), false)
	}
}
