// SPDX-License-Identifier: Apache-2.0

package declarative_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/proto/attune/series"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/declarative"
	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/tunlettest"
)

// queued looks at connections that hold back what they were given.
const queued = `attune: tunlet/1
name: queued
version: "1"
summary: for tests
wake:
  - {levels: {voluntary_switches: 10}}
symptom: rate.voluntary_switches > 10.0
confirm: >
  sockets.exists(s, s.kind == 'tcp' && !s.no_delay && s.unsent_bytes > 0.0 && s.unacked_segments > 0.0)
  && memory.resident_bytes > 1e6
objective:
  name: acked_bytes_per_second
  unit: B/s
  description: bytes that got through
  value: sum(sockets.map(s, s.acked_bytes))
reason: ${sockets.size()} sockets, ${sum(sockets.map(s, s.acked_bytes))} B/s in ${sockets[0].state}, ${pipes.size()} pipes, busiest thread ${math.greatest(threads.map(t, t.run))}
change:
  - {system: socket.tcp_nodelay, to: "true", description: d}
`

func newTunlet(t *testing.T, text string) func() sdk.Tunlet {
	t.Helper()
	d, err := declarative.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d.New
}

// client waits for answers over one connection, of which the kernel holds data
// back.
func client(unsent uint64) func() *tunlettest.Process {
	return func() *tunlettest.Process {
		p := tunlettest.Computing()
		p.Rates[sdk.VoluntarySwitches] = 25
		p.Details = func(age time.Duration) *sdk.Details {
			return &sdk.Details{
				Threads: &sdk.ThreadDetails{Total: 2, Items: []sdk.ThreadDetail{
					{TID: 1, StartTicks: 7, Run: age / 4}, {TID: 2, StartTicks: 8, Run: 5},
				}},
				Sockets: &sdk.SocketDetails{Total: 1, Items: []sdk.SocketDetail{{
					FD: 4, Inode: 99, Kind: "tcp", TCP: &sdk.TCPDetail{
						State: "established", UnsentBytes: unsent, UnackedSegments: 1, AckedBytes: uint64(age.Milliseconds()),
					},
				}}},
				Pipes:  &sdk.PipeDetails{},
				Memory: &sdk.MemoryDetails{ResidentBytes: 5 << 20},
			}
		}
		return p
	}
}

func TestSuiteWithDetails(t *testing.T) { tunlettest.Suite(t, newTunlet(t, queued), client(100)) }

func TestDetails(t *testing.T) {
	for _, tt := range []struct {
		name   string
		unsent uint64
		want   int
	}{{"held back", 100, 1}, {"nothing held back", 0, 0}} {
		t.Run(tt.name, func(t *testing.T) {
			h := tunlettest.Start(t, newTunlet(t, queued), nil)
			p := h.StartProcess(client(tt.unsent)())
			wanted, rounds := 0, 0
			for h.Elapsed() < 20*time.Second {
				h.Round()
				rounds++
				wanted += min(1, len(h.DetailsWanted(p)))
			}
			if len(h.Proposals) != tt.want {
				t.Fatalf("proposals %v, want %d", h.Proposals, tt.want)
			}
			if tt.want == 0 {
				if wanted == 0 || wanted > rounds/3 {
					t.Errorf("details wanted in %d of %d rounds, want some and a third at most", wanted, rounds)
				}
				return
			}
			want := "1 sockets, 1000 B/s in established, 0 pipes, busiest thread 0.250"
			if got := h.Proposals[0].GetReason(); got != want {
				t.Errorf("reason %q, want %q", got, want)
			}
			h.SetState(h.Proposals[0].GetId(), attunev1.ProposalState_PROPOSAL_STATE_KEPT, "")
			if kinds := h.DetailsWanted(p); !slices.Equal(kinds, []sdk.Detail{sdk.DetailSockets}) {
				t.Errorf("%v are wanted after the verdict, want those of the objective", kinds)
			}
			h.Run(3 * time.Second)
			if kinds := h.DetailsWanted(p); len(kinds) > 0 {
				t.Errorf("%v are wanted after a look", kinds)
			}
		})
	}
}

// What is read seldom, and then as a whole, is seen from the first reading on until
// the next one.
func TestWholeDetails(t *testing.T) {
	text := strings.Replace(queued, "confirm: >", "confirm: >\n  memory_nodes.exists(n, n.share > 0.9 && n.policy == 'default' && has(n.bound_bytes)) &&", 1)
	h := tunlettest.Start(t, newTunlet(t, text), nil)
	p := client(100)()
	details, rounds := p.Details, 0
	p.Details = func(age time.Duration) *sdk.Details {
		d := details(age)
		if rounds++; rounds%100 == 5 {
			d.MemoryNodes = &series.Rows[series.MemoryNode]{Total: 2, Items: []series.MemoryNode{
				{Node: 0, ResidentBytes: 95 << 20, Share: 0.95, Policy: "default"}, {Node: 1, ResidentBytes: 5 << 20, Share: 0.05, Policy: "bind:1"},
			}}
		}
		return d
	}
	h.StartProcess(p)
	h.Run(4 * time.Second)
	if len(h.Proposals) != 1 {
		t.Errorf("proposals %v, remarks %v, want one proposal", h.Proposals, h.Remarks)
	}
}

