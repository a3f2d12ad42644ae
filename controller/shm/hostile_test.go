// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/internal/dmtest"
	"github.com/attune-hpc/attune/dmlib/abi"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// scribblerVariable makes the test program a process that writes over the memory
// file in its descriptor 3; its value is the seed.
const scribblerVariable = "ATTUNE_TEST_SCRIBBLER"

// scribbles is how many words it writes in each of its two ways.
const scribbles = 500_000

// scribble is the whole life of that process: first what could be true, by which
// the reader is led on, then anything.
func scribble(seed string) int {
	n, err := strconv.ParseUint(seed, 10, 64)
	if err != nil {
		return 2
	}
	var info unix.Stat_t
	if err := unix.Fstat(3, &info); err != nil {
		return 2
	}
	data, err := unix.Mmap(3, 0, int(info.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return 2
	}
	random, at := rand.New(rand.NewPCG(n, 0)), small().place()
	for page := at.slots; page < at.programs; page += pageSize {
		store64(data, page, 0) // the reader looks at what is there only
	}
	store32(data, abi.HeaderSlotsUsedAt, uint32(small().Slots))
	for n := 0; n < scribbles || !believed(data, at); n++ {
		lie(random, data, at)
	}
	for word := 0; word < len(data); word += 8 {
		store64(data, word, hostileWord(random, load64(data, word)))
	}
	for range scribbles {
		word := hostileOffset(random, at)
		store64(data, word, hostileWord(random, load64(data, word)))
	}
	return 0
}

// believed says whether the reader has taken a record.
func believed(data []byte, at placement) bool {
	for slot := range small().Slots {
		if load64(data, at.slots+slot*abi.SlotBytes+abi.SlotTailAt) != 0 {
			return true
		}
	}
	return false
}

// lie writes a word such as a thread of DMLib would write, but not when or where it
// would: records and continuations in any order, heads that are ahead of them,
// slots that are closed and claimed while they are read, commands that are done.
func lie(random *rand.Rand, data []byte, at placement) {
	slot := random.IntN(small().Slots)
	line := at.slots + slot*abi.SlotBytes
	switch random.IntN(6) {
	case 0:
		store32(data, line+abi.SlotStateAt, uint32(1+random.IntN(2)))
	case 1: // the second half of the slots claims the first one's rings
		store32(data, line+abi.SlotRingAt, uint32(1+slot%small().Rings))
	case 2:
		store64(data, line+abi.SlotHeadAt, load64(data, line+abi.SlotTailAt)+uint64(random.IntN(small().RingRecords+1)))
	case 3:
		points := []uint64{0, 1, HookCount, abi.ContinuationPoint, random.Uint64() & pointMask}
		id := points[random.IntN(len(points))] | random.Uint64()&flagsMask
		store64(data, at.rings+attunev1.RecordSize*random.IntN(small().Rings*small().RingRecords)+abi.ContinuationPointAt, id)
	case 4:
		store32(data, at.mailbox+random.IntN(MailboxSize)*abi.CommandBytes+abi.CommandStateAt, uint32(random.IntN(4)))
	default:
		aggregate := line + abi.SlotAggregatesAt + random.IntN(2)*abi.AggregateBytes
		store64(data, aggregate+8*random.IntN(abi.AggregateBytes/8), hostileWord(random, load64(data, aggregate)))
	}
}

// hostileOffset is a word's, mostly one that leads somewhere: the header, a
// command, the beginning of a slot, a record, the keys of a table.
func hostileOffset(random *rand.Rand, at placement) int {
	within := func(from, to int) int { return from + 8*random.IntN((to-from)/8) }
	switch random.IntN(8) {
	case 0:
		return within(0, at.control)
	case 1:
		return within(at.mailbox, at.mailbox+MailboxSize*abi.CommandBytes)
	case 2, 3, 4:
		slot := at.slots + abi.SlotBytes*random.IntN(small().Slots)
		return within(slot, slot+abi.SlotAggregatesAt)
	case 5:
		return within(at.rings, at.programs)
	case 6:
		table := at.tables + abi.TableBytes*random.IntN(small().Tables)
		return within(table, table+abi.TablePlaceAt+places*abi.AggregateBytes)
	default:
		return within(0, at.total)
	}
}

// hostileWord is one that might be believed, or none.
func hostileWord(random *rand.Rand, now uint64) uint64 {
	switch random.IntN(6) {
	case 0:
		return uint64(random.IntN(5)) // states, rings
	case 1:
		return now + uint64(random.IntN(small().RingRecords))
	case 2:
		return now - 1
	case 3:
		return math.MaxUint64 >> random.IntN(64)
	case 4: // of two counts, states or flags at once
		return uint64(random.IntN(256))<<32 | uint64(random.IntN(1<<20))
	default:
		return random.Uint64()
	}
}

// FuzzHostileWriter reads a memory while a process writes over all of it: header,
// heads, rings, aggregates, tables and mailbox. What is handed out stays within
// what the geometry allows, and the next process of the same Drainer gets its own
// records, all of them and nothing else.
func FuzzHostileWriter(f *testing.F) {
	f.Add(uint64(0))
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) {
		m, next := mustNew(t, small()), newNeighbour(t)
		h := &hostile{m: m, set: []uint16{9, 10, 11}}
		h.begin(t)
		before := heap()
		ended := startScribbler(t, m, seed)
		var others sync.WaitGroup
		stop := make(chan struct{})
		for _, use := range []func(testing.TB){h.points, h.commands, h.rest} {
			others.Go(func() {
				for open(stop) {
					use(t)
				}
			})
		}
		d := NewDrainer(steadyClock())
		damaged, received := 0, uint64(0)
		for running := true; running && !t.Failed(); {
			running = open(ended)
			got := h.drain(t, d)
			damaged, received = damaged+got.CorruptSlots, received+got.Received
			h.aggregates(t)
			next.check(t, d)
		}
		close(stop)
		others.Wait()
		if damaged == 0 || damaged > small().Slots || received == 0 {
			t.Errorf("%d records, %d of %d slots found damaged: want some, and each slot once", received, damaged, small().Slots)
		}
		if after := heap(); after > before+8<<20 {
			t.Errorf("%d bytes of memory are in use, %d before: want 8 MB more at most", after, before)
		}
	})
}

