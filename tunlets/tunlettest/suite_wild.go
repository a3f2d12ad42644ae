// SPDX-License-Identifier: Apache-2.0

package tunlettest

import (
	"math"
	"math/rand/v2"
	"time"

	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/sdk/feed"
	"github.com/attune-hpc/attune/tunlets/sdk/samplefilter"
)

// wild makes a process that may have any trouble: its rates, its libraries and
// its hits are drawn from the seed.
func wild(seed uint64) *Process {
	r := rand.New(rand.NewPCG(seed, 1))
	p := &Process{CPUs: 1 + r.Uint32N(4), Rates: map[sdk.Signal]float64{}, Gauges: map[sdk.Signal]float64{}}
	libraries := []string{
		"/usr/lib/libc.so.6", "/usr/lib/libmpi.so.40", "/usr/lib/libopen-pal.so.40",
		"/usr/lib/libmpich.so.12", "/usr/lib/libgomp.so.1", "/usr/lib/libpython3.11.so.1.0",
	}
	for _, l := range libraries {
		if r.IntN(2) == 0 {
			p.Objects = append(p.Objects, l)
		}
	}
	if r.IntN(2) == 0 {
		p.Rank = proto.Int32(r.Int32N(8))
	}
	wildRates(p, r)
	rate, value := magnitude(r, 7), uint64(magnitude(r, 9))
	p.Hits = func(*attunev1.MeasurePoint) (float64, uint64) { return rate, value }
	for _, sig := range []sdk.Signal{sdk.ReadCalls, sdk.WriteCalls, sdk.ReadBytes, sdk.WrittenBytes} {
		p.Rates[sig] = magnitude(r, 7)
	}
	p.Gauges[sdk.AnonymousBytes] = magnitude(r, 10)
	p.Details = wildDetails(r)
	return p
}

// wildDetails are any, for whoever asks: numbers that a kernel would not tell,
// none of a kind, and what cannot be read.
func wildDetails(r *rand.Rand) func(time.Duration) *sdk.Details {
	n := r.IntN(6)
	return func(age time.Duration) *sdk.Details {
		rounds := uint64(age / Period)
		d := &sdk.Details{
			Threads: &sdk.ThreadDetails{Total: n}, Sockets: &sdk.SocketDetails{Total: n},
			Pipes:  &sdk.PipeDetails{Total: n},
			Memory: &sdk.MemoryDetails{ResidentBytes: uint64(n) << 30, AnonymousBytes: rounds << 20, Mappings: uint64(n)},
		}
		if n == 0 {
			d.Threads.Error, d.Sockets.Error, d.Memory.Error = "not allowed", "not allowed", "not allowed"
			return d
		}
		for i := range n {
			number := rounds * uint64(i) * 1e7
			d.Threads.Items = append(d.Threads.Items, sdk.ThreadDetail{
				TID: 1000 + i, StartTicks: uint64(n), State: "R", Run: time.Duration(number), Wait: time.Duration(number * 3),
				VoluntarySwitches: number, LastCPU: uint64(i * 99), CPUsAllowed: []string{"0-1", "", "x"}[i%3],
			})
			d.Sockets.Items = append(d.Sockets.Items, sdk.SocketDetail{
				FD: i, Inode: uint64(i), Kind: []string{"", "tcp", "unix"}[i%3], SendQueuedBytes: number,
				TCP: &sdk.TCPDetail{State: "established", UnackedSegments: uint64(i), UnsentBytes: number, RTT: time.Duration(i) * time.Millisecond},
			}, sdk.SocketDetail{})
			d.Pipes.Items = append(d.Pipes.Items, sdk.PipeDetail{
				FD: i, Inode: uint64(i / 2), Writes: i%2 == 0, CapacityBytes: uint64(i) << 12, QueuedBytes: number,
			})
		}
		return d
	}
}

func wildRates(p *Process, r *rand.Rand) {
	for sig := sdk.CPUUser; sig <= sdk.RunqueueWait; sig++ {
		p.Rates[sig] = r.Float64() * 1e9
	}
	for _, sig := range []sdk.Signal{sdk.MinorFaults, sdk.MajorFaults, sdk.VoluntarySwitches, sdk.InvoluntarySwitches} {
		p.Rates[sig] = magnitude(r, 6)
	}
	p.Gauges[sdk.ResidentBytes] = magnitude(r, 10)
	p.Gauges[sdk.Threads] = 1
	p.Gauges[sdk.CPUsAllowed] = float64(p.CPUs)
}

// magnitude draws from 1 to 10^decades, every decade as likely.
func magnitude(r *rand.Rand, decades float64) float64 {
	return math.Pow(10, r.Float64()*decades)
}

// drawProcess makes a wild process or one that is in the tunlet's own trouble.
func drawProcess(h *Harness, r *rand.Rand) *Process {
	if n := len(h.trouble); n > 0 && r.IntN(2) == 0 {
		return h.trouble[r.IntN(n)]()
	}
	return wild(r.Uint64())
}

