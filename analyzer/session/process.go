// SPDX-License-Identifier: Apache-2.0

package session

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// maxProcesses bounds the processes that the report lists; those that run
	// or were changed are among them also beyond it.
	maxProcesses = 2000
	// maxChanged bounds them together with those that have ended changed.
	maxChanged = 2 * maxProcesses
)

// process is one process image under control.
type process struct {
	id         uint64 // the session's handle
	pid        int
	handle     uint64 // the controller's
	controller *controller
	info       *attunev1.Process // with the session's handle, never modified; nil after its end
	started    time.Duration
	shift      shift    // by which that was told
	introduced bool     // the tunlets know of it
	changes    []string // ids of those that were sent to it
	ended      bool
	endedAt    time.Duration
	endKnown   bool // how it ended
	mayGoOn    bool // it counts as ended, for its controller has gone
	replaced   bool // another image has taken its place
}

// processes are those that are known, under the session's handles, which are never
// given twice. They belong to the loop.
type processes struct {
	byID      map[uint64]*process
	order     []*process // in the order seen
	last      uint64     // the greatest handle so far
	changedIn map[string]uint64
}

func newProcesses() *processes {
	return &processes{byID: map[uint64]*process{}, changedIn: map[string]uint64{}}
}

// of returns the process that has a handle at a controller; nil: it is not known.
func (ps *processes) of(c *controller, handle uint64) *process { return ps.byID[c.local[handle]] }

// lives says whether a process is known and has not ended.
func (ps *processes) lives(id uint64) bool { return ps.byID[id] != nil && !ps.byID[id].ended }

// add makes a process of a controller known, which was seen at a time.
func (ps *processes) add(c *controller, info *attunev1.Process, started time.Duration) *process {
	ps.last++
	p := &process{id: ps.last, pid: int(info.GetIdentity().GetPid()), handle: info.GetHandle(), controller: c, started: started}
	c.local[p.handle], c.newest = p.id, max(c.newest, p.handle)
	ps.byID[p.id] = p
	ps.order = append(ps.order, p)
	return p
}

// running lists the processes of a controller that have not ended. The list is the
// caller's: it stays as it is while processes end and are forgotten.
func (ps *processes) running(c *controller) (running []*process) {
	for _, p := range ps.order {
		if p.controller == c && !p.ended {
			running = append(running, p)
		}
	}
	return running
}

// noteChange notes that a change is made in a process.
func (ps *processes) noteChange(p *process, change string) {
	p.changes = append(p.changes, change)
	ps.changedIn[change] = p.id
}

// changed returns the process that a change was made in; nil: it is not known.
func (ps *processes) changed(change string) *process { return ps.byID[ps.changedIn[change]] }

// omit forgets the oldest process that has ended and was not changed, if there are
// too many; if there are far too many, also one that was changed. It returns the
// process; nil: none.
func (ps *processes) omit() *process {
	if len(ps.order) <= maxProcesses {
		return nil
	}
	i := slices.IndexFunc(ps.order, func(p *process) bool { return p.ended && len(p.changes) == 0 })
	if i < 0 && len(ps.order) > maxChanged {
		i = slices.IndexFunc(ps.order, func(p *process) bool { return p.ended })
	}
	if i < 0 {
		return nil
	}
	p := ps.order[i]
	ps.order = slices.Delete(ps.order, i, i+1)
	delete(ps.byID, p.id)
	delete(p.controller.local, p.handle)
	for _, id := range p.changes {
		delete(ps.changedIn, id)
	}
	return p
}

// programOf returns what is the same for processes that are expected to do the
// same kind of work: the executable's contents, and the command line, since an
// interpreter is another program with another script. Digits are left out: they are
// what the jobs of a bag differ in, the part of the input or the seed. It is empty
// while the contents are not known, and for ranks: these wait for each other, so
// that what helps all of them shows nothing in one.
func programOf(info *attunev1.Process) string {
	if info.GetExecutableSha256() == "" || info.Rank != nil {
		return ""
	}
	h := sha256.New()
	_, _ = io.WriteString(h, info.GetExecutableSha256()) // a hash does not fail
	for _, word := range info.GetCommandLine() {
		_, _ = io.WriteString(h, "\x00"+strings.Map(withoutDigits, word))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// withoutDigits is for strings.Map.
func withoutDigits(r rune) rune {
	if unicode.IsDigit(r) {
		return -1
	}
	return r
}
