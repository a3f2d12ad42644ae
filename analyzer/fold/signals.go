// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"time"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/proto/attune/series"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// signals add up what is sampled of the session's processes.
type signals struct {
	used [series.SignalSize]uint64
	// exact are the processes that the kernel has accounted for, with what they took.
	exact exact
	of    map[uint64]*sampled // by the handles of those that run
	// resident is the memory of those together as of their latest samples, peak the most
	// that there was.
	resident, peak uint64
	nodes          map[string]*onNode // by host
}

// onNode is what the processes on one node took, and could have.
type onNode struct {
	run            time.Duration
	resident, peak uint64
	available      *attunev1.Available // nil: nobody has told
}

// node returns what is known of a node.
func (s *signals) node(host string) *onNode {
	n := s.nodes[host]
	if n == nil {
		n = &onNode{}
		s.nodes[host] = n
	}
	return n
}

// could takes over what a process on a node could have: of several the most, for one may be
// bound to some of the CPUs.
func (n *onNode) could(a *attunev1.Available) {
	if a != nil && (n.available == nil || a.GetCores() > n.available.GetCores()) {
		n.available = a
	}
}

// sampled is what was read last of a process.
type sampled struct {
	latest [series.SignalSize]uint64
	known  [series.SignalSize]bool
	node   *onNode
}

// take takes one sample. What a process had used before the first of them was not used
// under control.
func (s *signals) take(sample *attunev1.Sample, of *process) {
	p := s.of[sample.GetProcess()]
	if p == nil {
		p = &sampled{node: s.nodes[of.id.host]}
		if p.node == nil { // nobody has told of the process
			p.node = &onNode{}
		}
		s.of[sample.GetProcess()] = p
	}
	for id, value := range series.SignalsOf(sample) {
		if int(id) >= series.SignalSize { // of a newer controller
			continue
		}
		if p.known[id] && value > p.latest[id] && !id.Gauge() {
			s.used[id] += value - p.latest[id]
			of.life.used[id] += value - p.latest[id]
			if id == series.RunTime {
				p.node.run += time.Duration(value - p.latest[id])
			}
		}
		if id == series.ResidentBytes {
			s.resident += value - p.latest[id]
			p.node.resident += value - p.latest[id]
			s.peak, of.life.resident, p.node.peak = max(s.peak, s.resident), max(of.life.resident, value), max(p.node.peak, p.node.resident)
		}
		p.latest[id], p.known[id] = value, true
	}
}

// exact is what processes took whose ends the kernel accounted for.
type exact struct {
	processes, unseen int
	io                account.IO
}

// settle puts the kernel's account of a process that has ended in the place of what its
// samples say.
func (s *signals) settle(of *process, taken *attunev1.Taken) {
	if taken == nil || of.life.taken != nil {
		return
	}
	of.life.taken = taken
	for id, value := range map[series.ID]uint64{
		series.RunTime: taken.GetCpuNanos(), series.RunqueueWait: taken.GetCpuWaitNanos(),
		series.CPUUser: taken.GetUserNanos(), series.CPUSystem: taken.GetCpuNanos() - taken.GetUserNanos(),
		series.VoluntarySwitches: taken.GetVoluntarySwitches(), series.InvoluntarySwitches: taken.GetInvoluntarySwitches(),
		series.MinorFaults: taken.GetMinorFaults(), series.MajorFaults: taken.GetMajorFaults(),
	} {
		more := value - of.life.used[id] // or less, by wrapping round
		s.used[id], of.life.used[id] = s.used[id]+more, value
		if id == series.RunTime {
			s.node(of.id.host).run += time.Duration(more)
		}
	}
	s.exact.processes++
	s.exact.unseen += int(taken.GetUnseenProcesses())
	s.exact.io = sumOf(s.exact.io, ioOf(taken))
}

// ioOf is what a process read and wrote.
func ioOf(t *attunev1.Taken) account.IO {
	return account.IO{
		Read: new(t.GetReadBytes()), Written: new(t.GetWrittenBytes()), ReadCalls: new(t.GetReadCalls()), WrittenCalls: new(t.GetWrittenCalls()),
		StorageRead: new(t.GetStorageReadBytes()), StorageWritten: new(t.GetStorageWrittenBytes()),
	}
}

// sumOf adds up what two have read and written, the first of which may be nobody.
func sumOf(a, b account.IO) account.IO {
	if a.Read == nil {
		return b
	}
	return account.IO{
		Read: new(*a.Read + *b.Read), Written: new(*a.Written + *b.Written),
		ReadCalls: new(*a.ReadCalls + *b.ReadCalls), WrittenCalls: new(*a.WrittenCalls + *b.WrittenCalls),
		StorageRead: new(*a.StorageRead + *b.StorageRead), StorageWritten: new(*a.StorageWritten + *b.StorageWritten),
	}
}

// gone forgets a process that has ended.
func (s *signals) gone(handle uint64) {
	if p := s.of[handle]; p != nil {
		s.resident -= p.latest[series.ResidentBytes]
		p.node.resident -= p.latest[series.ResidentBytes]
	}
	delete(s.of, handle)
}
