// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/attune-hpc/attune/controller/discover"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// maxMismatches and maxTroubles bound what is announced of each; the newest
	// stay.
	maxMismatches = 64
	maxTroubles   = 16
	// announcePause bounds how often the record is announced anew.
	announcePause = 200 * time.Millisecond
	// announceInterval is how often it is, though nothing was told to change.
	announceInterval = 10 * time.Second
)

// notes are what the node has to tell that is no session. Its methods may be
// called from any goroutine.
type notes struct {
	changed func()

	mu         sync.Mutex // guards what follows; a leaf lock
	mismatches []*attunev1.Mismatch
	troubles   []string
}

// mismatch notes a process that is left alone.
func (n *notes) mismatch(m *attunev1.Mismatch) {
	n.mu.Lock()
	n.mismatches = append(n.mismatches, m)
	n.mismatches = slices.Delete(n.mismatches, 0, max(0, len(n.mismatches)-maxMismatches))
	n.mu.Unlock()
	n.changed()
}

// trouble notes what went wrong and was survived, with its time.
func (n *notes) trouble(text string) {
	n.mu.Lock()
	n.troubles = append(n.troubles, time.Now().UTC().Format(time.RFC3339)+" "+text)
	n.troubles = slices.Delete(n.troubles, 0, max(0, len(n.troubles)-maxTroubles))
	n.mu.Unlock()
	n.changed()
}

// current returns what is noted, of mismatches those whose process runs.
func (n *notes) current() (mismatches []*attunev1.Mismatch, troubles []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mismatches = slices.DeleteFunc(n.mismatches, func(m *attunev1.Mismatch) bool { return !alive(m.GetPid()) })
	return slices.Clone(n.mismatches), slices.Clone(n.troubles)
}

// touch has the record announced anew.
func (n *Node) touch() {
	n.touched.Ring()
}

// announce keeps the record in the registry.
func (n *Node) announce(ctx context.Context) error {
	announcement, err := n.config.Registry.Announce(ctx, n.record())
	if err != nil {
		return ended(ctx, err)
	}
	tick := time.NewTicker(announceInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-n.touched:
			select { // more may come
			case <-ctx.Done():
				return nil
			case <-time.After(announcePause):
			}
		}
		if err := announcement.Update(n.record()); err != nil && ctx.Err() == nil {
			n.log.Debug("not announced", "error", err)
		}
	}
}

// record is what the node has now.
func (n *Node) record() *attunev1.ControllerRecord {
	status := n.watcher.Status()
	r := &attunev1.ControllerRecord{
		Id: n.config.ID, Host: n.config.Host, Version: n.config.Version, Cpus: uint32(runtime.NumCPU()),
		Modes: []string{status.Mode, "batch"}, Reason: status.Reason, StartedUnixNano: n.started.UnixNano(),
		Mechanisms: n.config.Mechanisms,
	}
	if status.Mode == "" {
		r.Modes = []string{discover.ModePoll}
		r.Reason = "it is starting"
	}
	for _, s := range n.list() {
		r.Shares = append(r.Shares, s.share())
	}
	r.Mismatches, r.Troubles = n.notes.current()
	return r
}

// share is the session's part here.
func (s *session) share() *attunev1.SessionShare {
	return &attunev1.SessionShare{Registration: s.key.registration, Job: s.order.job, Processes: uint32(s.living())}
}

// living counts the session's processes.
func (s *session) living() int {
	select {
	case <-s.ready:
		return s.controller.Living()
	default:
		return 0
	}
}

// locate answers who looks for processes.
func (n *Node) locate(request *attunev1.LocateRequest) *attunev1.LocateResponse {
	if request.GetHost() != "" && request.GetHost() != n.config.Host {
		return nil
	}
	response := &attunev1.LocateResponse{Controller: n.config.ID, Host: n.config.Host}
	meant := func(registration string) bool {
		return request.GetRegistration() == "" || request.GetRegistration() == registration
	}
	for _, s := range n.list() {
		select {
		case <-s.ready:
		default:
			continue
		}
		if !meant(s.key.registration) {
			continue
		}
		for _, process := range s.controller.Processes() {
			response.Processes = append(response.Processes, &attunev1.LocatedProcess{Registration: s.key.registration, Process: process})
		}
	}
	mismatches, _ := n.notes.current()
	response.Mismatches = slices.DeleteFunc(mismatches, func(m *attunev1.Mismatch) bool { return !meant(m.GetRegistration()) })
	return response
}
