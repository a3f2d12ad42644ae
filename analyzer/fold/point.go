// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/hits"
	"github.com/attune-hpc/attune/internal/pointtext"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// maxRetired bounds the points that the report lists after they were given back.
	maxRetired = 1024
	// maxKeys bounds the keys that the report keeps apart of one point, over
	// all processes.
	maxKeys = 1024
	// maxStates bounds what it tells apart of processes that have ended: why a point was
	// refused names them, and costs that were measured differ.
	maxStates = 64
	// maxSteps bounds the steps of the overhead budget that it tells of one.
	maxSteps = 256
)

// points are all measure points.
type points struct {
	byIndex   map[uint32]*point
	list      []*point // in the order asked for, given back ones among them
	retired   int      // those
	omitted   int      // of them, forgotten
	ratesFrom time.Duration
}

// point is one measure point.
type point struct {
	index    uint32
	spec     *attunev1.MeasurePoint
	over     bool
	askers   []asker                          // at present
	askedBy  []asker                          // each once, however often it came and went; all who watch as one
	status   map[uint64]*attunev1.PointStatus // by running process
	past     map[statusKey]share              // of processes that have ended
	hits     uint64
	hitsIn   map[uint64]uint64      // by running process
	hitsThen uint64                 // hits when the rate was taken last
	rate     float64                // hits per second
	sums     map[hits.Key]*hits.Sum // of aggregates, over all processes
	steps    bothEnds[report.Step]  // that the overhead budget took
	late     time.Duration          // the longest that it was in any process
}

// asker is who asked for a point, and under which name.
type asker struct {
	name, id string
	shown    string // id, and the process if it is for that alone
	number   uint32 // of the wish; 0: none
	tally    *tally // of single hits, for those of the owner; else nil
}

// statusKey is what the report tells apart.
type statusKey struct {
	state             attunev1.PointState
	mechanism, reason string
	cost              float64
	costMeasured      bool // on this machine
}

// share is what there is of a point in one state.
type share struct {
	processes int
	hits      uint64
}

func (s share) plus(processes int, hits uint64) share {
	return share{s.processes + processes, s.hits + hits}
}

// keyOf returns what the report tells of a status.
func keyOf(st *attunev1.PointStatus) statusKey {
	return statusKey{st.GetState(), st.GetMechanism(), st.GetReason(), st.GetCostNanos(), st.GetCostMeasured()}
}

func newPoints() points { return points{byIndex: map[uint32]*point{}} }

func (ps *points) add(p *attunev1.AddPoint) {
	one := &point{
		index: p.GetPoint(), spec: proto.CloneOf(p.GetSpec()), status: map[uint64]*attunev1.PointStatus{},
		past: map[statusKey]share{}, hitsIn: map[uint64]uint64{}, sums: map[hits.Key]*hits.Sum{},
	}
	ps.byIndex[one.index] = one
	ps.list = append(ps.list, one)
}

// retire keeps a point that nobody wants for the report, as long as there is room.
func (ps *points) retire(index uint32) {
	p := ps.byIndex[index]
	if p == nil {
		return
	}
	delete(ps.byIndex, index)
	p.over = true
	if ps.retired < maxRetired {
		ps.retired++
		return
	}
	ps.omitted++
	ps.list = slices.DeleteFunc(ps.list, func(q *point) bool { return q == p })
}

// ask notes who wants a point, and in which process if in one only.
func (ps *points) ask(r *attunev1.RecordedAsk, pid int) {
	p := ps.byIndex[r.GetPoint()]
	if p == nil {
		return
	}
	one := asker{name: r.GetAsker(), id: r.GetId(), shown: r.GetId(), number: r.GetNumber()}
	if r.GetProcess() != 0 {
		one.shown = fmt.Sprintf("%s in %d", one.id, pid)
	}
	same := func(o asker) bool { return o.name == one.name && o.shown == one.shown }
	if r.GetOver() {
		p.askers = slices.DeleteFunc(p.askers, same)
		return
	}
	one.tally = p.list(one)
	p.askers = append(p.askers, one)
}

