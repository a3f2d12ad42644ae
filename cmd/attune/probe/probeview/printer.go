// SPDX-License-Identifier: Apache-2.0

package probeview

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/internal/hits"
	"github.com/attune-hpc/attune/internal/pointtext"
	"github.com/attune-hpc/attune/internal/printable"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Options of a Printer.
type Options struct {
	// Output takes hits and intervals.
	Output io.Writer
	// Notes takes what becomes of points and processes; with JSON it goes to
	// Output as well.
	Notes io.Writer
	// Pids are the processes that were asked for; others are descendants that are followed.
	Pids []int32
	// JSON writes one document per line.
	JSON bool
	// Histogram shows how values are distributed.
	Histogram bool
	// Top is how many keys of a point are shown, those with the most hits; what the
	// others have is added up. 0: all. Documents have all.
	Top int
	// Screen has each interval take the place of the one before, on a terminal.
	Screen bool
	// Columns is how wide the terminal is, to which lines are cut there; nil: not known.
	Columns func() int
	// Caller names the code of a process that a call returns to, as OBJECT:FUNCTION; empty: it
	// is not known. Nil: none is.
	Caller func(pid int32, address uint64) string
	// Ended is called when a process has ended and Caller will not be asked of it any more;
	// nil: not.
	Ended func(pid int32)
	// now tells the time; nil: time.Now.
	now func() time.Time
}

// Printer shows what streams of hits say, each of a session of its own.
type Printer struct {
	options Options
	points  map[place]*point
	gone    []*point            // of processes that have ended, the first mostGone
	since   time.Time           // of the running interval
	refused map[asked]string    // why, in processes that were asked for
	below   map[asked]string    // why, in their descendants, of which there may be any number
	stacks  map[string]*stacked // by the text of the point
	placed  bool                // some point was, at any time
	err     error               // the first of writing
}

// place is the number of a point in the session that a stream comes from.
type place struct {
	stream int
	number uint32
}

// asked is a point that was asked for in a process.
type asked struct {
	pid  int32
	text string
}

// point is one measure point in one process.
type point struct {
	probe  *attunev1.Probe
	read   pointtext.Point
	target string                 // of its text, without what is taken there
	label  string                 // what people see of it
	sums   map[hits.Key]*hits.Sum // of the running interval
	hit    bool                   // once at least
	ended  bool                   // the process has; nothing more will come
	on     presence
}

// New returns a Printer whose first interval begins now.
func New(options Options) *Printer {
	if options.now == nil {
		options.now = time.Now
	}
	p := &Printer{points: make(map[place]*point), since: options.now(), refused: make(map[asked]string), below: make(map[asked]string), stacks: make(map[string]*stacked)}
	options.Output, options.Notes = output{options.Output, &p.err}, output{options.Notes, &p.err}
	p.options = options
	return p
}

// Refused is how many points, counted once in each process that was asked for, are
// refused as things stand.
func (p *Printer) Refused() int {
	return len(p.refused)
}

// Event takes one message of a stream; streams are told apart by any number.
func (p *Printer) Event(stream int, m *attunev1.WatchProbesResponse) {
	switch e := m.GetEvent().(type) {
	case *attunev1.WatchProbesResponse_Probe:
		p.probe(stream, e.Probe)
	case *attunev1.WatchProbesResponse_Hits:
		for _, named := range e.Hits.GetAggregates() {
			p.add(stream, named)
		}
		for _, records := range e.Hits.GetRecords() {
			p.records(stream, records)
		}
	case *attunev1.WatchProbesResponse_Ended:
		for from, at := range p.points { // another session may have more to say of the process
			if from.stream == stream && at.probe.GetPid() == e.Ended {
				at.ended = true
				at.on.turn(false, p.options.now(), p.since)
			}
		}
		maps.DeleteFunc(p.below, func(at asked, _ string) bool { return at.pid == e.Ended })
		if p.options.JSON {
			p.line(map[string]any{"kind": "ended", "time": p.options.now(), "pid": e.Ended})
			return
		}
		fmt.Fprintf(p.options.Notes, "attune: process %d has ended\n", e.Ended)
	case *attunev1.WatchProbesResponse_Lost:
		p.lost(e.Lost, "messages were lost on the way here")
	}
}

func (p *Printer) lost(n uint64, what string) {
	if p.options.JSON {
		p.line(map[string]any{"kind": "lost", "time": p.options.now(), "count": n, "what": what})
		return
	}
	fmt.Fprintf(p.options.Notes, "attune: %d %s\n", n, what)
}

// probe tells what became of a point.
func (p *Printer) probe(stream int, probe *attunev1.Probe) {
	st := probe.GetStatus()
	if st.GetPoint() != 0 { // else the session itself has refused it
		at := p.point(place{stream, probe.GetNumber()}, probe.GetText())
		at.probe = probe
		p.placed = p.placed || st.GetState() == attunev1.PointState_POINT_STATE_PLACED
		at.on.turn(st.GetState() == attunev1.PointState_POINT_STATE_PLACED, p.options.now(), p.since)
		p.labelLike(at)
	}
	if p.knownRefusal(probe) {
		return
	}
	if p.options.JSON {
		document := JSON(probe)
		document["kind"], document["time"] = "point", p.options.now()
		p.line(document)
		return
	}
	// Its process ran before anybody asked: for how long is no news, and the rows say
	// of what part of an interval they are.
	shown := proto.CloneOf(st)
	shown.LateNanos = 0
	fmt.Fprintf(p.options.Notes, "attune: %d %s: %s\n", probe.GetPid(), probe.GetText(), printable.Lines(stateText(shown)))
}

