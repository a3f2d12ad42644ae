// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/attune-hpc/attune/controller/bpf/uprobe"
	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/controller/sites"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Names of the mechanisms, as PointStatus gives them.
const (
	MechanismHook  = "hook"
	MechanismGOT   = "got"
	MechanismPatch = "patch"
)

// Process is what placing needs of a process.
type Process interface {
	// Handle of the process.
	Handle() uint64
	// PID in the controller's pid namespace.
	PID() int
	// Identity tells the process from others that are given its pid later.
	Identity() procid.Identity
	// Started is when its image was seen first.
	Started() time.Time
	// Alive says whether it still runs the same image, as far as is known.
	Alive() bool
	proc.Holder
	// Memory is what DMLib shares with the controller; nil without DMLib.
	Memory() *shm.Memory
	// Images returns the objects mapped at present.
	Images() ([]objfile.Image, error)
	// Sites owns the patches in the process.
	Sites() *sites.Sites
}

// latecomer is a Process into which DMLib may be brought. Until it is known
// whether it comes, points that only DMLib can serve are neither placed nor
// refused.
type latecomer interface {
	// Expected says whether DMLib may yet come. When it does not, the caller
	// calls Refresh; when it does, Admit.
	Expected() bool
}

// Options of a Placer.
type Options struct {
	// Status hears what became of each point in each process. It must not
	// call the Placer and must not block for long.
	Status func(*attunev1.PointStatus)
	// Leaving is called before points are taken out of a process that is not
	// known to have ended, for what was counted there is gone afterwards. It
	// must not call the Placer, but for Uprobed and Costs. May be nil.
	Leaving func(handle uint64, points ...uint16)
	// Uprobes gives the kernel's mechanism, or the reason why it is not
	// there. It is called when the first point needs it.
	Uprobes func() (*uprobe.Uprobes, error)
	// Functions is what the Sites of all processes share. Nil: a new one.
	Functions *sites.Functions
	// Clock is that of DMLib's durations. Nil: one of its own.
	Clock *shm.Clock
	// Log may be nil.
	Log *slog.Logger
}

// safePointTimeout bounds how long placing waits for a process to come to a hook.
const safePointTimeout = 2 * time.Second

// Placer keeps measure points placed in processes.
type Placer struct {
	options Options
	log     *slog.Logger
	slots   slotTables
	names   names

	ctx    context.Context // of the goroutines that place; ended by Close
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu        sync.Mutex // guards what follows; comes after the lock of a process
	closed    bool
	points    map[uint16]*attunev1.MeasurePoint
	asked     map[uint16]time.Time // when each of points was asked for
	processes map[uint64]*tenant
	watching  map[watchKey]*tenant
	standing  map[uint16]heldAttachment // see expectMore
	leaving   []*sites.Kept             // see giveBack

	returning sync.Mutex // held while functions are taken back from the kernel
}

// New returns an empty Placer.
func New(options Options) *Placer {
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if options.Leaving == nil {
		options.Leaving = func(uint64, ...uint16) {}
	}
	if options.Functions == nil {
		options.Functions = new(sites.Functions)
	}
	if options.Clock == nil {
		options.Clock = shm.NewClock()
	}
	p := &Placer{
		options:   options,
		log:       options.Log.With("component", "probe"),
		points:    make(map[uint16]*attunev1.MeasurePoint),
		asked:     make(map[uint16]time.Time),
		processes: make(map[uint64]*tenant),
		watching:  make(map[watchKey]*tenant),
		standing:  make(map[uint16]heldAttachment),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// Add places a point in every process that it is meant for, also in those that
// come later. It returns at once; Status tells the outcome.
func (p *Placer) Add(index uint16, spec *attunev1.MeasurePoint) {
	p.mu.Lock()
	p.points[index], p.asked[index] = spec, time.Now()
	meant := p.meantFor(spec)
	p.mu.Unlock()
	for _, t := range meant {
		t.ask(wish{index: index, spec: spec})
	}
}

// Remove takes a point out of every process. It returns at once, with the
// point, nil if there was none.
func (p *Placer) Remove(index uint16) *attunev1.MeasurePoint {
	p.mu.Lock()
	spec := p.points[index]
	delete(p.points, index)
	delete(p.asked, index)
	var meant []*tenant
	if spec != nil {
		meant = p.meantFor(spec)
	}
	p.mu.Unlock()
	p.unstand(index)
	for _, t := range meant {
		t.ask(wish{index: index, spec: spec, gone: true})
	}
	return spec
}

// has says whether a point is still wanted. It may be called with the lock of a
// process held.
func (p *Placer) has(index uint16, spec *attunev1.MeasurePoint) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.points[index] == spec
}

// meantFor lists the processes of a point. The caller holds p.mu.
func (p *Placer) meantFor(spec *attunev1.MeasurePoint) []*tenant {
	var out []*tenant
	for handle, t := range p.processes {
		if wants(spec, handle) {
			out = append(out, t)
		}
	}
	return out
}

func wants(spec *attunev1.MeasurePoint, handle uint64) bool {
	return len(spec.GetProcesses()) == 0 || slices.Contains(spec.GetProcesses(), handle)
}

// ForAll counts the points that are meant for every process, whichever comes.
func (p *Placer) ForAll() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, spec := range p.points {
		if len(spec.GetProcesses()) == 0 {
			n++
		}
	}
	return n
}

