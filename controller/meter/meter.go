// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/attune-hpc/attune/controller/bpf/uprobe"
	"github.com/attune-hpc/attune/controller/budget"
	"github.com/attune-hpc/attune/controller/counters"
	"github.com/attune-hpc/attune/controller/detail"
	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/controller/probe"
	"github.com/attune-hpc/attune/controller/sample"
	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/controller/source"
	"github.com/attune-hpc/attune/internal/clock"
	"github.com/attune-hpc/attune/internal/queue"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Options of a Meter. All are needed but for UseBPF and Uprobes.
type Options struct {
	// Members are what is measured.
	Members *member.Set
	// Placer returns who has placed the measure points, once it is there.
	Placer func() *probe.Placer
	// Publish takes a message to the Analyzer, and waits for room. Offer does not
	// wait, and says whether there was room.
	Publish func(*attunev1.PublishRequest)
	Offer   func(*attunev1.PublishRequest) bool
	// Hurry has the news of members told at once. It must not wait for that.
	Hurry func()
	// Foreign is why a process must be left alone; nil: it need not.
	Foreign func(pid int) error
	// Run runs a part until its context ends.
	Run func(part string, f func(context.Context) error)
	// UseBPF allows uprobes, where the user may have them; Uprobes tunes them.
	UseBPF  bool
	Uprobes uprobe.Options
	// Budget is the share of a process' CPU time that its measure points may take.
	// 1: there is no limit.
	Budget float64
	// BudgetClock is what the budget's rounds go by.
	BudgetClock func() time.Time
	Log         *slog.Logger
}

// Meter measures members.
type Meter struct {
	options    Options
	members    *member.Set
	account    *account
	clock      *shm.Clock
	kernel     *kernel
	records    *records
	aggregates *aggregates
	draining   *draining
	sampling   *sampling
}

// New returns a Meter that measures nothing before Start. The caller calls Close.
func New(o Options) *Meter {
	m := &Meter{options: o, members: o.Members, account: new(account), clock: shm.NewClock()}
	if err := clock.CheckCounter(); err != nil { // DMLib uses it all the same: nothing else is as cheap
		o.Log.Info("times of records of different threads may be out of step", "reason", err)
	}
	m.records = &records{
		members: o.Members, account: m.account, clock: m.clock, offer: o.Offer, log: o.Log, drainer: shm.NewDrainer(m.clock),
	}
	m.kernel = &kernel{
		use: o.UseBPF, options: o.Uprobes, members: o.Members, records: m.records, account: m.account,
		hurry: o.Hurry, run: o.Run, log: o.Log,
	}
	m.aggregates = &aggregates{
		members: o.Members, account: m.account, records: m.records, kernel: m.kernel, clock: m.clock,
		placer: o.Placer, publish: o.Publish, began: time.Now(), uprobed: &uprobed{
			members: o.Members, kernel: m.kernel, placer: o.Placer, log: o.Log, last: make(map[uprobeKey]uprobe.Aggregate),
		},
	}
	m.draining = &draining{records: m.records, points: func() int { return o.Placer().Points() }, paced: queue.NewBell()}
	sampler := sample.New(sample.Options{})
	o.Members.OnLeave(func(t *member.Member) { sampler.Forget(t.PID()) })
	m.sampling = &sampling{
		members: o.Members, details: &detailing{sources: newSources(sampler), foreign: o.Foreign},
		aggregates: m.aggregates, publish: o.Publish, changed: queue.NewBell(),
	}
	return m
}

// newSources lists what reads processes from outside.
func newSources(signals *sample.Sampler) source.All {
	return source.All{signals, detail.New(), new(counters.Counters)}
}

// Start runs the parts of the Meter.
func (m *Meter) Start() {
	m.options.Run("drain", m.draining.run)
	m.options.Run("sampling", m.sampling.run)
	if m.options.Budget < 1 {
		b := &budgeting{members: m.members, records: m.records, placer: m.options.Placer, clock: m.options.BudgetClock}
		b.ledgers.Make = func() *budget.Ledger { return budget.New(m.options.Budget) }
		m.options.Run("budget", b.run)
	}
}

// Close frees what New made.
func (m *Meter) Close() error {
	return errors.Join(m.sampling.details.sources.Close(), m.kernel.close())
}

// Clock is that of records and durations.
func (m *Meter) Clock() *shm.Clock { return m.clock }

// Uprobes returns the kernel's way to watch functions, or why there is none.
func (m *Meter) Uprobes() (*uprobe.Uprobes, error) { return m.kernel.load() }

// Set says how often signals are sampled and aggregates closed from now on; 0: not
// at all.
func (m *Meter) Set(period time.Duration) { m.sampling.set(period) }

// Want replaces which details are read beside the signals. Those of processes that it
// does not name are let go of.
func (m *Meter) Want(wants []*attunev1.TableWant) { m.sampling.want(wants) }

// Deliver says that so many more measure points deliver records, fewer if negative.
func (m *Meter) Deliver(more int32) { m.draining.deliver(more) }

// Leave delivers what points have recorded and counted in a process that they are
// about to be taken out of.
func (m *Meter) Leave(handle uint64, points ...uint16) { m.aggregates.leave(handle, points...) }

// Flush passes on what the kernel has recorded up to now, for while its process is
// known.
func (m *Meter) Flush() { m.kernel.flush() }

// Holds says whether records of a member wait for its news.
func (m *Meter) Holds(t *member.Member) bool { return m.records.holds(t) }

// Heard notes that the Analyzer was told of a member.
func (m *Meter) Heard(t *member.Member) { m.records.release(t) }

// Finish delivers what is left of a member that has ended, and fills in what it
// lost.
func (m *Meter) Finish(t *member.Member, ended *attunev1.ProcessEnded) { m.aggregates.finish(t, ended) }

// Returned counts records that did not reach the Analyzer. The next ones of their
// process tell of them.
func (m *Meter) Returned(batch *attunev1.RecordBatch) { m.records.returned(batch) }
