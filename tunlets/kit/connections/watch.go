// SPDX-License-Identifier: Apache-2.0

package connections

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/attune-hpc/attune/tunlets/kit/turns"
	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/sdk/perprocess"
)

const (
	// observed is how long a connection is observed before it is judged: 20
	// readings, and 25 of the shortest stalls (40 ms) that a model is about.
	observed = time.Second
	// woken is over how long the signals are looked at, again, before the sockets.
	woken = 500 * time.Millisecond
	// patience is how long a process is looked at that has connections, of which
	// none suffers. The first readings come after 400 ms.
	patience = 3500 * time.Millisecond
	// unseen is how long it is looked at without any connection.
	unseen = time.Second
	// goneAfter is without reading a connection is forgotten.
	goneAfter = time.Second
	// leastReadings of a connection that is judged.
	leastReadings = 8

	// maxFlows bounds the connections that are followed in one process, and with the
	// bound of the processes the memory: some 700 bytes each.
	maxFlows = 512
	// maxPlaces bounds the connections that are changed at one time. Of more, the
	// fastest come first.
	maxPlaces = 64
	// maxTaken bounds the connections that are remembered as changed. One that is
	// forgotten does not suffer any more.
	maxTaken = 16384
	// maxTries per process that may end otherwise than kept.
	maxTries = 3
)

// socket names one for good. Processes may share it: who inherits one has the same.
type socket struct {
	host  string
	inode uint64
}

// taken are the connections that are being changed or have been.
type taken map[socket]bool

type state uint8

const (
	asleep   state = iota // signals only
	looking               // sockets are read; the objective is reported
	proposed              // likewise, and a change is proposed
	done                  // tried often enough
)

// watch follows one process.
type watch struct {
	problem *Problem
	handle  sdk.Handle
	host    string
	taken   taken // of all processes
	window  *sdk.Window
	state   state
	since   time.Time // when the state began
	until   time.Time // asleep: not before this
	backoff sdk.Backoff

	flows    map[uint64]*Flow // by inode
	table    turns.Table      // in which they are read
	reported time.Time        // the objective was, last
	places   map[int]int      // how many connections were changed under a descriptor
	cured    map[int]bool     // descriptors of those that were before the tunlet was started again
	changed  map[uint64]int   // descriptors of the connections in the present proposal, by inode
	proposal string
	sequence int // of proposals
	failures int
	looks    perprocess.Looks // at what was kept last
}

func newWatch(problem *Problem, p sdk.Process, taken taken) *watch {
	return &watch{
		problem: problem, handle: p.Handle, host: p.Host, taken: taken, window: sdk.NewWindow(observed),
		flows: map[uint64]*Flow{}, places: map[int]int{}, cured: map[int]bool{},
	}
}

func (w *watch) enter(s state, now time.Time) { w.state, w.since = s, now }

// sleep wants nothing but the samples in which the trouble may begin.
func (w *watch) sleep(h *sdk.Host) {
	w.flows = map[uint64]*Flow{} // a cleared one keeps its size
	w.window.Reset()
	h.WantDetails(w.handle)
	if w.looks.Open() {
		w.looks.End(h.Now())
	}
	if w.state == done {
		h.Want(w.handle, w.looks.Until(h.Now(), sdk.NoSamples()))
		return
	}
	h.Want(w.handle, w.looks.Until(h.Now(), sdk.Awaited(w.problem.Wake, sdk.Process{})))
}

// rest sleeps, longer each time that nothing is found.
func (w *watch) rest(h *sdk.Host) {
	w.until = h.Now().Add(w.backoff.Next())
	if w.enter(asleep, h.Now()); w.failures >= maxTries {
		w.enter(done, h.Now())
	}
	w.sleep(h)
}

// begin reads sockets, and reports the objective.
func (w *watch) begin(h *sdk.Host) {
	w.enter(looking, h.Now())
	h.WantDetails(w.handle, sdk.DetailSockets)
}

// look takes a sample of the process.
func (w *watch) look(h *sdk.Host, s sdk.Sample) {
	w.window.Add(s)
	due := w.looks.Due(h.Now())
	switch w.state {
	case asleep, done:
		if due {
			w.begin(h)
		} else if w.state == asleep {
			w.wake(h)
		}
	case looking, proposed:
		if s.Details.Sockets != nil {
			w.read(h.Now(), s.Details.Sockets)
			w.report(h)
		}
		if w.state == looking {
			w.decide(h)
		}
	}
}

// report tells the objective when there is a new value of it.
func (w *watch) report(h *sdk.Host) {
	if w.renewed() {
		w.reported = h.Now()
		h.Objective(w.handle.Scope(), w.rate())
		w.looks.Reported()
	}
}

