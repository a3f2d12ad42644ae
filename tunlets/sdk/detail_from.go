// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func detailsFrom(d *attunev1.Details) (out Details) {
	if t := d.GetThreads(); t != nil {
		out.Threads = &ThreadDetails{Error: t.GetError(), Total: int(t.GetTotal()), Items: each(t.GetItems(), threadFrom)}
	}
	if s := d.GetSockets(); s != nil {
		out.Sockets = &SocketDetails{Error: s.GetError(), Total: int(s.GetTotal()), Items: each(s.GetItems(), socketFrom)}
	}
	if p := d.GetPipes(); p != nil {
		out.Pipes = &PipeDetails{Error: p.GetError(), Total: int(p.GetTotal()), Items: each(p.GetItems(), pipeFrom)}
	}
	if m := d.GetMemory(); m != nil {
		out.Memory = memoryFrom(m)
	}
	return out
}

// each converts a list.
func each[From, To any](list []From, convert func(From) To) []To {
	out := make([]To, 0, len(list))
	for _, item := range list {
		out = append(out, convert(item))
	}
	return out
}

func threadFrom(t *attunev1.ThreadDetail) ThreadDetail {
	out := ThreadDetail{
		TID: int(t.GetTid()), StartTicks: t.GetStartTicks(), Name: t.GetName(), State: '?',
		Run: time.Duration(t.GetRunNanos()), Wait: time.Duration(t.GetWaitNanos()),
		VoluntarySwitches: t.GetVoluntarySwitches(), InvoluntarySwitches: t.GetInvoluntarySwitches(),
		LastCPU: int(t.GetLastCpu()), CPUsAllowed: CPUList(t.GetCpusAllowed()),
	}
	if s := t.GetState(); s != "" {
		out.State = s[0]
	}
	return out
}

func socketFrom(s *attunev1.SocketDetail) SocketDetail {
	return SocketDetail{
		FD: int(s.GetFd()), Inode: s.GetInode(), Unix: s.GetKind() == attunev1.SocketKind_SOCKET_KIND_UNIX,
		TCP: tcpFrom(s.GetTcp()), Local: s.GetLocal(), Peer: s.GetPeer(),
		SendBuffer: s.GetSendBufferBytes(), ReceiveBuffer: s.GetReceiveBufferBytes(),
		SendQueued: s.GetSendQueuedBytes(), ReceiveQueued: s.GetReceiveQueuedBytes(),
		SendBufferSet: s.GetSendBufferSet(), ReceiveBufferSet: s.GetReceiveBufferSet(),
	}
}

func tcpFrom(t *attunev1.TcpDetail) *TCPDetail {
	if t == nil {
		return nil
	}
	return &TCPDetail{
		State: t.GetState(), NoDelay: t.GetNoDelay(), Congestion: t.GetCongestion(),
		RTT: micros(t.GetRttMicros()), MinRTT: micros(t.GetMinRttMicros()),
		Window: t.GetWindowSegments(), SegmentBytes: t.GetSegmentBytes(),
		Unacked: t.GetUnackedSegments(), UnsentBytes: t.GetUnsentBytes(),
		AckedBytes: t.GetAckedBytes(), ReceivedBytes: t.GetReceivedBytes(),
		SegmentsSent: t.GetDataSegmentsSent(), SegmentsReceived: t.GetDataSegmentsReceived(),
		SegmentsResent: t.GetRetransmittedSegments(), DeliveryRate: t.GetDeliveryRate(),
		Busy: time.Duration(t.GetBusyNanos()), PeerLimited: time.Duration(t.GetPeerLimitedNanos()),
		SendBufferLimited: time.Duration(t.GetSendBufferLimitedNanos()),
		SinceSent:         millis(t.GetLastSentMillis()), SinceReceived: millis(t.GetLastReceivedMillis()),
	}
}

func micros(n uint32) time.Duration { return time.Duration(n) * time.Microsecond }
func millis(n uint32) time.Duration { return time.Duration(n) * time.Millisecond }

func pipeFrom(p *attunev1.PipeDetail) PipeDetail {
	return PipeDetail{
		FD: int(p.GetFd()), Inode: p.GetInode(), Writes: p.GetWrites(),
		Capacity: p.GetCapacityBytes(), Queued: p.GetQueuedBytes(),
	}
}

func memoryFrom(m *attunev1.MemoryDetails) *MemoryDetails {
	return &MemoryDetails{
		Error: m.GetError(), Resident: m.GetResidentBytes(), Anonymous: m.GetAnonymousBytes(),
		Huge: m.GetHugeBytes(), Hugetlb: m.GetHugetlbBytes(), Swap: m.GetSwapBytes(), Mappings: int(m.GetMappings()),
		MappedAnonymous: m.GetMappedAnonymousBytes(), LargestAnonymous: m.GetLargestAnonymousBytes(),
		Available: m.GetAvailableBytes(),
	}
}
