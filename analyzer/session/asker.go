// SPDX-License-Identifier: Apache-2.0

package session

import attunev1 "github.com/attune-hpc/attune/proto/attune/v1"

// asker is somebody who wants to see something and gets frames instead of calls: people
// at another command, the command line, who records.
type asker struct {
	holder
	teller  *teller
	sink    Sink           // nil: they ask for others
	want    *attunev1.Want // the session's own copy; grows with what it follows
	numbers map[wish]uint32
	follows map[wish]bool
	last    uint32 // number
}

// recorded is what the sinks are told of a wish; the caller adds the rest.
func (a *asker) recorded(w wish) *attunev1.RecordedAsk {
	r := w.recorded(a.name)
	r.Number, r.Follow = a.numbers[w], a.follows[w]
	return r
}

// granted implements hearer.
func (a *asker) granted(w wish, _ *attunev1.MeasurePoint, p *point) {
	r := a.recorded(w)
	r.Point = p.index
	a.teller.emitAsk(r)
}

// refused implements hearer.
func (a *asker) refused(w wish, _ *attunev1.MeasurePoint, reason string) {
	r := a.recorded(w)
	r.Refused = reason
	a.teller.emitAsk(r)
}

// changed implements hearer: a frame says it.
func (a *asker) changed(wish, *attunev1.PointStatus) {}

// released implements hearer.
func (a *asker) released(w wish, p *point) { a.over(w, p.index) }

// over tells of the end of a wish, for a point or, 0, for one that was refused.
func (a *asker) over(w wish, point uint32) {
	r := a.recorded(w)
	r.Point, r.Over = point, true
	a.teller.emitAsk(r)
}

// tables implements party.
func (a *asker) tables(process uint64) (tables []uint32) {
	for _, w := range a.want.GetTables() {
		if w.GetProcess() == process {
			tables = append(tables, w.GetTables()...)
		}
	}
	return tables
}

// wantsAny says whether an asker wants anything at present.
func (a *asker) wantsAny() bool {
	return len(a.want.GetPoints())+len(a.want.GetTables()) > 0 || a.want.GetPeriodNanos() > 0
}