// wake begins to read sockets when a condition of waking has held for long
// enough. Without one the samples stop.
func (w *watch) wake(h *sdk.Host) {
	span := w.window.Latest(woken)
	if h.Now().Before(w.until) || span.Duration() < woken*9/10 {
		return
	}
	for _, c := range w.problem.Wake {
		if reached(span, c.Levels) {
			w.begin(h)
			return
		}
	}
	w.sleep(h)
}

func reached(s sdk.Span, levels []sdk.Level) bool {
	for _, l := range levels {
		if v, ok := s.Rate(l.Signal); !ok || v < l.AtLeast {
			return false
		}
	}
	return true
}

// read takes the connections that were read in a round, and forgets those that
// are closed.
func (w *watch) read(now time.Time, sockets *sdk.SocketDetails) {
	w.table.Round(now, len(sockets.Items), sockets.Total)
	for i := range sockets.Items {
		d := &sockets.Items[i]
		if d.TCP == nil || d.TCP.State != established {
			continue
		}
		f := w.flows[d.Inode]
		if f == nil {
			if len(w.flows) >= maxFlows {
				continue
			}
			f = &Flow{}
			w.flows[d.Inode] = f
			if w.cured[d.FD] {
				delete(w.cured, d.FD)
				w.taken[socket{w.host, d.Inode}] = true
			}
		}
		f.turn = w.table.Of(f.turn)
		f.take(now, *d, w.problem.Mark != nil && w.problem.Mark(d))
	}
	for inode, f := range w.flows {
		if now.Sub(f.To) > goneAfter {
			delete(w.flows, inode)
		}
	}
}

// inOrder lists the connections in the order of their inodes, so that sums do not
// depend on chance.
func (w *watch) inOrder() []*Flow {
	list := slices.Collect(maps.Values(w.flows))
	slices.SortFunc(list, func(a, b *Flow) int { return cmp.Compare(a.Latest.Inode, b.Latest.Inode) })
	return list
}

// renewed reports whether the connections have been read since the objective was reported. Of many,
// some are read in a round, in turn: a sum of which a part is older would tell half of what a change
// has done, and of a time before it.
func (w *watch) renewed() bool {
	renewed := len(w.flows) == 0
	for _, f := range w.flows {
		switch {
		case f.To.After(w.reported), w.table.Gone(f.turn):
			renewed = true
		case w.table.Awaited(f.turn):
			return false
		}
	}
	return renewed
}

// rate is the objective: bytes per second over all connections that are still there,
// each as it was read last.
func (w *watch) rate() (sum float64) {
	for _, f := range w.inOrder() {
		if !w.table.Gone(f.turn) {
			sum += f.rate
		}
	}
	return sum
}

// decide judges the connections when they have been observed for long enough.
func (w *watch) decide(h *sdk.Host) {
	waited := h.Now().Sub(w.since)
	looks := w.looks.Open() && !w.looks.Over(h.Now())
	if !looks && (waited > patience || waited > unseen && len(w.flows) == 0) {
		w.rest(h)
		return
	}
	if w.failures >= maxTries {
		return
	}
	if suffering := w.judge(); len(suffering) > 0 {
		w.propose(h, suffering)
	}
}

// load is what the process did over the time observed.
func (w *watch) load() (l Load, ok bool) {
	span := w.window.Latest(observed)
	run, okRun := span.Rate(sdk.RunTime)
	wait, okWait := span.Rate(sdk.RunqueueWait)
	l.CPU, l.Wait = run*1e-9, wait*1e-9
	for _, f := range w.inOrder() {
		l.Exchanges += f.ReceivedRate()
	}
	return l, okRun && okWait
}

// sufferer is a connection with its cure.
type sufferer struct {
	*Flow
	Cure
}

// judge returns the connections that suffer, the fastest first. What has been
// observed for long enough is observed anew.
func (w *watch) judge() (suffering []sufferer) {
	l, ok := w.load()
	if !ok {
		return nil
	}
	for _, f := range w.inOrder() {
		if f.Readings < leastReadings || f.To.Sub(f.From) < observed*9/10 {
			continue
		}
		if cure, ok := w.problem.Judge(l, f); ok && !w.taken[socket{w.host, f.Latest.Inode}] {
			suffering = append(suffering, sufferer{f, cure})
		}
	}
	slices.SortStableFunc(suffering, func(a, b sufferer) int { return cmp.Compare(b.Rate(), a.Rate()) })
	if len(suffering) == 0 {
		for _, f := range w.flows {
			if f.Readings >= leastReadings && f.To.Sub(f.From) >= observed {
				f.restart()
			}
		}
	}
	return suffering
}