// turmoil lets wild processes start, change and end at random, tells random
// states of proposals, and calls `each` after every round.
//
// Of the conditions to be started only what a process has mapped counts: rates over
// some time would have the tunlet started late, or never, among processes that change
// like that.
func turmoil(h *Harness, seed uint64, rounds int, each func()) {
	wakeByObjects(h)
	r := rand.New(rand.NewPCG(seed, 2))
	for range rounds {
		live := h.Processes()
		switch n := r.IntN(20); {
		case n == 0 && len(live) > 0:
			h.EndProcess(live[r.IntN(len(live))])
		case n == 1 && len(live) < 8 || len(live) == 0:
			h.StartProcess(drawProcess(h, r))
		case n == 2:
			p := live[r.IntN(len(live))]
			if r.IntN(4) == 0 {
				wildRates(p, r)
			}
			h.UpdateProcess(p)
		case n == 3 && len(h.Proposals) > 0:
			id := h.Proposals[len(h.Proposals)-1].GetId()
			h.SetState(id, attunev1.ProposalState(1+r.IntN(8)), "drawn")
		}
		h.Round()
		each()
	}
}

func survivesDisorder(tb TB, s subject) {
	h := s.harness(tb)
	// A process and events before Describe and before the session.
	h.StartProcess(wild(3))
	h.Round()
	h.EndSession()
	h.StartSession()
	for seed := range uint64(4) {
		turmoil(h, seed, 100, func() {})
		h.SetState("never proposed", attunev1.ProposalState_PROPOSAL_STATE_KEPT, "")
		h.Verdict(&attunev1.EvaluateRequest{ProposalId: "never proposed"})
		for _, p := range h.Processes() {
			h.UpdateProcess(p)
			h.EndProcess(p)
			h.EndProcess(p)
		}
		h.OpenSession("observe")
		h.EndSession()
	}
	// Time that stands still and goes back.
	h.OpenSession("tune")
	turmoil(h, 4, 100, func() {})
	for range 2 {
		h.now = h.now.Add(-time.Hour)
		h.Run(time.Second)
	}
}

func namesWhatExists(tb TB, s subject) {
	proposals := 0
	for seed := range uint64(8) {
		h := s.harness(tb)
		h.checking = true
		h.StartSession()
		turmoil(h, seed, 200, func() { checkNames(h, tb) })
		proposals += len(h.Proposals)
	}
	if s.sure && proposals == 0 {
		tb.Errorf("not one proposal for processes in trouble")
	}
}

func givesBack(tb TB, s subject) {
	h := s.harness(tb)
	h.StartSession()
	turmoil(h, 5, 200, func() {})
	for len(h.Processes()) > 0 {
		h.EndProcess(h.Processes()[0])
	}
	before := len(h.Proposals)
	h.Run(10 * time.Second)
	if len(h.Proposals) > before {
		tb.Errorf("proposed after the last process ended: %v", h.Proposals[before])
	}
	if wanted := h.lastPoint; wanted > 0 {
		h.Run(10 * time.Second)
		if h.lastPoint > wanted {
			tb.Errorf("asks for measure points without processes")
		}
	}
}

func repeats(tb TB, s subject) {
	var first, second []proto.Message
	h := s.harness(tb)
	h.StartSession()
	for _, out := range []*[]proto.Message{&first, &second} {
		turmoil(h, 11, 300, func() {})
		*out = transcript(h)
		for len(h.Processes()) > 0 {
			h.EndProcess(h.Processes()[0])
		}
		h.EndSession()
		startOver(h)
		h.OpenSession("tune")
	}
	if len(first) != len(second) {
		tb.Fatalf("first session: %d wishes, second: %d", len(first), len(second))
	}
	for i := range first {
		if !proto.Equal(first[i], second[i]) {
			tb.Fatalf("wish %d: first session %v, second %v", i, first[i], second[i])
		}
	}
}

// transcript is all that the tunlet wanted.
func transcript(h *Harness) (out []proto.Message) {
	for _, p := range h.Proposals {
		out = append(out, p.Proposal)
	}
	for _, w := range h.Withdrawals {
		out = append(out, w.Withdrawal)
	}
	for _, o := range h.Objectives {
		out = append(out, o)
	}
	for _, r := range h.Remarks {
		out = append(out, r)
	}
	return out
}

// startOver forgets what was, and begins simulated time again.
func startOver(h *Harness) {
	h.Proposals, h.Withdrawals, h.Objectives, h.Remarks = nil, nil, nil, nil
	h.points, h.order, h.lastPoint = map[string]*point{}, nil, 0
	h.feed = feed.Feed{}
	h.processes, h.handle, h.now = nil, 0, begin()
}

// wakeByObjects has the tunlet started by what its conditions say of objects alone;
// at once if one of them says nothing of objects.
func wakeByObjects(h *Harness) {
	if h.wakes.Empty() {
		return
	}
	var conditions []*attunev1.Wake
	for _, w := range h.described.GetWake() {
		if w.GetObject() == "" {
			h.wakes = samplefilter.Wakes{}
			return
		}
		conditions = append(conditions, &attunev1.Wake{Object: w.GetObject()})
	}
	h.wakes.Add(h.described.GetName(), conditions)
}
