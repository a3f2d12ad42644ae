// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"cmp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/proto/attune/series"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// process is one process image.
type process struct {
	handle         uint64
	id             processID
	user           uint32
	info           report.Process // but for what depends on its end
	closed         string         // why mechanisms are closed
	started        time.Duration
	ended          bool
	endedAt        time.Duration
	replacedByExec bool
	exit           *report.Exit
	life           *life
}

// life is one process, whatever it executes and whoever controls it.
type life struct {
	images int // in order
	// left is the image that may go on, though it has ended for the session; nil: none.
	left *process
	// used is what its samples say that it took, or taken does.
	used     [series.SignalSize]uint64
	resident uint64          // the most memory of a sample; 0: there were none
	taken    *attunev1.Taken // nil: the kernel did not account for it, or it has not ended
}

// processID tells a process from others, whatever it executes and whoever controls it.
type processID struct {
	host  string
	pid   int32
	start uint64 // clock ticks since boot
}

// processes are all of them, but for those that the session has forgotten.
type processes struct {
	byHandle map[uint64]*process
	order    []*process // in the order seen
	omitted  int        // forgotten
	lives    map[processID]*life
	distinct int // processes so far, each once
}

// tell makes a process known, or known better.
func (ps *processes) tell(info *attunev1.Process) *process {
	p := ps.byHandle[info.GetHandle()]
	if p == nil {
		identity := info.GetIdentity()
		p = &process{handle: info.GetHandle(), user: info.GetUid(), id: processID{info.GetHost(), identity.GetPid(), identity.GetStartTicks()}}
		ps.byHandle[p.handle] = p
		ps.order = append(ps.order, p)
		p.life = ps.count(p.id)
		p.life.left = nil // another controller has found it, or it has ended
	}
	p.info = report.Process{
		PID: int(info.GetIdentity().GetPid()), ParentPID: int(info.GetParentPid()), Host: info.GetHost(),
		Exe: info.GetExecutable(), SHA256: info.GetExecutableSha256(), Mechanisms: []string{},
	}
	if info.Rank != nil {
		rank := int(info.GetRank())
		p.info.Rank = &rank
	}
	p.mechanisms(info.GetMechanisms())
	return p
}

// count counts an image of a process: another one executes something else, or is of a
// controller that has taken over the process.
func (ps *processes) count(id processID) *life {
	if ps.lives == nil {
		ps.lives = make(map[processID]*life)
	}
	l := ps.lives[id]
	if l == nil {
		l = &life{}
		ps.lives[id] = l
		ps.distinct++
	}
	l.images++
	return l
}

// seen counts the processes so far, each once.
func (ps *processes) seen() int { return ps.distinct }

// forget drops a process.
func (ps *processes) forget(handle uint64) {
	if p := ps.byHandle[handle]; p != nil {
		delete(ps.byHandle, handle)
		ps.order = slices.DeleteFunc(ps.order, func(q *process) bool { return q == p })
		ps.omitted++
		if p.life.images--; p.life.images == 0 {
			delete(ps.lives, p.id)
		}
	}
}

// of returns the process behind a handle; of an unknown one an empty one.
func (ps *processes) of(handle uint64) *process {
	if p := ps.byHandle[handle]; p != nil {
		return p
	}
	return &process{life: &life{}}
}

// pid returns the process id behind a handle; 0 if there is none.
func (ps *processes) pid(handle uint64) int { return ps.of(handle).info.PID }

// running returns the images that run, the latest first.
func (ps *processes) running() (out []Image) {
	for _, p := range slices.Backward(ps.order) {
		if !p.ended {
			out = append(out, p.image())
		}
	}
	return out
}

func (p *process) mechanisms(all []*attunev1.Mechanism) {
	var closed []string
	for _, m := range all {
		if !m.GetAvailable() {
			closed = append(closed, m.GetName()+": "+cmp.Or(m.GetReason(), "not available"))
			continue
		}
		p.info.Mechanisms = append(p.info.Mechanisms, m.GetName())
		p.info.Instrumented = p.info.Instrumented || m.GetName() != "proc" && m.GetName() != "vm_write"
	}
	p.closed = strings.Join(closed, "; ")
}

// end notes how and when the process has ended, as far as it was told.
func (p *process) end(end *attunev1.RecordedProcessEnd) {
	p.ended, p.endedAt = true, time.Duration(end.GetEndedNanos())
	if p.life.left = nil; end.GetGoingOn() {
		p.life.left = p
	}
	p.replacedByExec, p.exit = end.GetEnded().GetReplacedByExec(), nil
	if end.GetEnded().WaitStatus != nil && !p.replacedByExec {
		p.exit = exitStatus(syscall.WaitStatus(end.GetEnded().GetWaitStatus()))
	}
}

// mayGoOn says whether a process has not ended, as far as is known.
func (p *process) mayGoOn() bool { return !p.ended || p.life.left == p }

// exitStatus translates a wait status.
func exitStatus(ws syscall.WaitStatus) *report.Exit {
	if ws.Signaled() {
		return &report.Exit{Signal: account.SignalName(ws.Signal())}
	}
	code := ws.ExitStatus()
	return &report.Exit{Code: &code}
}

// Image is a process image that runs.
type Image struct {
	// Handle is the session's.
	Handle uint64
	// PID is its process id on Host.
	PID int
	// Host is its node.
	Host string
	// User is its user id.
	User uint32
	// Executable is its path.
	Executable string
}

func (p *process) image() Image {
	return Image{Handle: p.handle, PID: p.info.PID, Host: p.info.Host, User: p.user, Executable: p.info.Exe}
}

// report returns the process as the report has it.
func (p *process) report() report.Process {
	out := p.info
	out.StartedSeconds, out.ReplacedByExec, out.Exit = p.started.Seconds(), p.replacedByExec, p.exit
	out.NotInstrumented = p.closed
	if !out.Instrumented && p.closed == "" {
		out.NotInstrumented = report.ShortLived
		if p.mayGoOn() {
			out.NotInstrumented = "not under control yet"
		}
	}
	if !p.mayGoOn() {
		sec := p.endedAt.Seconds()
		out.EndedSeconds = &sec
	}
	return out
}
