// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"reflect"
	"strings"
	"time"

	"cel.dev/cel-go/cel"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// What expressions see of a thread, socket or pipe: the fields of
// docs/reference/signals.md, with times in seconds and without their unit in
// the name, and counters as their rise per second. All numbers are floating
// point, as elsewhere. CEL reads the fields by reflection, so they are exported.
type (
	thread struct {
		TID                 float64 `cel:"tid"`
		Name                string  `cel:"name"`
		State               string  `cel:"state"`
		Run                 float64 `cel:"run"`
		Wait                float64 `cel:"wait"`
		VoluntarySwitches   float64 `cel:"voluntary_switches"`
		InvoluntarySwitches float64 `cel:"involuntary_switches"`
		LastCPU             float64 `cel:"last_cpu"`
		CPUsAllowed         string  `cel:"cpus_allowed"`
	}

	socket struct {
		FD                float64 `cel:"fd"`
		Inode             float64 `cel:"inode"`
		Kind              string  `cel:"kind"` // tcp or unix
		Local             string  `cel:"local"`
		Peer              string  `cel:"peer"`
		SendBuffer        float64 `cel:"send_buffer_bytes"`
		ReceiveBuffer     float64 `cel:"receive_buffer_bytes"`
		SendQueued        float64 `cel:"send_queued_bytes"`
		ReceiveQueued     float64 `cel:"receive_queued_bytes"`
		SendBufferSet     bool    `cel:"send_buffer_set"`
		ReceiveBufferSet  bool    `cel:"receive_buffer_set"`
		State             string  `cel:"state"` // of TCP, as all that follows
		NoDelay           bool    `cel:"no_delay"`
		Congestion        string  `cel:"congestion"`
		RTT               float64 `cel:"rtt"`
		MinRTT            float64 `cel:"min_rtt"`
		Window            float64 `cel:"window_segments"`
		Segment           float64 `cel:"segment_bytes"`
		Unacked           float64 `cel:"unacked_segments"`
		Unsent            float64 `cel:"unsent_bytes"`
		Acked             float64 `cel:"acked_bytes"`
		Received          float64 `cel:"received_bytes"`
		SegmentsSent      float64 `cel:"data_segments_sent"`
		SegmentsReceived  float64 `cel:"data_segments_received"`
		SegmentsResent    float64 `cel:"retransmitted_segments"`
		DeliveryRate      float64 `cel:"delivery_rate"`
		Busy              float64 `cel:"busy"`
		PeerLimited       float64 `cel:"peer_limited"`
		SendBufferLimited float64 `cel:"send_buffer_limited"`
		SinceSent         float64 `cel:"last_sent"`
		SinceReceived     float64 `cel:"last_received"`
	}

	pipe struct {
		FD       float64 `cel:"fd"`
		Inode    float64 `cel:"inode"`
		Writes   bool    `cel:"writes"`
		Capacity float64 `cel:"capacity_bytes"`
		Queued   float64 `cel:"queued_bytes"`
	}
)

// rise is how much a counter rose per second; never negative.
func rise[T uint32 | uint64](before, now T, seconds float64) float64 {
	return max(0, float64(now)-float64(before)) / seconds
}

// share is how much of the time between two readings a time rose by.
func share(before, now time.Duration, seconds float64) float64 {
	return max(0, (now-before).Seconds()) / seconds
}

func threadKey(t sdk.ThreadDetail) itemKey { return itemKey{t.TID, t.StartTicks} }
func socketKey(s sdk.SocketDetail) itemKey { return itemKey{s.FD, s.Inode} }
func pipeKey(p sdk.PipeDetail) itemKey     { return itemKey{p.FD, p.Inode} }

func showThread(before, now sdk.ThreadDetail, seconds float64) thread {
	return thread{
		TID: float64(now.TID), Name: now.Name, State: string(rune(now.State)),
		Run: share(before.Run, now.Run, seconds), Wait: share(before.Wait, now.Wait, seconds),
		VoluntarySwitches:   rise(before.VoluntarySwitches, now.VoluntarySwitches, seconds),
		InvoluntarySwitches: rise(before.InvoluntarySwitches, now.InvoluntarySwitches, seconds),
		LastCPU:             float64(now.LastCPU), CPUsAllowed: string(now.CPUsAllowed),
	}
}

func showSocket(before, now sdk.SocketDetail, seconds float64) socket {
	s := socket{
		FD: float64(now.FD), Inode: float64(now.Inode), Local: now.Local, Peer: now.Peer,
		SendBuffer: float64(now.SendBuffer), ReceiveBuffer: float64(now.ReceiveBuffer),
		SendQueued: float64(now.SendQueued), ReceiveQueued: float64(now.ReceiveQueued),
		SendBufferSet: now.SendBufferSet, ReceiveBufferSet: now.ReceiveBufferSet,
	}
	if now.Unix {
		s.Kind = "unix"
	}
	if now.TCP != nil && before.TCP != nil {
		s.Kind = "tcp"
		s.connection(before.TCP, now.TCP, seconds)
	}
	return s
}

