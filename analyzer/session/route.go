// SPDX-License-Identifier: Apache-2.0

package session

import (
	"sync"

	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// router takes what the event channels carry to those who want it. Publish is safe for
// use by several goroutines; the rest belongs to the loop.
type router struct {
	clock       *clock
	inbox       *inbox
	teller      *teller
	controllers *controllers
	processes   *processes
	population  *population
	sleepers    *sleepers
	tunlets     *tunlets
	sampled     func()                                                                // is told of each round of samples, when all have it
	part        func(controller string, part *attunev1.ObjectivePart) (remark string) // nil: nobody asked for it
	dropped     dropped
}

// Publish takes a message of a controller's event channel, over which the
// session then rules. Measured data is dropped and counted if the session does not keep
// up; for news it waits.
func (r *router) Publish(id string, m *attunev1.PublishRequest) {
	switch k := m.GetEvent().(type) {
	case *attunev1.PublishRequest_Records:
		r.publishRecords(id, k.Records)
	case *attunev1.PublishRequest_Aggregates:
		n := uint64(len(k.Aggregates.GetAggregates()))
		r.inbox.postData(n, proto.Size(k.Aggregates), func() { r.aggregates(r.controllers.get(id), k.Aggregates) })
	case *attunev1.PublishRequest_Samples:
		n := uint64(len(k.Samples.GetSamples()))
		r.inbox.postData(n, proto.Size(k.Samples), func() { r.samples(r.controllers.get(id), k.Samples) })
	case *attunev1.PublishRequest_Objective:
		if r.part != nil {
			r.inbox.postData(1, proto.Size(k.Objective), func() { r.objective(id, k.Objective) })
		}
	case *attunev1.PublishRequest_News:
		r.inbox.post(func() {
			c := r.controllers.get(id)
			for _, one := range k.News.GetNews() {
				r.news(c, one)
			}
		})
	default:
		r.inbox.post(func() { r.news(r.controllers.get(id), m) })
	}
}

// objective hands over what a controller has found of the owner's objective.
func (r *router) objective(id string, part *attunev1.ObjectivePart) {
	if part.GetTrouble() == "" {
		part.EndUnixNano = r.controllers.get(id).shift.apply(part.GetEndUnixNano(), r.clock.unixNow())
	}
	if remark := r.part(id, part); remark != "" {
		r.teller.emitRemark(ownName, 0, remark)
	}
}

// publishRecords hands a batch to the loop with what was dropped before it, or
// drops it.
func (r *router) publishRecords(id string, b *attunev1.RecordBatch) {
	records := b.GetRecordCount()
	from := source{id, b.GetProcess()}
	before := r.dropped.take(from)
	if !r.inbox.postData(records, len(b.GetRecords()), func() { r.records(r.controllers.get(id), b, before) }) {
		r.dropped.add(from, before+records+lostBefore(b))
	}
}

// lostBefore is what a batch tells of that was lost on its way.
func lostBefore(b *attunev1.RecordBatch) uint64 {
	return b.GetLostRing() + b.GetLostQueue() + b.GetLostBpf()
}

// news handles news of one process, which are never dropped.
func (r *router) news(c *controller, m *attunev1.PublishRequest) {
	switch k := m.GetEvent().(type) {
	case *attunev1.PublishRequest_ProcessStarted:
		r.population.start(c, k.ProcessStarted)
	case *attunev1.PublishRequest_ProcessChanged:
		r.population.start(c, k.ProcessChanged)
	case *attunev1.PublishRequest_ProcessEnded:
		process := k.ProcessEnded.GetProcess()
		if before := r.dropped.take(source{c.id, process}); before > 0 {
			r.records(c, &attunev1.RecordBatch{Process: process}, before)
		}
		r.addLosses(c, &attunev1.ControllerStatus{
			RecordsLostRing: k.ProcessEnded.GetLostRing(), RecordsLostSlot: k.ProcessEnded.GetLostNoSlot(), RecordsLostBpf: k.ProcessEnded.GetLostBpf(),
		})
		if p := r.processes.of(c, process); p != nil {
			r.population.end(p, k.ProcessEnded)
		}
	}
}

// aggregates hands aggregates to the tunlets that asked for their points.
func (r *router) aggregates(c *controller, b *attunev1.AggregateBatch) {
	length := b.GetToUnixNano() - b.GetFromUnixNano()
	b.ToUnixNano = c.shift.apply(b.GetToUnixNano(), r.clock.unixNow())
	b.FromUnixNano = b.GetToUnixNano() - length
	known := b.Aggregates[:0]
	for _, a := range b.GetAggregates() {
		if p := r.processes.of(c, a.GetProcess()); p != nil {
			a.Process = p.id
			known = append(known, a)
			r.population.introduce(p)
		}
	}
	if len(known) == 0 {
		return
	}
	b.Aggregates = known
	r.teller.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Aggregates{Aggregates: b}})
	for _, t := range r.tunlets.running {
		t.handleAggregates(b)
	}
}

// records hands the records of one process to the tunlets that asked for their points.
// So many were dropped before them in this Analyzer.
func (r *router) records(c *controller, b *attunev1.RecordBatch, before uint64) {
	p := r.processes.of(c, b.GetProcess())
	if p == nil { // nobody can be told whose they are
		r.inbox.lost.Add(b.GetRecordCount())
		return
	}
	r.population.introduce(p)
	r.addLosses(c, &attunev1.ControllerStatus{RecordsLostQueue: b.GetLostQueue()})
	all := &attunev1.NamedRecords{
		Process: p.id, Records: b.GetRecords(), Lost: before + lostBefore(b), MonotonicToUnixNano: b.GetMonotonicToUnixNano(),
	}
	r.teller.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Records{Records: all}})
	for _, t := range r.tunlets.running {
		t.handleRecords(all)
	}
}

// samples hands samples to the tunlets that want them, of the processes that they know.
func (r *router) samples(c *controller, b *attunev1.SampleBatch) {
	b.UnixNano = c.shift.apply(b.GetUnixNano(), r.clock.unixNow())
	kept := b.Samples[:0]
	introduced := &attunev1.SampleBatch{UnixNano: b.GetUnixNano()}
	for _, sample := range b.GetSamples() {
		p := r.processes.of(c, sample.GetProcess())
		if p == nil {
			continue
		}
		sample.Process = p.id
		kept = append(kept, sample)
		if p.introduced {
			introduced.Samples = append(introduced.Samples, sample)
		}
	}
	b.Samples = kept
	if len(kept) > 0 {
		r.teller.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Samples{Samples: b}})
	}
	r.sleepers.see(introduced)
	for _, t := range r.tunlets.running {
		t.handleSamples(introduced)
	}
	r.sampled()
}

// addLosses notes what a controller's events tell of losses.
func (r *router) addLosses(c *controller, lost *attunev1.ControllerStatus) {
	if proto.Size(lost) > 0 {
		c.addLosses(lost)
		r.teller.emitStatus(c.id, c.account())
	}
}

// source is where records come from: a process of a controller, by the handle
// that it has there.
type source struct {
	controller string
	process    uint64
}

// dropped counts records that found the inbox full, by source, until somebody
// tells of them. The zero value is ready; safe for use by several goroutines.
type dropped struct {
	mu      sync.Mutex
	records map[source]uint64
}

func (d *dropped) add(from source, records uint64) {
	if records == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.records == nil {
		d.records = make(map[source]uint64)
	}
	d.records[from] += records
}

func (d *dropped) take(from source) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	records := d.records[from]
	delete(d.records, from)
	return records
}
