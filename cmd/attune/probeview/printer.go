// SPDX-License-Identifier: Apache-2.0

package probeview

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/attune-hpc/attune/internal/pointtext"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Options of a Printer.
type Options struct {
	// Output takes hits and intervals.
	Output io.Writer
	// Notes takes what becomes of points and processes; with JSON it goes to
	// Output as well.
	Notes io.Writer
	// JSON writes one document per line.
	JSON bool
	// Histogram shows how values are distributed.
	Histogram bool
	// Now tells the time; nil: time.Now.
	Now func() time.Time
}

// Printer shows what one stream of hits says.
type Printer struct {
	options Options
	points  map[uint32]*point
	since   time.Time // of the running interval
	placed  int
}

// point is one measure point in one process.
type point struct {
	probe *attunev1.Probe
	read  pointtext.Point
	sums  map[key]*sum // of the running interval
}

// New returns a Printer whose first interval begins now.
func New(options Options) *Printer {
	if options.Now == nil {
		options.Now = time.Now
	}
	return &Printer{options: options, points: make(map[uint32]*point), since: options.Now()}
}

// Placed is how many points are in place.
func (p *Printer) Placed() int { return p.placed }

// Event takes one message of the stream.
func (p *Printer) Event(m *attunev1.WatchProbesResponse) {
	switch e := m.GetEvent().(type) {
	case *attunev1.WatchProbesResponse_Probe:
		p.Probe(e.Probe)
	case *attunev1.WatchProbesResponse_Hits:
		for _, named := range e.Hits.GetAggregates() {
			p.add(named.GetAggregate())
		}
		for _, records := range e.Hits.GetRecords() {
			p.records(records)
		}
	case *attunev1.WatchProbesResponse_Ended:
		if p.options.JSON {
			p.line(map[string]any{"kind": "ended", "time": p.options.Now(), "pid": e.Ended})
			return
		}
		fmt.Fprintf(p.options.Notes, "attune: process %d has ended\n", e.Ended)
	case *attunev1.WatchProbesResponse_Lost:
		p.lost(e.Lost, "messages were lost on the way here")
	}
}

func (p *Printer) lost(n uint64, what string) {
	if p.options.JSON {
		p.line(map[string]any{"kind": "lost", "time": p.options.Now(), "count": n, "what": what})
		return
	}
	fmt.Fprintf(p.options.Notes, "attune: %d %s\n", n, what)
}

// Probe tells what became of a point.
func (p *Printer) Probe(probe *attunev1.Probe) {
	index := probe.GetStatus().GetPoint()
	known := p.points[index]
	if known == nil {
		read, err := pointtext.Parse(probe.GetText())
		if err != nil { // of a tunlet
			read = pointtext.Point{Spec: &attunev1.MeasurePoint{}}
		}
		known = &point{read: read, sums: make(map[key]*sum)}
		if index != 0 {
			p.points[index] = known
		}
	}
	if known.probe.GetStatus().GetState() == attunev1.PointState_POINT_STATE_PLACED {
		p.placed--
	}
	known.probe = probe
	if probe.GetStatus().GetState() == attunev1.PointState_POINT_STATE_PLACED {
		p.placed++
	}
	if p.options.JSON {
		document := JSON(probe)
		document["kind"], document["time"] = "point", p.options.Now()
		p.line(document)
		return
	}
	fmt.Fprintf(p.options.Notes, "attune: %d %s: %s\n", probe.GetPid(), probe.GetText(), StateText(probe.GetStatus()))
}

// line writes one JSON document.
func (p *Printer) line(document map[string]any) {
	encoder := json.NewEncoder(p.options.Output)
	encoder.SetEscapeHTML(false) // conditions hold < and >
	_ = encoder.Encode(document) // of strings and numbers; whoever reads may have left
}

// records shows single hits.
func (p *Printer) records(n *attunev1.NamedRecords) {
	if n.GetLost() > 0 {
		p.lost(n.GetLost(), "hits were lost: the process makes more than its buffer holds")
	}
	for _, h := range hits(n) {
		if at := p.points[h.point]; at != nil {
			p.hit(at, h)
		}
	}
}

// named is a value with its name.
type named struct {
	name  string
	value captured
}

// values lists what a hit tells, by name.
func (at *point) values(h hit) (out []named) {
	if h.duration {
		out = append(out, named{"time", captured{kind: kindUnsigned, bits: h.extra}})
	}
	spec := at.read.Spec
	for i, c := range h.captures {
		if i < len(spec.GetCaptures()) && c.kind != kindNone {
			out = append(out, named{spec.GetCaptures()[i].GetName(), c})
		}
	}
	if len(spec.GetCaptures()) == 0 && at.read.Value != "" && !h.duration {
		out = append(out, named{at.read.Value, captured{kind: kindUnsigned, bits: h.value}})
	}
	return out
}

const clock = "15:04:05.000000"

func (p *Printer) hit(at *point, h hit) {
	values := at.values(h)
	if p.options.JSON {
		byName := make(map[string]any, len(values))
		for _, v := range values {
			byName[v.name] = v.value.json()
		}
		p.line(map[string]any{
			"kind": "hit", "time": h.time, "pid": at.probe.GetPid(), "tid": h.thread, "point": at.probe.GetText(), "values": byName,
		})
		return
	}
	var text strings.Builder
	for _, v := range values {
		shown := v.value.String()
		if v.name == "time" && h.duration {
			shown = time.Duration(v.value.bits).String()
		}
		fmt.Fprintf(&text, "  %s=%s", v.name, shown)
	}
	fmt.Fprintf(p.options.Output, "%s  %d/%d  %s%s\n", h.time.Format(clock), at.probe.GetPid(), h.thread, target(at.probe.GetText()), text.String())
}

// target is a point's text without what is taken there.
func target(text string) string {
	words := strings.Fields(text)
	for i, word := range words {
		if i > 0 && slices.Contains([]string{"take", "if", "every", "each", "by", "sum"}, word) {
			return strings.Join(words[:i], " ")
		}
	}
	return text
}

// sorted lists the points in the order of processes and texts.
func (p *Printer) sorted() []*point {
	return slices.SortedFunc(maps.Values(p.points), func(a, b *point) int {
		return cmp.Or(cmp.Compare(a.probe.GetPid(), b.probe.GetPid()), cmp.Compare(a.probe.GetText(), b.probe.GetText()))
	})
}

// JSON is a probe as a document.
func JSON(probe *attunev1.Probe) map[string]any {
	st := probe.GetStatus()
	document := map[string]any{
		"pid": probe.GetPid(), "program": filepath.Base(probe.GetExecutable()), "point": probe.GetText(),
		"owner": probe.GetOwner(), "state": State(st), "hits": probe.GetHits(),
	}
	if probe.GetNumber() != 0 {
		document["id"] = probe.GetNumber()
	}
	if st.GetMechanism() != "" {
		document["mechanism"], document["cost_nanos"], document["symbols"] = st.GetMechanism(), st.GetCostNanos(), st.GetSymbols()
	}
	if st.GetReason() != "" {
		document["reason"] = st.GetReason()
	}
	if st.GetDegradedReason() != "" {
		document["degraded"] = st.GetDegradedReason()
	}
	return document
}
