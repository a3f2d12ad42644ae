// SPDX-License-Identifier: Apache-2.0

package track

import (
	"container/heap"
	"context"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// dueItem is a look at a member that is due at a time, unless its image has
// been replaced by then.
type dueItem struct {
	at     time.Time
	member *member
	handle uint64 // 0: forked, not told of
}

// dueHeap is a container/heap, the earliest first.
type dueHeap []dueItem

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h dueHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *dueHeap) Push(item any) { *h = append(*h, item.(dueItem)) }

// Pop implements heap.Interface.
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	item := (*h)[last]
	(*h)[last] = dueItem{}
	*h = (*h)[:last]
	return item
}

func (s *state) schedule(m *member, after time.Duration) {
	heap.Push(&s.due, dueItem{beat.Near(time.Now().Add(after)), m, m.message.GetHandle()})
}

// untilDue returns how long the loop may sleep.
func (s *state) untilDue() time.Duration {
	if len(s.due) == 0 {
		return time.Hour
	}
	return time.Until(s.due[0].at)
}

// work looks at all members that are due.
func (s *state) work() {
	now := time.Now()
	for len(s.due) > 0 && !s.due[0].at.After(now) {
		item := heap.Pop(&s.due).(dueItem)
		m := item.member
		switch {
		case s.members[m.pid] != m || m.message.GetHandle() != item.handle:
		case m.message == nil:
			s.outlivedGrace(m)
		default:
			s.refresh(m, false)
			m.refreshes++
			s.schedule(m, refreshDelay(m.refreshes))
		}
	}
}

// outlivedGrace tells of an image that has lived for a while, or of a forked
// process that has not exec'd.
func (s *state) outlivedGrace(m *member) {
	if m.pending != nil {
		s.look(m, *m.pending)
		return
	}
	if device, inode := executableInode(m.pid); s.isOwn(device, inode) {
		s.schedule(m, time.Second) // our own child, on its way to exec
		return
	}
	s.look(m, m.born)
}

// refreshDelay makes looks at an image rarer with its age: most libraries are
// loaded at the start.
func refreshDelay(done int) time.Duration {
	first := []time.Duration{10 * time.Millisecond, 30 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond}
	const oneMinute = 64
	switch {
	case done < len(first):
		return first[done]
	case done < oneMinute:
		return time.Second
	}
	return 5 * time.Second
}

// refresh reads what may have changed: the CPUs allowed and usable, and the
// objects if the address space has another size (or always, if forced).
func (s *state) refresh(m *member, force bool) {
	stat, err := procid.ReadStat(m.pid)
	if err != nil || stat.Leaderless() || !s.isImage(m, stat) {
		return // ended or exec'd: that is told by others
	}
	s.setSession(m, stat.Session)
	objects := m.message.Objects
	if force || stat.VirtualBytes != m.virtual {
		if now, err := readObjects(m.pid); err == nil {
			objects, m.virtual = slices.Concat(now, m.linkedIn()), stat.VirtualBytes
		}
	}
	cpus, usable := readCPUs(m.pid), s.usable.of(m.pid)
	if slices.Equal(objects, m.message.Objects) && cpus == m.message.CpusAllowed && usable == m.message.CpusUsable {
		s.requestDigest(m)
		return
	}
	s.change(m, func(p *attunev1.Process) { p.Objects, p.CpusAllowed, p.CpusUsable = objects, cpus, usable })
	s.requestDigest(m)
}

// isImage says whether a stat file is that of the image that was described. An
// image that does not show, because the process is just ending, is no other.
func (s *state) isImage(m *member, stat procid.Stat) bool {
	_, image := shown(m.pid, stat)
	return (image == m.image || image == procid.Image{}) && stat.StartTicks == m.message.GetIdentity().GetStartTicks()
}

// digestRequest asks for the SHA-256 of the executable of an image.
type digestRequest struct {
	handle        uint64
	pid           int
	path          string
	device, inode uint64
}

// digestResult answers a digestRequest.
type digestResult struct {
	handle uint64
	sum    string
}

// requestDigest asks for the digest unless it is known or asked for. If too
// many are waiting, the next refresh asks again.
func (s *state) requestDigest(m *member) {
	if m.message.ExecutableSha256 != "" || m.digesting {
		return
	}
	identity := m.message.GetIdentity()
	select {
	case s.digests <- digestRequest{
		m.message.GetHandle(), m.pid, m.message.Executable, identity.GetExeDevice(), identity.GetExeInode(),
	}:
		m.digesting = true
	default:
	}
}

func (s *state) digest(result digestResult) {
	m := s.handles[result.handle]
	if m == nil || result.sum == "" {
		return
	}
	s.change(m, func(p *attunev1.Process) { p.ExecutableSha256 = result.sum })
}

// digest hashes executables until ctx ends. It runs in a goroutine of its own
// and shares nothing with the state but the two channels.
func (t *Tracker) digest(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case request := <-t.state.digests:
			sum, err := t.hash(ctx, request)
			if err != nil {
				t.log.Debug("executable without digest", "path", request.path, "error", err)
			}
			post(ctx, t.state.digested, digestResult{request.handle, sum})
		}
	}
}

// hash reads the executable through the process or, if that has ended, by its
// path. Either must be the file that the image was described with: the process
// may have exec'd, the file may have been replaced.
func (t *Tracker) hash(ctx context.Context, request digestRequest) (string, error) {
	var err error
	for _, path := range []string{procPath(request.pid, "exe"), request.path} {
		var st unix.Stat_t
		if err = unix.Stat(path, &st); err != nil || uint64(st.Dev) != request.device || st.Ino != request.inode {
			continue
		}
		var sum string
		if sum, err = t.options.Digests.Digest(ctx, path); err == nil {
			return sum, nil
		}
	}
	return "", err
}