// Only those sockets are changed that hold something back.
func TestEach(t *testing.T) {
	each := strings.Replace(queued, "{system: socket.tcp_nodelay, to: \"true\", description: d}",
		"{system: socket.tcp_nodelay, each: socket, where: socket.unsent_bytes > 50.0, to: socket.fd > 4.0, description: d}", 1)
	h := tunlettest.Start(t, newTunlet(t, each), nil)
	p := client(100)()
	details := p.Details
	p.Details = func(age time.Duration) *sdk.Details {
		d := details(age)
		for fd, unsent := range map[int]uint64{5: 0, 6: 70} {
			s := d.Sockets.Items[0]
			tcp := *s.TCP
			tcp.UnsentBytes = unsent
			s.FD, s.Inode, s.TCP = fd, uint64(fd), &tcp
			d.Sockets.Items = append(d.Sockets.Items, s)
		}
		return d
	}
	h.StartProcess(p)
	h.Run(2 * time.Second)
	if len(h.Proposals) != 1 {
		t.Fatalf("proposals %v, want one", h.Proposals)
	}
	var got []string
	for _, c := range h.Proposals[0].GetChanges() {
		got = append(got, c.GetKnob()+" "+attunev1.ActionText(c.GetAction()))
	}
	want := []string{
		"socket.tcp_nodelay@4 set socket.tcp_nodelay@4=false", "socket.tcp_nodelay@6 set socket.tcp_nodelay@6=true",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changes (-want +got)\n%s", diff)
	}
}

// Where there is nothing to change, nothing is proposed, and no try is lost.
func TestEachOfNone(t *testing.T) {
	none := strings.Replace(queued, "to: \"true\"", "each: socket, where: socket.fd == 77.0, to: \"true\"", 1)
	h := tunlettest.Start(t, newTunlet(t, none), nil)
	p := h.StartProcess(client(100)())
	h.Run(10 * time.Second)
	if len(h.Proposals)+len(h.Remarks) > 0 || len(h.DetailsWanted(p)) > 0 {
		t.Errorf("proposals %v, remarks %v, wanted %v", h.Proposals, h.Remarks, h.DetailsWanted(p))
	}
}

// TestShortConnections: the rate of a program that has one connection after the other is theirs,
// however long they last: what is closed does not count any more.
func TestShortConnections(t *testing.T) {
	for _, lasting := range []time.Duration{500 * time.Millisecond, time.Second, time.Hour} {
		h := tunlettest.Start(t, newTunlet(t, queued), nil)
		p := client(0)()
		details := p.Details
		p.Details = func(age time.Duration) *sdk.Details {
			d := details(age)
			d.Sockets.Items[0].Inode += uint64(age / lasting)
			return d
		}
		h.StartProcess(p)
		h.Run(4 * time.Second)
		var sum float64
		for _, o := range h.Objectives[1:] { // the first connection is known from its second reading on
			sum += o.GetValue()
		}
		if mean := sum / float64(len(h.Objectives)-1); mean < 950 || mean > 1050 {
			t.Errorf("connections of %v: %.0f B/s in %d values, want 1000", lasting, mean, len(h.Objectives))
		}
	}
}

// A kind that cannot be read ends the look at the process, with the reason.
func TestRefusedDetails(t *testing.T) {
	h := tunlettest.Start(t, newTunlet(t, queued), nil)
	p := client(100)()
	p.Details = func(time.Duration) *sdk.Details {
		return &sdk.Details{Sockets: &sdk.SocketDetails{Error: "not permitted"}}
	}
	h.StartProcess(p)
	h.Run(10 * time.Second)
	if len(h.Remarks) != 1 || !strings.Contains(h.Remarks[0].GetText(), "not permitted") || len(h.DetailsWanted(p)) > 0 {
		t.Errorf("remarks %v, wanted %v", h.Remarks, h.DetailsWanted(p))
	}
}

// A process of which samples come four times a second has time for a baseline.
func TestSlowSamples(t *testing.T) {
	h := tunlettest.Start(t, newTunlet(t, queued), nil)
	p := client(100)()
	details, rounds := p.Details, 0
	p.Details = func(age time.Duration) *sdk.Details {
		if rounds++; rounds%5 != 0 {
			return nil
		}
		return details(age)
	}
	h.StartProcess(p)
	h.Run(5 * time.Second)
	if len(h.Proposals) != 1 {
		t.Errorf("proposals %v, want one", h.Proposals)
	}
}
