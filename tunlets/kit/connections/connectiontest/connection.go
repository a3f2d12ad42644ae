// SPDX-License-Identifier: Apache-2.0

// Package connectiontest simulates processes with TCP connections, for tests of
// tunlets about them.
package connectiontest

import (
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/tunlettest"
)

// FD is the descriptor of the only connection, Inode its inode.
const (
	FD    = 7
	Inode = 4711
)

// Connection is what one does, per second and in each reading.
type Connection struct {
	// Sent and Received are segments with data per second, ResentShare the part of
	// the former that is sent again.
	Sent, Received, ResentShare float64
	// Bytes per second that are acknowledged.
	Bytes float64
	// BusyShare is the part of the time with something to send, PeerLimitedShare
	// that with a full window of the peer.
	BusyShare, PeerLimitedShare float64
	// Socket and TCP are what does not change; FD, Inode and state are set.
	Socket attunev1.SocketDetail
	TCP    attunev1.TcpDetail
	// Moment changes a reading; nil: nothing more. n counts readings.
	Moment func(n int, d *attunev1.SocketDetail)
}

// Process makes a process that has the connection and runs and waits for a CPU
// for the given parts of the time, and sleeps so often per second.
func (c *Connection) Process(run, wait, sleeps float64) *tunlettest.Process {
	p := tunlettest.Computing()
	p.Rates[sdk.RunTime], p.Rates[sdk.RunqueueWait] = run*1e9, wait*1e9
	p.Rates[sdk.CPUSystem] = run * 1e9
	p.Rates[sdk.VoluntarySwitches] = sleeps
	n := 0
	p.Details = func(age time.Duration) *attunev1.Details {
		n++
		return &attunev1.Details{Sockets: &attunev1.SocketDetails{Total: 1, Items: []*attunev1.SocketDetail{c.reading(n, age)}}}
	}
	return p
}

// reading is the connection at an age.
func (c *Connection) reading(n int, age time.Duration) *attunev1.SocketDetail {
	s := age.Seconds()
	t := &attunev1.TcpDetail{
		State: "established", NoDelay: c.TCP.NoDelay, Congestion: c.TCP.Congestion,
		RttMicros: c.TCP.RttMicros, MinRttMicros: c.TCP.MinRttMicros,
		WindowSegments: c.TCP.WindowSegments, SegmentBytes: c.TCP.SegmentBytes,
		UnackedSegments: c.TCP.UnackedSegments, UnsentBytes: c.TCP.UnsentBytes,
		AckedBytes: uint64(c.Bytes * s), DataSegmentsSent: uint64(c.Sent * s), DataSegmentsReceived: uint64(c.Received * s),
		RetransmittedSegments: uint64(c.Sent * c.ResentShare * s),
		BusyNanos:             uint64(c.BusyShare * s * 1e9), PeerLimitedNanos: uint64(c.PeerLimitedShare * s * 1e9),
	}
	d := &attunev1.SocketDetail{
		Fd: FD, Inode: Inode, Kind: attunev1.SocketKind_SOCKET_KIND_TCP, Local: "10.0.0.1:5000", Peer: "10.0.0.2:6000",
		SendBufferBytes: c.Socket.SendBufferBytes, SendQueuedBytes: c.Socket.SendQueuedBytes,
		SendBufferSet: c.Socket.SendBufferSet, Tcp: t,
	}
	if c.Moment != nil {
		c.Moment(n, d)
	}
	return d
}