// labelLike names the points of a process that have the target of this one: by
// that, or by their whole texts where these differ.
func (p *Printer) labelLike(at *point) {
	var alike []*point
	differ := false
	for _, other := range p.points {
		if other.probe.GetPid() == at.probe.GetPid() && other.target == at.target {
			alike = append(alike, other)
			differ = differ || other.probe.GetText() != at.probe.GetText()
		}
	}
	for _, other := range alike {
		other.label = other.target
		if differ {
			other.label = other.probe.GetText()
		}
	}
}

// point returns a point of a stream, which it may have told of for the first
// time.
func (p *Printer) point(at place, text string) *point {
	known := p.points[at]
	if known == nil {
		read, err := pointtext.Parse(text)
		if err != nil { // of a tunlet
			read = pointtext.Point{Spec: &attunev1.MeasurePoint{}}
		}
		known = &point{read: read, target: hits.Target(text), sums: make(map[hits.Key]*hits.Sum)}
		p.points[at] = known
	}
	return known
}

// knownRefusal notes whether a point is refused, and says whether it was for
// the same reason before: it is tried again whenever objects are loaded.
func (p *Printer) knownRefusal(probe *attunev1.Probe) bool {
	id, st, refused := asked{probe.GetPid(), probe.GetText()}, probe.GetStatus(), p.refused
	if !slices.Contains(p.options.Pids, probe.GetPid()) {
		refused = p.below
	}
	before, known := refused[id]
	delete(refused, id)
	if st.GetState() != attunev1.PointState_POINT_STATE_REFUSED {
		return false
	}
	refused[id] = st.GetReason()
	return known && before == st.GetReason()
}

// records shows single hits.
func (p *Printer) records(stream int, n *attunev1.NamedRecords) {
	if n.GetLost() > 0 {
		p.lost(n.GetLost(), "hits were lost: the process makes more than its buffer holds")
	}
	points := p.byIndex(stream)
	for r := range attunev1.AllRecords(n.GetRecords()) {
		for _, at := range points[uint32(r.Point)] {
			p.hit(at, r, time.Unix(0, r.Monotonic+n.GetMonotonicToUnixNano()))
		}
	}
}

// byIndex lists the points of a stream by what records call them; those that are
// alike share an index.
func (p *Printer) byIndex(stream int) map[uint32][]*point {
	out := make(map[uint32][]*point)
	for at, known := range p.points {
		if at.stream == stream && !known.ended {
			index := known.probe.GetStatus().GetPoint()
			out[index] = append(out[index], known)
		}
	}
	return out
}

// named is a value with its name.
type named struct {
	name  string
	value attunev1.Captured
}

// values lists what a hit tells, by name.
func (at *point) values(r attunev1.Record) (out []named) {
	if r.Timed() {
		out = append(out, named{"time", attunev1.Captured{Kind: attunev1.CapturedUnsigned, Bits: r.Extra}})
	}
	spec := at.read.Spec
	for i, c := range r.Captured() {
		if i < len(spec.GetCaptures()) && c.Kind != attunev1.CapturedNone {
			out = append(out, named{spec.GetCaptures()[i].GetName(), c})
		}
	}
	if len(spec.GetCaptures()) == 0 && at.read.Value != "" && !r.Timed() {
		out = append(out, named{at.read.Value, attunev1.Captured{Kind: attunev1.CapturedUnsigned, Bits: r.Value}})
	}
	return out
}

const clock = "15:04:05.000000"

func (p *Printer) hit(at *point, r attunev1.Record, when time.Time) {
	values := at.values(r)
	at.hit = true
	if p.options.JSON {
		byName := make(map[string]any, len(values))
		for _, v := range values {
			byName[v.name] = v.value.JSON()
		}
		p.line(map[string]any{
			"kind": "hit", "time": when, "pid": at.probe.GetPid(), "tid": r.Thread, "point": at.probe.GetText(), "values": byName,
		})
		return
	}
	var text strings.Builder
	for _, v := range values {
		shown := v.value.String()
		if hits.Caller(at.read.Spec, v.name) {
			shown = p.caller(at, v.value.Bits)
		}
		if v.name == "time" && r.Timed() {
			shown = time.Duration(v.value.Bits).String()
		}
		fmt.Fprintf(&text, "  %s=%s", v.name, shown)
	}
	fmt.Fprintf(p.options.Output, "%s  %d/%d  %s%s\n", when.Format(clock), at.probe.GetPid(), r.Thread, at.label, text.String())
}

// sorted lists the points, and further ones, in the order of processes and texts.
func (p *Printer) sorted(further ...*point) []*point {
	all := slices.AppendSeq(slices.Clone(further), maps.Values(p.points))
	slices.SortFunc(all, func(a, b *point) int {
		return cmp.Or(cmp.Compare(a.probe.GetPid(), b.probe.GetPid()), cmp.Compare(a.probe.GetText(), b.probe.GetText()))
	})
	return all
}

// JSON is a probe as a document.
func JSON(probe *attunev1.Probe) map[string]any {
	st := probe.GetStatus()
	document := map[string]any{
		"pid": probe.GetPid(), "program": filepath.Base(probe.GetExecutable()), "point": probe.GetText(),
		"owner": probe.GetOwner(), "state": hits.State(st), "hits": probe.GetHits(),
	}
	if probe.GetNumber() != 0 {
		document["id"] = probe.GetNumber()
	}
	if st.GetMechanism() != "" {
		document["mechanism"], document["symbols"] = st.GetMechanism(), st.GetSymbols()
		document["cost_nanos"], document["cost_measured"] = st.GetCostNanos(), st.GetCostMeasured()
	}
	if st.GetReason() != "" {
		document["reason"] = st.GetReason()
	}
	if st.GetDegradedReason() != "" {
		document["degraded"] = st.GetDegradedReason()
	}
	return document
}