// WantsLibrary says whether there are points that are meant for a process and
// that DMLib could serve there.
func (p *Placer) WantsLibrary(handle uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, spec := range p.points {
		if wants(spec, handle) && spec.GetUsdt() == nil {
			return true
		}
	}
	return false
}

// Points returns how many points there are.
func (p *Placer) Points() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.points)
}

// Admit takes a process in and places all points that are meant for it. held
// says that it waits in the start gate: nothing runs in it, so that its GOT
// can be written from outside. Admit returns when all is placed.
func (p *Placer) Admit(ctx context.Context, process Process, held bool) {
	t := &tenant{
		placer: p, process: process, placed: make(map[uint16]*placement), degraded: make(map[uint16]degradation),
		measured: make(map[int][]sites.Function), whyKernel: make(map[uint16]string), recalled: make(map[uint16]recalled),
		refused: make(map[uint16]*attunev1.MeasurePoint),
	}
	t.show()
	p.mu.Lock()
	p.processes[process.Handle()] = t
	p.mu.Unlock()
	if p.placeAll(ctx, t, held) {
		return
	}
	// The process waits no longer; the rest comes at its safe points.
	p.begin(func() { p.placeAll(p.ctx, t, false) })
}

// Refresh looks again where a process has loaded objects since: points on
// functions may have more to watch. It returns at once.
func (p *Placer) Refresh(handle uint64) {
	p.mu.Lock()
	t := p.processes[handle]
	p.mu.Unlock()
	if t != nil {
		p.begin(func() { p.placeAll(p.ctx, t, false) })
	}
}

// placeAll returns false if ctx ended before a held process had all its points.
func (p *Placer) placeAll(ctx context.Context, t *tenant, held bool) (all bool) {
	p.mu.Lock()
	var wanted []wish
	for index, spec := range p.points {
		if wants(spec, t.process.Handle()) {
			wanted = append(wanted, wish{index: index, spec: spec})
		}
	}
	p.mu.Unlock()
	return t.fulfil(ctx, wanted, held)
}

// Release forgets a process that has ended.
func (p *Placer) Release(handle uint64) {
	p.mu.Lock()
	t := p.processes[handle]
	delete(p.processes, handle)
	p.mu.Unlock()
	if t != nil {
		t.forget()
	}
}

// Withdraw takes all points out of all processes and gives their GOT back, as
// far as they come to a safe point before ctx ends. Status hears nothing of it:
// the points were in place until the end.
func (p *Placer) Withdraw(ctx context.Context) {
	p.mu.Lock()
	tenants := make([]*tenant, 0, len(p.processes))
	for _, t := range p.processes {
		tenants = append(tenants, t)
	}
	clear(p.points)
	clear(p.asked)
	p.mu.Unlock()
	p.unstand()
	var all sync.WaitGroup
	for _, t := range tenants {
		all.Go(func() { t.removeAll(ctx) })
	}
	all.Wait()
}

// begin starts what Close waits for. After Close it does nothing.
func (p *Placer) begin(work func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.work.Go(work)
	}
}

// Close stops placing and waits for what is under way. It takes nothing out.
func (p *Placer) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	p.work.Wait()
	p.unstand()
}

// Uprobed calls f for every point whose hits a uprobe sums up in a process. It
// does not wait for placing under way.
func (p *Placer) Uprobed(f func(handle uint64, pid int, point uint16)) {
	p.mu.Lock()
	tenants := make([]*tenant, 0, len(p.processes))
	for _, t := range p.processes {
		tenants = append(tenants, t)
	}
	p.mu.Unlock()
	for _, t := range tenants {
		for _, point := range t.view.Load().uprobed {
			if p.watches(t, point) {
				f(t.process.Handle(), t.process.PID(), point)
			}
		}
	}
}

// Costs returns the estimated cost per hit in nanoseconds, by point, in a
// process. The map must not be modified. It does not wait for placing.
func (p *Placer) Costs(handle uint64) map[uint16]float64 {
	p.mu.Lock()
	t := p.processes[handle]
	p.mu.Unlock()
	if t == nil {
		return nil
	}
	return t.view.Load().costs
}
