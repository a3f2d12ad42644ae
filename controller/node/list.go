// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"time"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/queue"
)

// take gives a session a process, which belongs to it from then on. Who knows
// that the session is unwanted is told so.
func (n *Node) take(o order, process *procid.Process) (*session, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	key := o.key()
	switch {
	case n.closed || n.ctx == nil:
		return nil, errClosed
	case n.off != "":
		return nil, errors.New(n.off)
	case n.unwanted(key):
		return nil, errors.New("the analyzer has just ended this session")
	}
	s := n.sessions[key]
	switch holder := n.holder(process); {
	case holder != nil && holder == s:
		return s, process.Close() // it was given twice
	case holder != nil:
		return nil, fmt.Errorf("process %d belongs to the session of registration %s already", process.PID(), holder.key.registration)
	case s == nil && key.uid != 0 && n.sessionsOf(key.uid) >= maxSessionsOfUser:
		return nil, errTooMany
	case s == nil:
		s = n.begin(o)
	}
	s.waiting = append(s.waiting, process)
	s.woken.Ring()
	return s, nil
}

// maxSessionsOfUser bounds what one user can make this node do: a job id costs
// them nothing, and a session some hundred kilobytes, and objects in the kernel.
const maxSessionsOfUser = 64

// errTooMany refuses one session more.
var errTooMany = fmt.Errorf("the user has %d sessions on this node, which is the most", maxSessionsOfUser)

// sessionsOf counts those of a user. The caller holds mu.
func (n *Node) sessionsOf(uid uint32) (count int) {
	for key := range n.sessions {
		if key.uid == uid {
			count++
		}
	}
	return count
}

// holder is the session that has a process, nil if none has: one process has one
// controller, whoever hands it over once more. The caller holds mu.
func (n *Node) holder(process *procid.Process) *session {
	for _, s := range n.sessions {
		if s.has(process) {
			return s
		}
	}
	return nil
}

// has says whether a process is the session's. The caller holds Node.mu.
func (s *session) has(process *procid.Process) bool {
	for _, other := range s.waiting {
		if same(other.Identity(), process.Identity()) {
			return true
		}
	}
	select {
	case <-s.ready:
		return s.controller.Has(process.Identity())
	default:
		return false
	}
}

// same tells processes apart, whatever they execute.
func same(a, b procid.Identity) bool {
	return a.PID == b.PID && a.StartTicks == b.StartTicks && a.BootID == b.BootID
}

// begin makes a session. The caller holds mu.
func (n *Node) begin(o order) *session {
	n.number++
	s := &session{
		node: n, order: o, key: o.key(), number: n.number,
		woken: queue.NewBell(), ready: make(chan struct{}), ended: make(chan conclusion, 1),
		switched: make(chan string, 1),
		log:      n.log.With("registration", o.registration.GetId(), "job", o.job.Key(), "uid", o.uid),
	}
	n.sessions[s.key] = s
	ctx := n.ctx
	n.work.Go(func() { s.run(ctx) })
	return s
}

// retire takes the session out of the list if no process waits for it, or if
// those that do have ended, where that is enough.
func (s *session) retire(endedIsEnough bool) bool {
	n := s.node
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, process := range s.waiting {
		if !endedIsEnough || process.Alive() {
			return false
		}
	}
	s.forget()
	return true
}

// forget takes the session out of the list. The caller holds Node.mu.
func (s *session) forget() {
	if s.node.sessions[s.key] == s {
		delete(s.node.sessions, s.key)
	}
	for _, process := range s.waiting {
		_ = process.Close() // it is open until here
	}
	s.waiting = nil
}

// conclude notes that an Analyzer does not want a session.
func (n *Node) conclude(key sessionKey) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.over[key] = time.Now()
}

// overTime is how long nothing of a session is taken that the Analyzer has
// ended: then it is asked again, which may have another execution by that name.
const overTime = 10 * time.Second

// unwanted says whether the Analyzer has just ended a session. The caller holds
// mu.
func (n *Node) unwanted(key sessionKey) bool {
	for k, since := range n.over {
		if time.Since(since) > overTime {
			delete(n.over, k)
		}
	}
	_, unwanted := n.over[key]
	return unwanted
}
