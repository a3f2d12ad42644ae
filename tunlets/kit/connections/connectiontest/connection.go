// SPDX-License-Identifier: Apache-2.0

// Package connectiontest simulates processes with TCP connections, for tests of
// tunlets about them.
package connectiontest

import (
	"time"

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
	Socket sdk.SocketDetail
	TCP    sdk.TCPDetail
	// Moment changes a reading; nil: nothing more. n counts readings.
	Moment func(n int, d *sdk.SocketDetail)
}

// Process makes a process that has the connection and runs and waits for a CPU
// for the given parts of the time, and sleeps so often per second.
func (c *Connection) Process(run, wait, sleeps float64) *tunlettest.Process {
	p := tunlettest.Computing()
	p.Rates[sdk.RunTime], p.Rates[sdk.RunqueueWait] = run*1e9, wait*1e9
	p.Rates[sdk.CPUSystem] = run * 1e9
	p.Rates[sdk.VoluntarySwitches] = sleeps
	n := 0
	p.Details = func(age time.Duration) *sdk.Details {
		n++
		return &sdk.Details{Sockets: &sdk.SocketDetails{Total: 1, Items: []sdk.SocketDetail{c.reading(n, age)}}}
	}
	return p
}

// reading is the connection at an age.
func (c *Connection) reading(n int, age time.Duration) sdk.SocketDetail {
	s := age.Seconds()
	t := c.TCP
	t.State = "established"
	t.AckedBytes, t.DataSegmentsSent, t.DataSegmentsReceived = uint64(c.Bytes*s), uint64(c.Sent*s), uint64(c.Received*s)
	t.RetransmittedSegments = uint64(c.Sent * c.ResentShare * s)
	t.Busy, t.PeerLimited = time.Duration(c.BusyShare*s*1e9), time.Duration(c.PeerLimitedShare*s*1e9)
	d := c.Socket
	d.FD, d.Inode, d.Kind, d.Local, d.Peer, d.TCP = FD, Inode, "tcp", "10.0.0.1:5000", "10.0.0.2:6000", &t
	if c.Moment != nil {
		c.Moment(n, &d)
	}
	return d
}
