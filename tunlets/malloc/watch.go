// SPDX-License-Identifier: Apache-2.0

package malloc

import (
	"fmt"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/sdk/perprocess"
)

const (
	// symptomSpan is how long the symptom must last before the program is
	// touched: two rounds of samples. A short burst costs a few hooks for half
	// a second, a long wait would cost the program its gain.
	symptomSpan = 100 * time.Millisecond
	// windowSpan covers the time of confirmation.
	windowSpan = time.Second
	// leastChurn is the part of the faults that must replace memory.
	leastChurn = 0.5
	// leastFaults per second; below, nothing is worth doing.
	leastFaults = 500
	// leastShare of CPU time that must go into it: a gain of 1.11.
	leastShare = 0.10
	// leastExplained is the part of the churned memory that large blocks must
	// account for.
	leastExplained = 0.5

	// baseline is how many objective samples there must be before a proposal.
	baseline = 5
	// patience is how long blocks are counted without a confirmation, and leastLooks
	// how many objective samples there are at least by then: where samples are far
	// apart, there would be a single one from which to judge.
	patience   = time.Second
	leastLooks = 3 * baseline
	// longest is how long blocks are counted where too few samples of it come.
	longest = 10 * time.Second
	// answer is how long a request may remain without an answer once the symptom is
	// gone. As long as it is there, what was asked for costs nothing and is awaited:
	// bringing DMLib into a process may take several tries.
	answer = 3 * time.Second
	// maxTries per process, which is the scope of the objective.
	maxTries = 2
)

// hooks are the allocation functions that are counted. free is not: every
// block that counts was asked for first.
func hooks() []string {
	return []string{"malloc", "calloc", "realloc", "memalign", "aligned_alloc", "posix_memalign"}
}

type state uint8

const (
	quiet    state = iota // no symptom; nothing placed
	asked                 // hooks asked for
	counting              // hooks placed, objective reported
	proposed              // settings proposed; still counting
	looking               // settings kept; counting for the Analyzer, which watches over them
	tuned                 // settings kept, between two looks
	gaveUp                // nothing more to be done
)

// watch follows one process.
type watch struct {
	handle  sdk.Handle
	window  *sdk.Window
	state   state
	since   time.Time // when the state began
	until   time.Time // quiet: not before this
	backoff sdk.Backoff

	host string
	// available is how much memory the process could still take; nil: not known.
	available *uint64

	blocks   blocks // counted since the state `counting` began
	samples  int    // objective samples reported since then
	proposal string
	tries    int
	looks    perprocess.Looks // at what was kept
	kept     bool
}

func newWatch(p sdk.Process) *watch {
	return &watch{handle: p.Handle, host: p.Host, window: sdk.NewWindow(windowSpan)}
}

func (w *watch) point(hook string) string { return fmt.Sprintf("%s@%d", hook, w.handle) }

func (w *watch) enter(s state, now time.Time) { w.state, w.since = s, now }

// active says that hooks are asked for or placed.
func (w *watch) active() bool {
	return w.state == asked || w.state == counting || w.state == proposed || w.state == looking
}

// claims says that memory must be left for blocks that it keeps, or may soon.
func (w *watch) claims() bool { return w.active() || w.state == tuned }

// symptom judges by the signals from outside alone.
func symptom(l load, pages float64) bool {
	return l.faults >= leastFaults && l.churn >= leastChurn && l.share(pages) >= leastShare
}

// lookSeconds is the CPU time that it takes to look closer: the start of the tunlet,
// and of what counts blocks.
const lookSeconds = 0.1

// wakes are met by all that shows the symptom: faults, of which half replace memory,
// and the least share of CPU time in the kernel that they can be put down to, once as
// much was lost as it costs to look closer. So a program that loses nothing pays
// nothing, and others pay twice what they must (the rule for who rents and may buy).
// Where clock ticks do not show time in the kernel, the symptom takes a constant for
// each fault.
func wakes() (list []sdk.Wake) {
	wake := func(lost float64, signal sdk.Signal, least float64, more ...sdk.Level) {
		list = append(list, sdk.Wake{Levels: append(more,
			sdk.Level{Signal: sdk.MinorFaults, AtLeast: leastFaults},
			sdk.Level{Signal: sdk.MinorFaults, AtLeast: 1 / (pageBytes * (1 - leastChurn)), Of: sdk.ResidentBytes},
			sdk.Level{Signal: signal, AtLeast: least, Of: sdk.RunTime},
		), Lasting: time.Duration(lookSeconds / lost * float64(time.Second)), Averaged: true})
	}
	for _, lost := range []float64{0.8, 0.4, 0.2, leastShare, leastShare / 2} { // CPU seconds per second
		kernel := sdk.Level{Signal: sdk.CPUSystem, AtLeast: lost * float64(time.Second)}
		wake(lost, sdk.CPUSystem, leastShare, kernel)
	}
	wake(leastShare, sdk.MinorFaults, leastShare/defaultFaultSeconds/float64(time.Second))
	return list
}

// idle says that samples of the process are of no use for now: nothing more is
// to be done, or there have been few faults for a while.
func (w *watch) idle() bool {
	switch w.state {
	case tuned, gaveUp:
		return true
	case quiet:
		span := w.window.Latest(windowSpan)
		faults, ok := span.Rate(sdk.MinorFaults)
		return ok && span.Duration() >= windowSpan*9/10 && faults < leastFaults
	}
	return false
}

