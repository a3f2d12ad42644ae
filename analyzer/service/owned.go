// SPDX-License-Identifier: Apache-2.0

package service

import (
	"maps"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/internal/registry"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// endedKept is how long it is remembered that a session has ended, as the
// registry does.
const endedKept = 7 * 24 * time.Hour

// owned is a registration that this Analyzer has. What is in it changes under
// table.mu once it is entered there.
type owned struct {
	id    string
	lease *registry.Lease
	// past are the sessions of this registration, by id, that run by their record:
	// they are to be taken over when their controllers come.
	past map[string]*attunev1.SessionRecord
	// ended says when others have ended, by id, which is not given again.
	ended map[string]time.Time
	// stopped are the executions that are to be left alone, and when their sessions ended:
	// however many sessions each had before.
	stopped map[key]time.Time
	// asked is when a controller last asked for a session of it, at first when it became
	// this Analyzer's.
	asked time.Time
}

func newOwned(id string, lease *registry.Lease) *owned {
	return &owned{
		id: id, lease: lease, past: make(map[string]*attunev1.SessionRecord), ended: make(map[string]time.Time),
		stopped: make(map[key]time.Time), asked: time.Now(),
	}
}

// recall takes over what the registry knows of the sessions of the registration.
func (o *owned) recall(records []*attunev1.SessionRecord) {
	for _, r := range records {
		switch {
		case r.GetRegistration() != o.id:
		case r.GetEndedUnixNano() != 0:
			o.end(o.keyOf(r), r)
		default:
			o.past[r.GetId()] = r
			if r.GetStopped() { // its Analyzer went while it ended
				o.stopped[o.keyOf(r)] = time.Now()
			}
		}
	}
}

// keyOf is what a session is known by that has only its record.
func (o *owned) keyOf(r *attunev1.SessionRecord) key { return newKey(o.id, r.GetJob(), r.GetUser()) }

// end notes that a session has ended.
func (o *owned) end(k key, r *attunev1.SessionRecord) {
	at := time.Unix(0, r.GetEndedUnixNano())
	delete(o.past, r.GetId())
	o.ended[r.GetId()] = at
	if r.GetStopped() {
		o.stopped[k] = at
	}
}

// next returns the record with which an execution's session begins: that of one
// that is to be taken over, or a new one. The error is errStopped if somebody has stopped
// one of the execution.
func (o *owned) next(r *attunev1.Registration, job *attunev1.Job, user *attunev1.Principal) (*attunev1.SessionRecord, error) {
	if _, stopped := o.stopped[newKey(o.id, job, user)]; stopped {
		return nil, errStopped
	}
	for number := 1; ; number++ {
		id := sessionID(r, job, user, number)
		_, ended := o.ended[id]
		switch old := o.past[id]; {
		case ended:
		case old != nil:
			return proto.CloneOf(old), nil
		default:
			return &attunev1.SessionRecord{
				Id: id, Registration: r.GetId(), Job: job, User: user, State: attunev1.SessionState_SESSION_STATE_RUNNING,
				StartedUnixNano: time.Now().UnixNano(),
			}, nil
		}
	}
}

// endPast ends sessions that were to be taken over and are not here, and returns
// their last records.
func (o *owned) endPast(here map[string]bool) (orphans []*attunev1.SessionRecord) {
	for id, p := range o.past {
		if !here[id] {
			p = proto.CloneOf(p)
			p.State, p.Running, p.EndedUnixNano = attunev1.SessionState_SESSION_STATE_ENDED, 0, time.Now().UnixNano()
			o.end(o.keyOf(p), p)
			orphans = append(orphans, p)
		}
	}
	return orphans
}

// forget forgets sessions that ended long ago.
func (o *owned) forget() {
	old := func(at time.Time) bool { return time.Since(at) > endedKept }
	maps.DeleteFunc(o.ended, func(_ string, at time.Time) bool { return old(at) })
	maps.DeleteFunc(o.stopped, func(_ key, at time.Time) bool { return old(at) })
}
