// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"strings"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Detail is a kind of details: what is read from outside a process only when a
// tunlet asks for it by [Host.WantDetails].
type Detail uint8

// The kinds.
const (
	// DetailThreads is the process' threads, one by one.
	DetailThreads = Detail(attunev1.DetailKind_DETAIL_KIND_THREADS)
	// DetailSockets is its TCP and Unix sockets, one by one.
	DetailSockets = Detail(attunev1.DetailKind_DETAIL_KIND_SOCKETS)
	// DetailPipes is its pipes, one by one.
	DetailPipes = Detail(attunev1.DetailKind_DETAIL_KIND_PIPES)
	// DetailMemory is what its memory is made of.
	DetailMemory = Detail(attunev1.DetailKind_DETAIL_KIND_MEMORY)
)

// String returns the kind's name: threads, sockets, pipes or memory.
func (d Detail) String() string {
	return strings.ToLower(strings.TrimPrefix(attunev1.DetailKind(d).String(), "DETAIL_KIND_"))
}

// Details are what a round read of a process beside its signals. A kind is nil
// in rounds in which it was not read: a bounded number of threads and
// descriptors is read in each one, of all processes in turn.
type Details struct {
	Threads *ThreadDetails
	Sockets *SocketDetails
	Pipes   *PipeDetails
	Memory  *MemoryDetails
}

// ThreadDetails are the threads that were read in one round.
type ThreadDetails struct {
	// Error says why none can be read; empty: they can.
	Error string
	// Total is how many threads there are.
	Total int
	// Items are those that were read; what is known of each is of this round.
	Items []ThreadDetail
}

// ThreadDetail is one thread at one time.
type ThreadDetail struct {
	// TID is its id, as a change takes it in On.
	TID int
	// StartTicks is its start time in clock ticks since boot: TIDs are used again.
	StartTicks uint64
	// Name has at most 15 bytes.
	Name string
	// State is R (runs or may run), S (sleeps), D (waits for a disk) or another
	// letter of proc_pid_stat(5).
	State byte
	// Run is time on a CPU, Wait time runnable but waiting for one.
	Run, Wait time.Duration
	// VoluntarySwitches and InvoluntarySwitches are its context switches.
	VoluntarySwitches, InvoluntarySwitches uint64
	// LastCPU is where it ran last.
	LastCPU int
	// CPUsAllowed is where it may run.
	CPUsAllowed CPUList
}

// ThreadKey names a thread of a process for good.
type ThreadKey struct {
	TID        int
	StartTicks uint64
}

// Key returns the thread's name for good.
func (t ThreadDetail) Key() ThreadKey { return ThreadKey{t.TID, t.StartTicks} }

// SocketDetails are the sockets that were read in one round.
type SocketDetails struct {
	// Error says why none can be read, or not all of them; empty: they can.
	Error string
	// Total is how many sockets there are, of every kind.
	Total int
	// Items are those that were read. One that is younger than two rounds is not.
	Items []SocketDetail
}

// SocketDetail is one socket at one time.
type SocketDetail struct {
	// FD is its descriptor, as a change takes it in On; the least one where there
	// are several.
	FD int
	// Inode tells it from others that have the descriptor later.
	Inode uint64
	// Unix is set for a Unix domain socket, TCP for one of TCP.
	Unix bool
	TCP  *TCPDetail
	// Local and Peer are addresses, host:port or a path; empty: none, or unknown.
	Local, Peer string
	// SendBuffer and ReceiveBuffer are how many bytes may wait, overhead included.
	SendBuffer, ReceiveBuffer uint32
	// SendQueued and ReceiveQueued are how many do.
	SendQueued, ReceiveQueued uint32
	// SendBufferSet and ReceiveBufferSet say that the program chose the size:
	// the kernel does not adjust it.
	SendBufferSet, ReceiveBufferSet bool
}

// TCPDetail is what the kernel tells of a connection; see tcp_info in linux/tcp.h.
// Counters are those of its whole life.
type TCPDetail struct {
	// State is established, listen, close-wait and so on.
	State string
	// NoDelay is TCP_NODELAY; it may be five seconds old.
	NoDelay bool
	// Congestion is the congestion control.
	Congestion string
	// RTT and MinRTT are the smoothed and the least round-trip time.
	RTT, MinRTT time.Duration
	// Window is the congestion window in segments of SegmentBytes.
	Window, SegmentBytes uint32
	// Unacked is how many segments are sent and not acknowledged; of a listening
	// socket, how many connections wait for being accepted.
	Unacked uint32
	// UnsentBytes wait in the send queue and have not been sent.
	UnsentBytes uint32
	// AckedBytes and ReceivedBytes are what got through.
	AckedBytes, ReceivedBytes uint64
	// SegmentsSent and SegmentsReceived are those with data; SegmentsResent were
	// sent again.
	SegmentsSent, SegmentsReceived, SegmentsResent uint64
	// DeliveryRate is at which rate the peer got data lately, bytes per second.
	DeliveryRate uint64
	// Busy is the time during which there was something to send; PeerLimited
	// that part in which the peer's window was full, SendBufferLimited that in
	// which the send buffer was too small.
	Busy, PeerLimited, SendBufferLimited time.Duration
	// SinceSent and SinceReceived are how long ago data was.
	SinceSent, SinceReceived time.Duration
}

// PipeDetails are the pipes that were read in one round.
type PipeDetails struct {
	// Error says why none can be read, or not all of them; empty: they can.
	Error string
	// Total is how many ends of pipes the process has; named pipes do not count.
	Total int
	// Items are those that were read. One that is younger than two rounds is not.
	Items []PipeDetail
}

// PipeDetail is one end of a pipe at one time.
type PipeDetail struct {
	// FD is its descriptor, as a change takes it in On.
	FD int
	// Inode is the same for both ends, in whichever process they are.
	Inode uint64
	// Writes says that it is the end which is written to.
	Writes bool
	// Capacity is how many bytes it can hold, Queued how many wait for being read.
	Capacity, Queued uint32
}

// MemoryDetails are what the memory of a process is made of, in bytes. They are
// read the less often the longer reading takes.
type MemoryDetails struct {
	// Error says why it cannot be read; empty: it can.
	Error string
	// Resident memory, the Anonymous part of it, and of that the part in Huge
	// pages. Hugetlb is not part of any.
	Resident, Anonymous, Huge, Hugetlb uint64
	// Swap is swapped out.
	Swap uint64
	// Mappings is how many there are.
	Mappings int
	// MappedAnonymous is the address space of private writable mappings without
	// file, LargestAnonymous that of the greatest.
	MappedAnonymous, LargestAnonymous uint64
	// Available is what the process could still take before somebody has to go
	// without: of the node, and by the limits of its cgroups; 0: unknown, or nothing.
	Available uint64
}