// startScribbler returns a channel that is closed when the writer has ended.
func startScribbler(t *testing.T, m *Memory, seed uint64) <-chan struct{} {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), scribblerVariable+"="+strconv.FormatUint(seed, 10))
	cmd.Stderr, cmd.ExtraFiles = os.Stderr, []*os.File{m.File()}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	var failed error
	go func() {
		defer close(ended)
		failed = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has ended, unless the test failed
		if <-ended; failed != nil && !t.Failed() {
			t.Errorf("the writer: %v", failed)
		}
	})
	return ended
}

func open(c <-chan struct{}) bool {
	select {
	case <-c:
		return false
	default:
		return true
	}
}

// heap is what is in use of this process' heap.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// hostile is a memory whose application writes what it likes. set are the
// session's points that may be enabled.
type hostile struct {
	m       *Memory
	set     []uint16
	keyed   *Program
	scratch []Aggregate
}

// begin sets points of all kinds.
func (h *hostile) begin(t testing.TB) {
	t.Helper()
	h.keyed = mustProgram(t, 4)
	mustSet(t, h.m, 0, PointControl{Point: 9, Event: true, Aggregate: true, Duration: true})
	mustSet(t, h.m, 1, PointControl{Point: 10, Aggregate: true, Program: h.keyed})
	mustSet(t, h.m, HookCount, PointControl{Point: 11, Event: true, Aggregate: true})
}