// list notes for the report who asked for the point, and returns the tally of single hits, of
// the owner's.
func (p *point) list(one asker) *tally {
	if strings.HasPrefix(one.name, report.WatchAsker+" ") {
		one.name = report.WatchAsker
	}
	if i := slices.IndexFunc(p.askedBy, func(o asker) bool { return o.name == one.name && o.shown == one.shown }); i >= 0 {
		return p.askedBy[i].tally
	}
	if read, err := pointtext.Parse(one.id); err == nil && one.name == report.OwnerName {
		one.tally = newTally(read)
	}
	p.askedBy = append(p.askedBy, one)
	return one.tally
}

// hit counts hits in a process.
func (p *point) hit(process, n uint64) {
	p.hits += n
	p.hitsIn[process] += n
}

// sum adds an aggregate up. Keys beyond the bound go to those without one.
func (ps *points) sum(a *attunev1.Aggregate) {
	p := ps.byIndex[a.GetPoint()]
	if p == nil {
		return // given back while it was under way
	}
	p.hit(a.GetProcess(), a.GetCount())
	k := hits.KeyOf(a)
	if _, known := p.sums[k]; !known && len(p.sums) > maxKeys {
		k = hits.Key{}
	}
	s := p.sums[k]
	if s == nil {
		s = &hits.Sum{Signed: attunev1.SignedCapture(p.spec, p.spec.GetValueCapture())}
		p.sums[k] = s
	}
	s.Join(a)
}

// records counts single hits, and those of the owner's points by what they
// captured. It returns how many there are, also of points that are not known.
func (ps *points) records(n *attunev1.NamedRecords) (all uint64) {
	for run := range attunev1.RecordRuns(n.GetRecords()) {
		all += run.Records
		p := ps.byIndex[run.Point]
		if p == nil {
			continue
		}
		p.hit(n.GetProcess(), run.Records)
		for _, o := range p.askers {
			o.tally.addAll(run.Packed)
		}
	}
	return all
}

// tick takes the rates once a second.
func (ps *points) tick(now time.Duration) {
	period := now - ps.ratesFrom
	if period < time.Second {
		return
	}
	for _, p := range ps.byIndex {
		p.rate = float64(p.hits-p.hitsThen) / period.Seconds()
		p.hitsThen = p.hits
	}
	ps.ratesFrom = now
}

// state notes what became of a point in the process pid at a time, and says whether
// that is news.
func (ps *points) state(st *attunev1.PointStatus, pid int, at time.Duration) (news bool) {
	p := ps.byIndex[st.GetPoint()]
	if p == nil {
		return false
	}
	before := p.status[st.GetProcess()]
	p.status[st.GetProcess()] = proto.CloneOf(st)
	p.late = max(p.late, time.Duration(st.GetLateNanos()))
	stepped := before.GetDegradedReason() != st.GetDegradedReason()
	if stepped {
		p.steps.add(report.Step{Seconds: at.Seconds(), Process: pid, Text: hits.StateText(st)}, maxSteps)
	}
	return stepped || before.GetState() != st.GetState() || before.GetReason() != st.GetReason()
}

// processGone folds the statuses of a process into numbers. Where another image
// took its place, what it refused is not told: most often, that it was replaced.
func (ps *points) processGone(id uint64, replaced bool) {
	for _, p := range ps.byIndex {
		if st := p.status[id]; st != nil {
			if !replaced || st.GetState() != attunev1.PointState_POINT_STATE_REFUSED {
				p.noteEnd(keyOf(st), p.hitsIn[id])
			}
			delete(p.status, id)
		}
		delete(p.hitsIn, id)
	}
}

// noteEnd notes how a point was in a process that has ended, and its hits there.
func (p *point) noteEnd(k statusKey, hits uint64) {
	if _, known := p.past[k]; !known && len(p.past) >= maxStates {
		k = statusKey{state: k.state, mechanism: k.mechanism}
	}
	p.past[k] = p.past[k].plus(1, hits)
}
