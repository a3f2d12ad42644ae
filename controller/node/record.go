// SPDX-License-Identifier: Apache-2.0

package node

import (
	"runtime"
	"time"

	"github.com/attune-hpc/attune/controller/discover"
	"github.com/attune-hpc/attune/internal/queue"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// recorder tells what the node has. Its methods may be called from any goroutine.
type recorder struct {
	config   Config
	watcher  *discover.Watcher
	sessions *sessions
	notes    *notes
	started  time.Time
	touched  queue.Bell // rung when the record is to be announced anew
}

// record is what the node has now.
func (r *recorder) record() *attunev1.ControllerRecord {
	status := r.watcher.Status()
	record := &attunev1.ControllerRecord{
		Id: r.config.ID, Host: r.config.Host, Version: r.config.Version, Cpus: uint32(runtime.NumCPU()),
		Modes: []string{status.Mode, "batch"}, Reason: status.Reason, StartedUnixNano: r.started.UnixNano(),
		Mechanisms: r.config.Mechanisms,
	}
	if status.Mode == "" {
		record.Modes = []string{discover.ModePoll}
		record.Reason = "it is starting"
	}
	for _, s := range r.sessions.list() {
		record.Shares = append(record.Shares, s.share())
	}
	record.Mismatches, record.Troubles = r.notes.current()
	if trouble := r.config.Policy().Trouble(); trouble != "" {
		record.Troubles = append(record.Troubles, &attunev1.Trouble{Text: trouble}) // as long as it lasts
	}
	return attunev1.ValidText(record)
}

// locate answers who looks for processes.
func (r *recorder) locate(request *attunev1.LocateRequest) *attunev1.LocateResponse {
	if request.GetHost() != "" && request.GetHost() != r.config.Host {
		return nil
	}
	response := &attunev1.LocateResponse{Controller: r.config.ID, Host: r.config.Host}
	meant := func(registration string) bool {
		return request.GetRegistration() == "" || request.GetRegistration() == registration
	}
	for _, s := range r.sessions.list() {
		if !meant(s.key.registration) {
			continue
		}
		for _, process := range s.processes() {
			response.Processes = append(response.Processes, &attunev1.LocatedProcess{Registration: s.key.registration, Process: process})
		}
	}
	mismatches, _ := r.notes.current()
	for _, m := range mismatches {
		if meant(m.GetRegistration()) { // its texts are of this process, those of the others were encoded before
			response.Mismatches = append(response.Mismatches, attunev1.ValidText(m))
		}
	}
	return response
}

// recordFor is the record as far as a user may see it.
func (r *recorder) recordFor(uid uint32) *attunev1.ControllerRecord {
	record := r.record()
	if uid == 0 {
		return record
	}
	record.KeepOwn(func(of uint32) bool { return of == uid })
	return record
}
