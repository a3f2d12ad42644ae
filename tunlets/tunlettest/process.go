// SPDX-License-Identifier: Apache-2.0

package tunlettest

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"github.com/attune-hpc/attune/proto/attune/series"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// Process is a simulated process. Change its rates at any time: the next round
// follows.
type Process struct {
	// Handle is given by StartProcess.
	Handle sdk.Handle
	// Host is the node; empty: node1.
	Host string
	// Executable path; empty: /usr/bin/program.
	Executable string
	// Rank in MPI; nil: none.
	Rank *int32
	// Objects mapped.
	Objects []string
	// CPUs that it may run on; 0: two.
	CPUs uint32
	// UsableCPUs are those that its threads could be given; empty: unknown.
	UsableCPUs sdk.CPUList
	// Rates are counters by what they rise per second; times in nanoseconds
	// per second.
	Rates map[sdk.Signal]float64
	// Gauges are gauges by value.
	Gauges map[sdk.Signal]float64
	// Hits says, for a measure point, how many hits it has per second and
	// their value; nil: none.
	Hits func(point *attunev1.MeasurePoint) (perSecond float64, value uint64)
	// Records are the hits since the last round of points with delivery as records,
	// now nanoseconds after the Harness was made; nil: none. Those of points that
	// are not in place are left out.
	Records func(now int64) []Hit
	// Details is what details of the process there are, by how long it has run:
	// the tunlet gets the kinds of them that it asked for. nil: none.
	Details func(age time.Duration) *sdk.Details

	counters map[sdk.Signal]float64
	age      time.Duration
}

func (p *Process) proto() *attunev1.Process {
	out := &attunev1.Process{
		Handle: uint64(p.Handle), Host: p.Host, Executable: p.Executable, Rank: p.Rank,
		Objects: p.Objects, CpusAllowed: p.CPUs, CpusUsable: string(p.UsableCPUs), CommandLine: []string{p.Executable},
		Identity: &attunev1.ProcessIdentity{Pid: int32(1000 + p.Handle)},
	}
	return out
}

// StartProcess gives the process a handle and announces it. Measure points
// that are meant for every process are placed in it.
func (h *Harness) StartProcess(p *Process) *Process {
	h.tb.Helper()
	h.handle++
	p.Handle = h.handle
	p.counters, p.age = map[sdk.Signal]float64{}, 0
	p.Host = cmp.Or(p.Host, "node1")
	p.Executable = cmp.Or(p.Executable, "/usr/bin/program")
	p.CPUs = cmp.Or(p.CPUs, 2)
	h.processes = append(h.processes, p)
	existing := h.Points()
	h.announce(p, false)
	for _, id := range existing {
		if point := h.points[id]; point != nil {
			placeIn(h, point, p)
		}
	}
	return p
}

// UpdateProcess announces what has changed about a process.
func (h *Harness) UpdateProcess(p *Process) {
	h.tb.Helper()
	h.announce(p, true)
}

func (h *Harness) announce(p *Process, update bool) {
	h.tb.Helper()
	h.wakes.Process(uint64(p.Handle), p.Objects)
	call(h, one(h.Client.ProcessStarted), &attunev1.ProcessStartedRequest{Process: p.proto(), Update: update})
}

// EndProcess ends a process.
func (h *Harness) EndProcess(p *Process) {
	h.tb.Helper()
	h.processes = slices.DeleteFunc(h.processes, func(o *Process) bool { return o == p })
	for _, point := range h.points {
		delete(point.placed, p.Handle)
	}
	h.feed.Forget(uint64(p.Handle))
	h.wakes.Forget(uint64(p.Handle))
	call(h, one(h.Client.ProcessEnded), &attunev1.ProcessEndedRequest{
		Ended: &attunev1.ProcessEnded{Process: uint64(p.Handle), EndedUnixNano: h.now.UnixNano()},
	})
}

// Run makes rounds for the given simulated time.
func (h *Harness) Run(d time.Duration) {
	h.tb.Helper()
	for end := h.now.Add(d); h.now.Before(end); {
		h.Round()
	}
}

// Round lets one Period (Pace) pass: every process goes on, then the tunlet gets what was
// measured in the period, in the order that package feed states, then a tick.
func (h *Harness) Round() {
	h.tb.Helper()
	answer(h)
	pace := cmp.Or(h.Pace, Period)
	samples := &attunev1.SampleBatch{}
	for _, p := range h.processes {
		samples.Samples = append(samples.Samples, p.sample(pace))
	}
	h.deliver(h.now.Add(pace), samples)
}

