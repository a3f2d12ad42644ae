// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/account"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// ending is how the application ended. The zero value is of one that has not.
type ending struct {
	known   bool
	exit    report.Exit // empty: its processes tell
	cpu     time.Duration
	at      time.Duration // of the command; 0: not known
	unseen  []report.Process
	account *account.Account // nil: nobody made one
}

// endingOf is how the application ended, as a frame tells at a time after the start.
func endingOf(e *attunev1.RecordedExit, start time.Time, after time.Duration) ending {
	end := ending{known: !e.GoingOn && e.GetReason() == "", exit: exitOf(e.Code, e.GetSignal()), cpu: time.Duration(e.GetProgramCpuNanos())}
	if e.GetEndedUnixNano() > 0 {
		end.at = max(0, time.Unix(0, e.GetEndedUnixNano()).Sub(start))
	}
	at := cmp.Or(end.at, after).Seconds()
	if taken := new(account.Account); len(e.GetAccount()) > 0 && json.Unmarshal(e.GetAccount(), taken) == nil {
		end.account = taken
	}
	for _, u := range e.GetUnseen() {
		p := report.Process{
			PID: int(u.GetPid()), ParentPID: int(u.GetParentPid()), Exe: u.GetExecutable(), EndedSeconds: &at,
			Mechanisms: []string{}, NotInstrumented: cmp.Or(u.GetReason(), report.ShortLived),
		}
		if exit := exitOf(u.Code, u.GetSignal()); exit != (report.Exit{}) {
			p.Exit = &exit
		}
		end.unseen = append(end.unseen, p)
	}
	return end
}

// report adds the end of the application to a report that has its processes: those
// that nobody has seen, and how it ended.
func (e ending) report(r *report.Report) {
	for _, p := range e.unseen {
		if !slices.ContainsFunc(r.Processes, func(seen report.Process) bool { return seen.PID == p.PID }) {
			r.Processes = append(r.Processes, p)
		}
	}
	if e.at > 0 {
		r.WallSeconds = e.at.Seconds()
	}
	r.Account = e.account
	r.Finished, r.Exit, r.Overhead.ProgramCPUSeconds = e.known, e.exit, e.cpu.Seconds()
	if r.Finished && r.Exit == (report.Exit{}) {
		r.Exit, r.Finished = exitOfAll(r.Processes)
	}
}

// exitOfAll is the exit of the first process that did not end well, or of one that did, if
// all have ended.
func exitOfAll(processes []report.Process) (exit report.Exit, ended bool) {
	if slices.ContainsFunc(processes, func(p report.Process) bool { return p.EndedSeconds == nil }) {
		return report.Exit{}, false
	}
	for _, p := range processes {
		if p.Exit == nil {
			continue
		}
		well := p.Exit.Signal == "" && p.Exit.Code != nil && *p.Exit.Code == 0
		if !well {
			return *p.Exit, true
		}
		if exit == (report.Exit{}) {
			exit = *p.Exit
		}
	}
	return exit, true
}

func exitOf(code *int32, signal string) report.Exit {
	if signal != "" || code == nil {
		return report.Exit{Signal: signal}
	}
	n := int(*code)
	return report.Exit{Code: &n}
}
