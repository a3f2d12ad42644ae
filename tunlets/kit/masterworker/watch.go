// SPDX-License-Identifier: Apache-2.0

package masterworker

import (
	"fmt"
	"strings"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

const (
	// warmUp is how long the first rounds do not count: a program that starts
	// touches memory and fills caches.
	warmUp = 300 * time.Millisecond
	// leastSeconds and leastRounds are what a model needs: a second has dozens of
	// time slices, so that the run share is a mean.
	leastSeconds = 1.0
	leastRounds  = 10
	// rejudge is how long after a change that was kept, or a plan that was none,
	// the model is asked again: programs have phases.
	rejudge = 10 * time.Second
	// windowSpan is over how long CPU time is looked at.
	windowSpan = time.Second
	// leastSpan is the least time over which waits are counted: a single one
	// between two samples looks like twenty a second.
	leastSpan = 100 * time.Millisecond
	// waitsPerSecond is how often a master or worker waits for another one at
	// least, so that it is worth looking at.
	waitsPerSecond = 20
)

// The kinds of measure points.
const (
	kindRound    = "round"
	kindDispatch = "dispatch"
	kindTask     = "task"
)

// Wake says when a program may be one with master and workers: a thread or
// process that waits for others, several threads, or ranks that compute.
func Wake() (list []sdk.Wake) {
	for _, l := range levels() {
		list = append(list, sdk.Wake{Levels: []sdk.Level{l}, Lasting: leastSpan})
	}
	return list
}

// levels is reached by a process that is worth being looked at.
func levels() []sdk.Level {
	return []sdk.Level{
		{Signal: sdk.VoluntarySwitches, AtLeast: waitsPerSecond},
		{Signal: sdk.Threads, AtLeast: 2},
	}
}

// member follows one process that may be part of the program.
type member struct {
	handle sdk.Handle
	host   string
	usable sdk.CPUList // CPUs that it could be given
	window *sdk.Window
	points map[string]bool // the kinds of measure points that are asked for
	rounds bool            // it has begun a round: it has the variable that counts
}

// watched says that measure points are asked for.
func (m *member) watched() bool { return len(m.points) > 0 }

// watch asks for the measure points.
func (t *Tunlet) watch(h *sdk.Host, m *member) {
	if m.watched() {
		return
	}
	m.points = map[string]bool{kindRound: true, kindDispatch: true, kindTask: true}
	h.Want(m.handle, sdk.AllSamples())
	round := t.point(m, kindRound)
	as := sdk.I32
	if t.spec.Bytes == 8 {
		as = sdk.I64 // of a double its bits: as a value it would be cut to an integer
	}
	round.Captures = []sdk.Capture{sdk.Global("value", t.spec.Program.Object, t.spec.Variable, as)}
	round.Value = "value"
	h.AddPoint(round)
	h.AddPoint(t.timed(m, kindDispatch))
	task := t.timed(m, kindTask)
	if t.spec.Worker != nil {
		task.Captures, task.Key = []sdk.Capture{sdk.Thread("worker")}, "worker"
	}
	h.AddPoint(task)
}

// timed is a point that takes the time of calls.
func (t *Tunlet) timed(m *member, kind string) sdk.Point {
	p := t.point(m, kind)
	p.Place = sdk.Both
	return p
}

func (t *Tunlet) point(m *member, kind string) sdk.Point {
	return sdk.Point{
		ID: pointID(kind, m.handle), Object: t.spec.Program.Object, Symbols: []string{t.spec.Program.function(kind)},
		Processes: []sdk.Handle{m.handle},
	}
}

// unwatch gives the points back, and wants nothing more of the process.
func (m *member) unwatch(h *sdk.Host) {
	m.unwatchWork(h)
	m.remove(h, kindRound)
}

// unwatchWork counts nothing but rounds any more.
func (m *member) unwatchWork(h *sdk.Host) {
	h.Want(m.handle, sdk.NoSamples())
	m.remove(h, kindDispatch, kindTask)
}

func (m *member) remove(h *sdk.Host, kinds ...string) {
	for _, kind := range kinds {
		if m.points[kind] {
			delete(m.points, kind)
			h.RemovePoint(pointID(kind, m.handle))
		}
	}
}

func pointID(kind string, p sdk.Handle) string { return fmt.Sprintf("%s@%d", kind, p) }

func kindOf(point string) string {
	kind, _, _ := strings.Cut(point, "@")
	return kind
}