// deliver ends an interval with the given samples, and with the hits of the
// measure points that are in place: what each host's controller sends, one after the
// other.
func (h *Harness) deliver(now time.Time, samples *attunev1.SampleBatch) {
	h.tb.Helper()
	from := h.now
	h.now = now
	samples.UnixNano = now.UnixNano()
	h.wakes.Round(samples)
	hits := &attunev1.AggregateBatch{FromUnixNano: from.UnixNano(), ToUnixNano: now.UnixNano()}
	for _, id := range h.order {
		hits.Aggregates = append(hits.Aggregates, hitsOf(h, h.points[id], now.Sub(from))...)
	}
	for _, p := range h.Processes() {
		for at := from.Add(Period); p.Records != nil && !at.After(now); at = at.Add(Period) {
			h.Records(p, 0, p.Records(at.Sub(begin()).Nanoseconds())...)
		}
	}
	for _, of := range byHost(h, samples, hits) {
		if len(of.samples.GetSamples()) > 0 {
			for _, own := range h.feed.Samples(of.samples) {
				handEvents(h, own)
			}
		}
		if own := h.feed.Aggregates(of.hits); own != nil {
			handEvents(h, own)
		}
	}
	call(h, one(h.Client.Tick), &attunev1.TickRequest{UnixNano: now.UnixNano()})
}

// round is what one controller sends of a round.
type round struct {
	samples *attunev1.SampleBatch
	hits    *attunev1.AggregateBatch
}

// byHost parts what was measured by the hosts of its processes, in the order in
// which they came: each has a controller that sends for itself.
func byHost(h *Harness, samples *attunev1.SampleBatch, hits *attunev1.AggregateBatch) (out []round) {
	hosts := map[uint64]string{}
	for _, p := range h.processes {
		hosts[uint64(p.Handle)] = p.Host
	}
	places := map[string]int{}
	of := func(process uint64) round {
		host := hosts[process]
		at, ok := places[host]
		if !ok {
			at, places[host] = len(out), len(out)
			out = append(out, round{
				&attunev1.SampleBatch{UnixNano: samples.GetUnixNano()},
				&attunev1.AggregateBatch{FromUnixNano: hits.GetFromUnixNano(), ToUnixNano: hits.GetToUnixNano()},
			})
		}
		return out[at]
	}
	for _, s := range samples.GetSamples() {
		part := of(s.GetProcess()).samples
		part.Samples = append(part.Samples, s)
	}
	for _, a := range hits.GetAggregates() {
		part := of(a.GetProcess()).hits
		part.Aggregates = append(part.Aggregates, a)
	}
	return out
}

func handEvents(h *Harness, r *attunev1.HandleEventsRequest) {
	h.tb.Helper()
	h.Delivered++
	call(h, one(h.Client.HandleEvents), r)
}

// sample lets a time pass in the process and reads its signals.
func (p *Process) sample(pace time.Duration) *attunev1.Sample {
	out := &attunev1.Sample{Process: uint64(p.Handle)}
	for sig, rate := range p.Rates {
		p.counters[sig] += rate * pace.Seconds()
	}
	var readings []series.Reading
	for sig, v := range p.counters {
		readings = append(readings, series.Reading{ID: sig, Value: uint64(v)})
	}
	for sig, v := range p.Gauges {
		readings = append(readings, series.Reading{ID: sig, Value: uint64(v)})
	}
	slices.SortFunc(readings, func(a, b series.Reading) int { return int(a.ID) - int(b.ID) })
	out.Tables = []*attunev1.Table{series.SignalTable(readings...)}
	p.age += pace
	if p.Details != nil {
		if details := p.Details(p.age); details != nil {
			out.Tables = append(out.Tables, details.Tables()...)
		}
	}
	return out
}

// hitsOf are the hits of one point in an interval, an entry per process.
func hitsOf(h *Harness, point *point, interval time.Duration) (out []*attunev1.Aggregate) {
	if d := point.spec.GetDelivery(); d == attunev1.Delivery_DELIVERY_EVENT || d == attunev1.Delivery_DELIVERY_SAMPLED {
		return nil // its hits are records
	}
	for _, p := range h.processes {
		rest := point.placed[p.Handle]
		if rest == nil {
			continue
		}
		a := &attunev1.Aggregate{Point: point.index, Process: uint64(p.Handle)}
		if p.Hits != nil {
			perSecond, value := p.Hits(point.spec)
			hits := perSecond*interval.Seconds() + *rest
			a.Count = uint64(hits)
			*rest = hits - float64(a.Count)
			fill(a, value)
		}
		out = append(out, a)
	}
	return out
}

// fill completes an aggregate whose hits all have one value.
func fill(a *attunev1.Aggregate, value uint64) {
	if a.Count == 0 {
		return
	}
	a.Sum, a.Min, a.Max = a.Count*value, value, value
	a.Histogram = make([]uint64, bits.Len64(value)+1)
	a.Histogram[bits.Len64(value)] = a.Count
}