// drain checks what Drain hands out.
func (h *hostile) drain(t testing.TB, d *Drainer) Drained {
	t.Helper()
	events, got := drainAll(t, h.m, d)
	if most := small().Rings * small().RingRecords; len(events) > most {
		t.Errorf("%d records out of %d rings of %d", len(events), small().Rings, small().RingRecords)
	}
	continuations := uint64(0)
	for _, e := range events {
		switch continues := e.Flags&attunev1.RecordContinuation != 0; {
		case continues:
			continuations++
			if e.Point != 0 {
				t.Errorf("continuation of a point: %+v", e)
			}
		case !slices.Contains(h.set, e.Point):
			t.Errorf("record of a point that is not enabled: %+v", e)
		}
	}
	if continuations != got.Continuations {
		t.Errorf("%d continuations handed out, %d counted", continuations, got.Continuations)
	}
	return got
}

// aggregates checks what Aggregates returns: of each point one entry, and of one
// with keys at most one for each.
func (h *hostile) aggregates(t testing.TB) {
	t.Helper()
	h.scratch = h.m.Aggregates(h.scratch[:0], steadyClock().Scale())
	if most := 2 + 1 + 1 + places; len(h.scratch) < 2 || len(h.scratch) > most {
		t.Errorf("%d aggregates, want 2 to %d", len(h.scratch), most)
	}
	for _, a := range h.scratch {
		if !slices.Contains(h.set, a.Point) {
			t.Errorf("aggregate of a point that is not enabled: %+v", a)
		}
	}
}

// points takes one away and brings it back, in another way.
func (h *hostile) points(t testing.TB) {
	h.m.ClearPoint(1)
	if err := h.m.SetPoint(1, PointControl{Point: 10, Aggregate: true, Program: h.keyed}); err != nil {
		t.Error(err)
	}
	if shared, err := h.m.Share(0, PointControl{Point: 9, Event: true}); err != nil {
		t.Error(err)
	} else {
		h.m.ClearPoint(shared)
	}
}

// commands runs one. It ends as one does, or as one that a thread holds for ever.
func (h *hostile) commands(t testing.TB) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	r, err := h.m.Run(ctx, Command{Op: OpNop, At: AtAlloc | AtStub})
	var refused unix.Errno
	known := errors.Is(err, ErrNoSafePoint) || errors.Is(err, ErrOutcomeUnknown) || errors.Is(err, ErrMailboxFull) ||
		errors.Is(err, ErrConfined) || errors.As(err, &refused)
	if err != nil && !known {
		t.Error(err)
	}
	if r.Local < 0 || r.Local > PointCount {
		t.Errorf("executed at local point %d", r.Local)
	}
}

// rest asks what else there is to be asked.
func (h *hostile) rest(t testing.TB) {
	h.m.Reclaim(func(tids []int) []int {
		for _, tid := range tids {
			if tid <= 0 {
				t.Errorf("thread %d", tid)
			}
		}
		return oddOnes(tids)
	})
	if app := h.m.App(); app.StubCount > StubCount {
		t.Errorf("got %+v, want at most %d stubs", app, StubCount)
	}
}

// neighbour is a memory whose application does as it should.
type neighbour struct {
	m      *Memory
	thread *dmtest.Thread
	value  uint64
}

func newNeighbour(t *testing.T) *neighbour {
	t.Helper()
	m, app := mustApp(t, small())
	mustSet(t, m, 3, PointControl{Point: 300, Event: true, Aggregate: true})
	return &neighbour{m: m, thread: app.Claim(77, 1)}
}

// check has it write a record and count a hit, and wants just these.
func (n *neighbour) check(t *testing.T, d *Drainer) {
	t.Helper()
	n.value++
	n.thread.Record(4000, 3, 0, n.value, 1)
	n.thread.Count(3, n.value)
	events, got := drainAll(t, n.m, d)
	want := event{Time: 2000, Point: 300, Thread: 77, Value: n.value, Extra: 1}
	if len(events) != 1 || events[0] != want || got.Lost != 0 || got.CorruptSlots != 0 {
		t.Errorf("the neighbour's records: got %+v, %+v; want %+v", events, got, want)
	}
	if all := n.m.Aggregates(nil, d.scale); len(all) != 1 || all[0].Count != 1 || all[0].Sum != n.value {
		t.Errorf("the neighbour's aggregates: got %+v, want one hit of %d", all, n.value)
	}
}