// connection fills in what there is of TCP only.
func (s *socket) connection(before, now *sdk.TCPDetail, seconds float64) {
	s.State, s.NoDelay, s.Congestion = now.State, now.NoDelay, now.Congestion
	s.RTT, s.MinRTT = now.RTT.Seconds(), now.MinRTT.Seconds()
	s.Window, s.Segment = float64(now.Window), float64(now.SegmentBytes)
	s.Unacked, s.Unsent = float64(now.Unacked), float64(now.UnsentBytes)
	s.Acked = rise(before.AckedBytes, now.AckedBytes, seconds)
	s.Received = rise(before.ReceivedBytes, now.ReceivedBytes, seconds)
	s.SegmentsSent = rise(before.SegmentsSent, now.SegmentsSent, seconds)
	s.SegmentsReceived = rise(before.SegmentsReceived, now.SegmentsReceived, seconds)
	s.SegmentsResent = rise(before.SegmentsResent, now.SegmentsResent, seconds)
	s.DeliveryRate = float64(now.DeliveryRate)
	s.Busy = share(before.Busy, now.Busy, seconds)
	s.PeerLimited = share(before.PeerLimited, now.PeerLimited, seconds)
	s.SendBufferLimited = share(before.SendBufferLimited, now.SendBufferLimited, seconds)
	s.SinceSent, s.SinceReceived = now.SinceSent.Seconds(), now.SinceReceived.Seconds()
}

func showPipe(_, now sdk.PipeDetail, _ float64) pipe {
	return pipe{
		FD: float64(now.FD), Inode: float64(now.Inode), Writes: now.Writes,
		Capacity: float64(now.Capacity), Queued: float64(now.Queued),
	}
}

// listKind is a kind of details that expressions see as a list.
type listKind struct {
	kind sdk.Detail
	item reflect.Type
	get  func(*details) (any, bool)
	// number is the number of an item, as changes take it.
	number func(item any) int32
}

// name is what one item is called: thread, socket, pipe.
func (l listKind) name() string { return strings.TrimSuffix(l.kind.String(), "s") }

// itemName is the name that expressions about each item may use beside others.
func (l listKind) itemName() vocabulary {
	return vocabulary{l.name(): {l.celType(), func(k knowledge) (any, bool) { return k.item, k.item != nil }}}
}

// knows is what is known with each of the items of a list.
func (l listKind) knows(k knowledge, list any) (out []knowledge) {
	items := reflect.ValueOf(list)
	for i := range items.Len() {
		k.item = items.Index(i).Interface()
		out = append(out, k)
	}
	return out
}

// itemNames are the kinds of items by what one is called.
func itemNames() map[string]*listKind {
	out := map[string]*listKind{}
	for _, l := range lists() {
		out[l.name()] = &l
	}
	return out
}

// lists are these kinds, by what expressions call them.
func lists() map[string]listKind {
	return map[string]listKind{
		"threads": {
			sdk.DetailThreads, reflect.TypeFor[thread](),
			func(d *details) (any, bool) { return d.threads.list() }, func(item any) int32 { return int32(item.(*thread).TID) },
		},
		"sockets": {
			sdk.DetailSockets, reflect.TypeFor[socket](),
			func(d *details) (any, bool) { return d.sockets.list() }, func(item any) int32 { return int32(item.(*socket).FD) },
		},
		"pipes": {
			sdk.DetailPipes, reflect.TypeFor[pipe](),
			func(d *details) (any, bool) { return d.pipes.list() }, func(item any) int32 { return int32(item.(*pipe).FD) },
		},
	}
}

// celType is how CEL knows the items of a list.
func (l listKind) celType() *cel.Type { return cel.ObjectType(l.item.String()) }

// fields lists the fields of an item as expressions call them.
func (l listKind) fields() string {
	var names []string
	for i := range l.item.NumField() {
		names = append(names, l.item.Field(i).Tag.Get("cel"))
	}
	return strings.Join(names, ", ")
}

// memoryFields are what expressions call what is known of memory.
func memoryFields() map[string]func(*sdk.MemoryDetails) uint64 {
	return map[string]func(*sdk.MemoryDetails) uint64{
		"resident_bytes":          func(m *sdk.MemoryDetails) uint64 { return m.Resident },
		"anonymous_bytes":         func(m *sdk.MemoryDetails) uint64 { return m.Anonymous },
		"huge_bytes":              func(m *sdk.MemoryDetails) uint64 { return m.Huge },
		"hugetlb_bytes":           func(m *sdk.MemoryDetails) uint64 { return m.Hugetlb },
		"swap_bytes":              func(m *sdk.MemoryDetails) uint64 { return m.Swap },
		"mappings":                func(m *sdk.MemoryDetails) uint64 { return uint64(m.Mappings) },
		"mapped_anonymous_bytes":  func(m *sdk.MemoryDetails) uint64 { return m.MappedAnonymous },
		"largest_anonymous_bytes": func(m *sdk.MemoryDetails) uint64 { return m.LargestAnonymous },
		"available_bytes":         func(m *sdk.MemoryDetails) uint64 { return m.Available },
	}
}