// sample takes a round's signals. It also ends waiting that has no end of its
// own.
func (w *watch) sample(h *sdk.Host, s sdk.Sample) {
	w.window.Add(s)
	if m := s.Details.Memory; m != nil && m.Error == "" {
		w.available = &m.AvailableBytes
	}
	waited := h.Now().Sub(w.since)
	switch {
	case w.state == looking && w.looks.Over(h.Now()), w.state == asked && waited > answer && w.kept:
		w.endLook(h)
	case w.state == asked && waited > answer && !w.suspect(), w.state == counting && waited > longest:
		w.rest(h)
	case w.state == tuned && w.looks.Due(h.Now()):
		w.ask(h)
	}
	if w.state == quiet && !h.Now().Before(w.until) && w.suspect() {
		h.WantDetails(w.handle, sdk.DetailMemory)
		w.ask(h)
	}
}

// suspect says that the latest samples show the symptom. Whether huge pages are in play
// is not known yet: it allows for them.
func (w *watch) suspect() bool {
	span := w.window.Latest(symptomSpan)
	l, ok := loadOf(span)
	return ok && span.Duration() >= symptomSpan*9/10 && symptom(l, maxPages)
}

// arenas is how many of them glibc may have made, one at least: one for a thread, but no
// more than arenasPerCPU for each CPU, where it is known on how many the process may run.
func (w *watch) arenas() uint64 {
	threads, _ := w.window.Max(sdk.Threads)
	if cpus, ok := w.window.Max(sdk.CPUsAllowed); ok && cpus > 0 {
		threads = min(threads, arenasPerCPU*cpus)
	}
	return max(1, uint64(threads))
}

// ask asks for the hooks.
func (w *watch) ask(h *sdk.Host) {
	for _, hook := range hooks() {
		h.AddPoint(sdk.Point{
			ID: w.point(hook), Hook: hook, MinValue: largeBytes, Processes: []sdk.Handle{w.handle},
		})
	}
	w.blocks, w.samples = blocks{}, 0
	w.enter(asked, h.Now())
}

// placed hears of a hook. Without malloc itself there is nothing to go by.
func (w *watch) placed(h *sdk.Host, c sdk.PointChange) {
	switch {
	case !w.active() || c.Removed:
	case c.Off: // for the time being: nothing is counted, but it may come back
	case c.Placed && w.state == asked && w.kept:
		w.enter(looking, h.Now())
	case c.Placed && w.state == asked:
		w.enter(counting, h.Now())
	case !c.Placed && c.Point == w.point("malloc") && w.kept:
		w.endLook(h)
	case !c.Placed && c.Point == w.point("malloc"):
		h.Remark(w.handle, "page faults replace memory that was given back, but allocations cannot be watched: %s", c.Reason)
		w.release(h)
		w.enter(gaveUp, h.Now())
	}
}

// count takes what the hooks of this process counted over one interval, and
// reports the objective. An interval that began before the hooks were there
// tells nothing.
func (w *watch) count(h *sdk.Host, from time.Time, b blocks) {
	if !w.active() || w.state == asked || from.Before(w.since) && w.state != proposed {
		return
	}
	h.Objective(w.handle.Scope(), b.count/b.seconds)
	w.looks.Reported()
	w.samples++
	w.blocks.seconds += b.seconds
	w.blocks.count += b.count
	w.blocks.bytes += b.bytes
	w.blocks.helped += b.helped
}

// gain predicts, from what was counted, how many times faster the process gets.
func (w *watch) gain(l load, pages float64) float64 {
	if rise, ok := w.window.Rise(sdk.ResidentBytes); ok {
		l = l.grows(rise)
	}
	return gain(l.confirmedShare(pages) * w.blocks.likely(l, w.blocks.helped))
}

// release gives the hooks and the details back.
func (w *watch) release(h *sdk.Host) {
	h.WantDetails(w.handle)
	for _, hook := range hooks() {
		h.RemovePoint(w.point(hook))
	}
}

// rest gives the hooks back and waits, longer each time, before the symptom
// counts again.
func (w *watch) rest(h *sdk.Host) {
	w.release(h)
	w.until = h.Now().Add(w.backoff.Next())
	w.enter(quiet, h.Now())
}

// keep begins to look after settings that were kept.
func (w *watch) keep(h *sdk.Host, proposal string) {
	w.kept = true
	w.looks.Begin(h.Now(), proposal)
	h.WantDetails(w.handle)
	w.enter(looking, h.Now())
}

// hear hears what becomes of settings after they were kept, or were before the tunlet was
// started again.
func (w *watch) hear(h *sdk.Host, c sdk.ProposalChange) {
	if w.looks.TakeUp(c, w.handle.Scope()) {
		w.kept = true
		w.enter(tuned, h.Now())
		h.Want(w.handle, sdk.AllSamples())
		return
	}
	switch began, ended := w.looks.Hear(h.Now(), c); {
	case began && (w.state == tuned || w.state == gaveUp):
		h.Want(w.handle, sdk.AllSamples())
		w.ask(h)
	case ended:
		w.release(h)
		w.enter(gaveUp, h.Now())
	}
}

// endLook gives the hooks back until the next look.
func (w *watch) endLook(h *sdk.Host) {
	w.looks.End(h.Now())
	w.release(h)
	w.enter(tuned, h.Now())
}
