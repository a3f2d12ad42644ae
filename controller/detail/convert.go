// SPDX-License-Identifier: Apache-2.0

package detail

import (
	"fmt"
	"net/netip"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/proto/attune/series"
)

// memoryWords is what SO_MEMINFO and sock_diag tell of a socket's memory; see
// SK_MEMINFO_RMEM_ALLOC and those after it.
type memoryWords [unix.SK_MEMINFO_VARS]uint32

// readMemoryWords asks for them; x/sys has no such option.
func readMemoryWords(fd int) (words memoryWords, err error) {
	size := uint32(unsafe.Sizeof(words))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&words)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return words, fmt.Errorf("SO_MEMINFO: %w", errno)
	}
	return words, nil
}

func (m memoryWords) into(d *series.Socket) {
	d.SendBufferBytes, d.ReceiveBufferBytes = uint64(m[unix.SK_MEMINFO_SNDBUF]), uint64(m[unix.SK_MEMINFO_RCVBUF])
	// TCP counts its queue, a Unix socket what its peer has not read yet.
	d.SendQueuedBytes = uint64(max(m[unix.SK_MEMINFO_WMEM_QUEUED], m[unix.SK_MEMINFO_WMEM_ALLOC]))
	d.ReceiveQueuedBytes = uint64(m[unix.SK_MEMINFO_RMEM_ALLOC])
}

// states are TCP's, by number; see include/net/tcp_states.h.
var states = [...]string{
	1: "established", "syn-sent", "syn-received", "fin-wait-1", "fin-wait-2", "time-wait", "closed",
	"close-wait", "last-ack", "listen", "closing", "new-syn-received",
}

// tcpInto converts what the kernel tells of a connection; its times are
// microseconds and, of the last segments, milliseconds.
func tcpInto(info *unix.TCPInfo, d *series.TCP) {
	d.State = fmt.Sprintf("state %d", info.State)
	if int(info.State) < len(states) && states[info.State] != "" {
		d.State = states[info.State]
	}
	d.RTT, d.MinRTT = time.Duration(info.Rtt)*time.Microsecond, time.Duration(info.Min_rtt)*time.Microsecond
	if info.Min_rtt == ^uint32(0) { // none was measured
		d.MinRTT = 0
	}
	d.WindowSegments, d.SegmentBytes = uint64(info.Snd_cwnd), uint64(info.Snd_mss)
	d.UnackedSegments, d.UnsentBytes = uint64(info.Unacked), uint64(info.Notsent_bytes)
	d.AckedBytes, d.ReceivedBytes = info.Bytes_acked, info.Bytes_received
	d.DataSegmentsSent, d.DataSegmentsReceived = uint64(info.Data_segs_out), uint64(info.Data_segs_in)
	d.RetransmittedSegments = uint64(info.Total_retrans)
	d.DeliveryRate = info.Delivery_rate
	d.Busy, d.PeerLimited = time.Duration(info.Busy_time)*time.Microsecond, time.Duration(info.Rwnd_limited)*time.Microsecond
	d.SendBufferLimited = time.Duration(info.Sndbuf_limited) * time.Microsecond
	d.LastSent = time.Duration(info.Last_data_sent) * time.Millisecond
	d.LastReceived = time.Duration(info.Last_data_recv) * time.Millisecond
}

// addressText is an address as people write it; "": there is none.
func addressText(address unix.Sockaddr) string {
	switch a := address.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port)).String()
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr).Unmap(), uint16(a.Port)).String()
	case *unix.SockaddrUnix:
		if a.Name == "@" { // x/sys takes one without a name for an abstract one
			return ""
		}
		return strings.ToValidUTF8(a.Name, "?")
	}
	return ""
}
