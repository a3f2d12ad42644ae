// SPDX-License-Identifier: Apache-2.0

package probes

import (
	"slices"
	"strconv"
	"sync/atomic"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/analyzer/fold"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// wishes are the measure points that one asker has in single processes, as the
// session's frames tell of them.
type wishes struct {
	account *fold.Account // has taken each frame before
	name    string
	// hear is told what happens, and must not wait; nil: nobody listens.
	hear func(*attunev1.WatchProbesResponse)
	// empty is called when the last wish is over; nil: nobody waits for that.
	empty func()
	list  []*wish
	left  atomic.Int64 // length of list, for any goroutine
}

// wish is one measure point in one process.
type wish struct {
	number uint32
	text   string
	follow bool
	index  uint32                 // of the point; 0: there is none
	spec   *attunev1.MeasurePoint // in that process
	image  fold.Image             // in which it is asked for
	status *attunev1.PointStatus  // nil: not answered yet
	heard  bool                   // something was told of the process
}

func (w *wish) probe(owner string) *attunev1.Probe {
	return &attunev1.Probe{
		Number: w.number, Text: w.text, Owner: owner, Pid: int32(w.image.PID), Executable: w.image.Executable, Status: w.status,
	}
}

// want is what the wishes amount to.
func (ws *wishes) want() *attunev1.Want {
	out := &attunev1.Want{}
	for _, w := range ws.list {
		if w.index != 0 {
			out.Points = append(out.Points, &attunev1.PointWant{Point: w.spec, Follow: w.follow})
		}
	}
	return out
}

// chosen returns the wishes for processes, all if none is given.
func (ws *wishes) chosen(pids []int32) (out []*wish) {
	for _, w := range ws.list {
		if len(pids) == 0 || slices.Contains(pids, int32(w.image.PID)) {
			out = append(out, w)
		}
	}
	return out
}

// drop takes wishes out.
func (ws *wishes) drop(gone []*wish) {
	ws.list = slices.DeleteFunc(ws.list, func(w *wish) bool { return slices.Contains(gone, w) })
	ws.left.Store(int64(len(ws.list)))
}

// Take implements session.Sink.
func (ws *wishes) Take(f *attunev1.RecordingFrame) {
	switch k := f.GetWhat().(type) {
	case *attunev1.RecordingFrame_Asked:
		if k.Asked.GetAsker() == ws.name {
			ws.asked(k.Asked)
		}
	case *attunev1.RecordingFrame_PointStatus:
		for _, w := range ws.list {
			if st := k.PointStatus; w.index == st.GetPoint() && (st.GetProcess() == w.image.Handle || st.GetProcess() == 0) {
				ws.answer(w, st)
			}
		}
	case *attunev1.RecordingFrame_Aggregates:
		ws.aggregates(k.Aggregates)
	case *attunev1.RecordingFrame_Records:
		ws.records(k.Records)
	}
}

// asked notes what became of a wish. One that goes on in another image keeps its
// number, and the old one is over afterwards.
func (ws *wishes) asked(r *attunev1.RecordedAsk) {
	i := slices.IndexFunc(ws.list, func(w *wish) bool { return w.number == r.GetNumber() })
	if r.GetOver() {
		if i >= 0 && ws.list[i].image.Handle == r.GetProcess() {
			ws.over(ws.list[i])
		}
		return
	}
	if i < 0 {
		i = len(ws.list)
		ws.list = append(ws.list, &wish{number: r.GetNumber(), text: r.GetId()})
		ws.left.Store(int64(len(ws.list)))
	}
	w := ws.list[i]
	w.index, w.follow, w.image, w.status = r.GetPoint(), r.GetFollow(), ws.account.Image(r.GetProcess()), nil
	if r.GetRefused() != "" {
		ws.answer(w, &attunev1.PointStatus{State: attunev1.PointState_POINT_STATE_REFUSED, Reason: r.GetRefused(), Process: r.GetProcess()})
		return
	}
	spec, known := ws.account.Point(w.index)
	w.spec = proto.CloneOf(spec)
	w.spec.Id, w.spec.Processes = w.text, []uint64{w.image.Handle}
	if st := known[w.image.Handle]; st != nil {
		ws.answer(w, st)
	}
}

func (ws *wishes) answer(w *wish, st *attunev1.PointStatus) {
	w.status, w.heard = proto.CloneOf(st), true
	ws.tell(&attunev1.WatchProbesResponse{Event: &attunev1.WatchProbesResponse_Probe{Probe: w.probe(ws.name)}})
}

// over drops a wish. With the last one in a process it tells of the end of that, if
// somebody has heard of the process.
func (ws *wishes) over(gone *wish) {
	ws.drop([]*wish{gone})
	if len(ws.list) == 0 && ws.empty != nil {
		defer ws.empty()
	}
	for _, w := range ws.list {
		if w.image.Handle == gone.image.Handle {
			w.heard = w.heard || gone.heard
			return
		}
	}
	if gone.heard {
		ws.tell(&attunev1.WatchProbesResponse{Event: &attunev1.WatchProbesResponse_Ended{Ended: int32(gone.image.PID)}})
	}
}

// aggregates passes on the sums of the points, by the numbers of the wishes.
func (ws *wishes) aggregates(b *attunev1.AggregateBatch) {
	if ws.hear == nil {
		return
	}
	hits := &attunev1.HandleEventsRequest{FromUnixNano: b.GetFromUnixNano(), ToUnixNano: b.GetToUnixNano()}
	for _, a := range b.GetAggregates() {
		for _, w := range ws.list {
			if w.index == a.GetPoint() && w.image.Handle == a.GetProcess() {
				hits.Aggregates = append(hits.Aggregates, &attunev1.NamedAggregate{
					PointId: strconv.FormatUint(uint64(w.number), 10), Aggregate: proto.CloneOf(a),
				})
			}
		}
	}
	if len(hits.GetAggregates()) > 0 {
		ws.tell(&attunev1.WatchProbesResponse{Event: &attunev1.WatchProbesResponse_Hits{Hits: hits}})
	}
}

// records passes on single hits of the points, and how many are lost.
func (ws *wishes) records(n *attunev1.NamedRecords) {
	if ws.hear == nil {
		return
	}
	wanted, single := map[uint32]bool{}, false
	for _, w := range ws.list {
		if w.image.Handle == n.GetProcess() {
			wanted[w.index] = true
			d := w.spec.GetDelivery()
			single = single || d == attunev1.Delivery_DELIVERY_EVENT || d == attunev1.Delivery_DELIVERY_SAMPLED
		}
	}
	if len(wanted) == 0 {
		return
	}
	own := &attunev1.NamedRecords{Process: n.GetProcess(), Lost: n.GetLost(), MonotonicToUnixNano: n.GetMonotonicToUnixNano()}
	for run := range attunev1.RecordRuns(n.GetRecords()) {
		if wanted[run.Point] {
			own.Records = append(own.Records, run.Packed...)
		}
	}
	if len(own.GetRecords()) > 0 || own.GetLost() > 0 && single {
		ws.tell(&attunev1.WatchProbesResponse{Event: &attunev1.WatchProbesResponse_Hits{
			Hits: &attunev1.HandleEventsRequest{Records: []*attunev1.NamedRecords{own}},
		}})
	}
}

func (ws *wishes) tell(event *attunev1.WatchProbesResponse) {
	if ws.hear != nil {
		ws.hear(event)
	}
}
