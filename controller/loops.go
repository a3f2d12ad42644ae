// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/detail"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// drainShortest and drainLongest bound the time between two looks at the
	// rings while some point delivers records. In the shortest a thread at full
	// speed fills a ring of 65,536 records half, in the longest nobody misses a
	// record that waits. drainFill is how many records a look should find: more
	// of them at a time cost less each, and they are an eighth of a ring.
	drainShortest = 500 * time.Microsecond
	drainLongest  = 10 * time.Millisecond
	drainFill     = 8192
	// drainRest is the pace when no point delivers records: slots of ended
	// threads still have to be freed. Without any point threads have no slots.
	drainRest = 100 * time.Millisecond
	drainNone = time.Second
	// statusPeriod is how often the controller accounts for itself.
	statusPeriod = time.Second
)

// drainLoop empties the rings, the more often the faster they fill.
func (c *Controller) drainLoop(ctx context.Context) error {
	timer := time.NewTimer(drainRest)
	defer timer.Stop()
	pace := drainLongest
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.paced:
		case <-timer.C:
		}
		switch {
		case c.placer.Points() == 0:
			timer.Reset(drainNone)
		case c.events.Load() == 0:
			c.records.drain()
			timer.Reset(drainRest)
		default:
			pace = nextPace(pace, c.records.drain())
			timer.Reset(pace)
		}
	}
}

// nextPace returns when to look again after a look that found so many records
// after so long: at once where too many were found, a little later each time
// where there were few.
func nextPace(last time.Duration, found uint64) time.Duration {
	wanted := drainLongest
	if found > 0 {
		wanted = time.Duration(float64(last) * drainFill / float64(found))
	}
	return max(drainShortest, min(wanted, 2*last, drainLongest))
}

// samplingLoop samples signals and closes intervals of aggregates at the
// periods that the Analyzer asked for.
func (c *Controller) samplingLoop(ctx context.Context) error {
	const never = time.Hour // until the Analyzer asks for some, which wakes it
	var samples due
	reader := detail.New(detail.Options{})
	defer func() {
		if err := reader.Close(); err != nil {
			c.log.Debug("reader of details", "error", err)
		}
	}()
	timer := time.NewTimer(never)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.resampled:
		case <-timer.C:
		}
		reader.Keep(func(handle uint64) bool { return len(c.details.of(handle)) > 0 && c.members.Get(handle) != nil })
		now := time.Now()
		if samples.is(now, time.Duration(c.sampling.Load())) {
			c.sampleAll(reader) // before the aggregates: who sees a symptom judges these by it
		}
		closing := c.aggregates.closeDue(now)
		timer.Reset(time.Until(earliest(now.Add(never), samples.next, closing)))
	}
}

// due is something that is to be done periodically.
type due struct {
	next   time.Time
	period time.Duration
}

// is says whether it is time, and if so sets the next one. What is late is not
// made up for. Another period than before counts from the last time.
func (d *due) is(now time.Time, period time.Duration) bool {
	if period <= 0 {
		*d = due{}
		return false
	}
	if d.period > 0 {
		d.next = d.next.Add(period - d.period)
	}
	d.period = period
	if now.Before(d.next) {
		return false
	}
	if d.next = d.next.Add(period); d.next.Before(now) {
		d.next = now.Add(period)
	}
	return true
}

// earliest returns the earliest of the times that are set, or the default.
func earliest(standard time.Time, times ...time.Time) time.Time {
	var out time.Time
	for _, t := range times {
		if !t.IsZero() && (out.IsZero() || t.Before(out)) {
			out = t
		}
	}
	if out.IsZero() {
		return standard
	}
	return out
}

// sampleAll reads the signals of every process, and what is wanted beside.
func (c *Controller) sampleAll(reader *detail.Reader) {
	batch := &attunev1.SampleBatch{UnixNano: time.Now().UnixNano()}
	room := detailsPerRound
	inTurn := c.details.inTurn(c.members.List())
	c.details.next = 0
	for _, t := range inTurn {
		if !t.Alive() || !t.Told() || t.OutOfReach() != nil {
			continue
		}
		if sample := c.sample(reader, t, &room); sample != nil {
			batch.Samples = append(batch.Samples, sample)
		}
	}
	if len(batch.GetSamples()) > 0 {
		c.publish(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_Samples{Samples: batch}})
	}
}

// statusLoop accounts for the controller, and undoes what the Analyzer no
// longer stands for.
func (c *Controller) statusLoop(ctx context.Context) error {
	ticker := time.NewTicker(statusPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-ticker.C:
			c.sendStatus()
			c.patchAgain()
			if c.rejoin.abandoned(now, c.config.Lease) {
				c.dropOutlived()
			}
			c.answerAll("", c.actuator.Overridden())
			for _, id := range c.leases.expired(now, c.actuator.Applied) {
				result := c.undoOne(id)
				c.log.Warn("change undone after its lease", "change", id, "outcome", result.GetOutcome(), "reason", result.GetReason())
			}
		}
	}
}

// patchAgain finds processes that have unloaded or loaded libraries whose
// functions are patched. What waits for a safe point of theirs waits beside.
func (c *Controller) patchAgain() {
	for _, t := range c.members.List() {
		patching := c.patching.Of(t)
		if t.Memory() == nil || !patching.CompareAndSwap(false, true) {
			continue
		}
		if !t.Sites().Stale() {
			patching.Store(false)
			continue
		}
		c.work.Go(func() {
			defer patching.Store(false)
			ctx, cancel := context.WithTimeout(c.ctx, statusPeriod)
			defer cancel()
			if err := t.Sites().Refresh(ctx); err != nil {
				c.log.Debug("patches of a library that was loaded again", "pid", t.PID(), "error", err)
			}
			c.placer.Refresh(t.Handle())
		})
	}
}

func (c *Controller) sendStatus() {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		c.log.Debug("own usage", "error", err)
	}
	peak, err := peakResident()
	if err != nil {
		c.log.Debug("own memory", "error", err)
	}
	total := c.account.sums()
	for _, t := range c.members.List() {
		if memory := t.Memory(); memory != nil {
			total.lostSlot += memory.App().LostNoSlot
		}
	}
	status := &attunev1.ControllerStatus{
		CpuSeconds:        seconds(usage.Utime) + seconds(usage.Stime),
		PeakResidentBytes: peak,
		ProbeSeconds:      total.probeNanos / 1e9,
		RecordsReceived:   total.records,
		RecordsLostRing:   total.lostRing,
		RecordsLostSlot:   total.lostSlot,
		RecordsLostQueue:  total.lostQueue,
		RecordsLostBpf:    total.lostBPF,
	}
	c.losses.Tell(status)
	if uprobes := c.loadedUprobes(); uprobes != nil {
		status.RecordsLostBpf += uprobes.Lost()
	}
	c.answer(&attunev1.ManageRequest{Message: &attunev1.ManageRequest_Status{Status: status}})
}

func seconds(t unix.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }

// peakResident is the most memory that this process had, bytes. What getrusage(2)
// tells may be that of its parent: execve(2) begins with a process that shares it.
func peakResident() (uint64, error) {
	self, err := procfs.Self()
	if err != nil {
		return 0, err
	}
	status, err := self.NewStatus()
	return status.VmHWM, err
}
