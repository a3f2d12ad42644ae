// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"maps"
	"time"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/objective"
	"github.com/attune-hpc/attune/internal/pointtext"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// ownPoints are the measure points of the owner; what [pointtext.Parse] does not
// understand is left out.
func ownPoints(texts []string) *attunev1.Want {
	want := &attunev1.Want{}
	for _, text := range texts {
		if point, err := pointtext.Parse(text); err == nil {
			want.Points = append(want.Points, &attunev1.PointWant{Point: point.Spec})
		}
	}
	return want
}

const (
	// lastingRate is how long the rate of a part counts that is told each 50 ms, on a busy
	// machine too, and lastingNumber how long a number that is told now and then.
	lastingRate   = 2 * time.Second
	lastingNumber = 30 * time.Second
)

// hitRate makes values of the owner's objective of the hits of a point. It belongs to the session's
// loop.
type hitRate struct {
	whole whole[uint64] // by process
	index uint32        // of the point; 0: there is none
	hit   bool          // once at least: what comes before is not of the objective
	// off are processes of which the overhead budget leaves no hits, so that nothing is known of
	// the whole; false: it leaves them again, and the next interval is not complete.
	off map[uint64]bool
	say func(text string) // once; nil: it was said
}

func newHitRate(measured func(float64, time.Time), say func(string)) *hitRate {
	return &hitRate{
		whole: whole[uint64]{measured: measured, steady: true, lasting: lastingRate},
		off:   map[uint64]bool{}, say: say,
	}
}

// Take implements session.Sink.
func (h *hitRate) Take(f *attunev1.RecordingFrame) {
	switch k := f.GetWhat().(type) {
	case *attunev1.RecordingFrame_Asked:
		if k.Asked.GetAsker() == report.ObjectiveAsker && !k.Asked.GetOver() {
			h.index = k.Asked.GetPoint()
		}
	case *attunev1.RecordingFrame_Aggregates:
		h.count(k.Aggregates)
	case *attunev1.RecordingFrame_PointStatus:
		if k.PointStatus.GetPoint() == h.index {
			h.changed(k.PointStatus)
		}
	case *attunev1.RecordingFrame_ProcessGone:
		process := k.ProcessGone.GetEnded().GetProcess()
		h.whole.leave(process)
		delete(h.off, process)
	}
}

// changed takes what became of the point in a process.
func (h *hitRate) changed(st *attunev1.PointStatus) {
	_, off := h.off[st.GetProcess()]
	switch {
	case st.GetState() == attunev1.PointState_POINT_STATE_OFF:
		h.off[st.GetProcess()] = true
		h.whole.restart()
		if h.say != nil {
			h.say("your objective: it is not known while the overhead budget of a process leaves nothing of the point")
			h.say = nil
		}
	case st.GetState() != attunev1.PointState_POINT_STATE_PLACED:
		delete(h.off, st.GetProcess())
	case off:
		h.off[st.GetProcess()] = false
	}
}

// count takes the hits of an interval in the processes of a node. Where the point is nowhere
// served there are none: that is not known, and not zero.
func (h *hitRate) count(b *attunev1.AggregateBatch) {
	seconds := time.Duration(b.GetToUnixNano() - b.GetFromUnixNano()).Seconds()
	if seconds <= 0 {
		return
	}
	rates := map[uint64]float64{}
	known := len(h.off) == 0
	for _, one := range b.GetAggregates() {
		if one.GetPoint() == h.index {
			rates[one.GetProcess()] += float64(one.GetCount()) / seconds
			h.hit = h.hit || one.GetCount() > 0
		}
	}
	maps.DeleteFunc(h.off, func(process uint64, off bool) bool {
		_, counted := rates[process]
		return counted && !off
	})
	if known && h.hit && len(rates) > 0 {
		h.whole.take(time.Unix(0, b.GetFromUnixNano()), time.Unix(0, b.GetToUnixNano()), rates)
	}
}

// nodes makes values of the owner's objective of what the nodes find in files. It belongs
// to the session's loop.
type nodes struct {
	whole whole[string] // by controller
	said  map[string]bool
}

func newNodes(spec objective.Spec, measured func(float64, time.Time)) *nodes {
	n := &nodes{said: map[string]bool{}, whole: whole[string]{measured: measured, steady: true, lasting: lastingRate}}
	if spec.Meaning == objective.Value || spec.Meaning == objective.Rate {
		n.whole.steady, n.whole.lasting = false, lastingNumber
	}
	n.whole.mean = spec.Meaning == objective.Value
	return n
}

// mostSaid bounds what nodes have to say of an objective.
const mostSaid = 20

// take takes what a controller has found, or why it found nothing, which people are to
// be told the first time.
func (n *nodes) take(controller string, part *attunev1.ObjectivePart) (remark string) {
	text := part.GetTrouble()
	if text == "" {
		n.whole.take(time.Time{}, time.Unix(0, part.GetEndUnixNano()), map[string]float64{controller: part.GetValue()})
		return ""
	}
	if n.said[text] || len(n.said) >= mostSaid {
		return ""
	}
	n.said[text] = true
	return "your objective: " + text
}
