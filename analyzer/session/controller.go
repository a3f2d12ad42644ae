// SPDX-License-Identifier: Apache-2.0

package session

import (
	"time"

	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Controller is the management channel of one Application Controller.
type Controller interface {
	// Send queues a request without waiting. It returns false if the channel
	// has ended or does not keep up, which ends it.
	Send(*attunev1.ManageResponse) bool
}

// controller is one controller, at however many connections one after the other.
type controller struct {
	id      string
	hello   *attunev1.ControllerHello // nil before the management channel is there
	channel Controller                // nil without a management channel
	awaited bool                      // its management channel broke, or is to follow
	lostAt  time.Duration             // since when
	over    bool                      // it was given up, or has parted: its processes count as ended
	local   map[uint64]uint64         // its handles to the session's
	newest  uint64                    // of its handles
	early   []*attunev1.PointStatus   // of processes that it will tell of, see points.setStatus
	proven  []string                  // of its changes, as this channel was told
	status  *attunev1.ControllerStatus
	lost    *attunev1.ControllerStatus // losses as its events told them
	shift   shift                      // of the times that it measures at

	// What is wanted of it, in its own handles.
	points map[uint32]*attunev1.PointWant // by index
	tables map[uint64][]uint32            // beside the signals, by process
	paidAt time.Duration                  // until when wants have used up wantRate
}

// send sends a request to a controller, and reports whether it was taken.
func (c *controller) send(r *attunev1.ManageResponse) bool {
	return c.channel != nil && c.channel.Send(r)
}

// addLosses notes what a controller's events tell of losses.
func (c *controller) addLosses(lost *attunev1.ControllerStatus) {
	c.lost.RecordsLostRing += lost.GetRecordsLostRing()
	c.lost.RecordsLostSlot += lost.GetRecordsLostSlot()
	c.lost.RecordsLostQueue += lost.GetRecordsLostQueue()
	c.lost.RecordsLostBpf += lost.GetRecordsLostBpf()
}

// account is what a controller says of itself. That is newer and more complete than
// what its events have told, unless it is awaited.
func (c *controller) account() *attunev1.ControllerStatus {
	status := &attunev1.ControllerStatus{}
	if c.status != nil {
		status = proto.CloneOf(c.status)
	}
	status.RecordsLostRing = max(status.GetRecordsLostRing(), c.lost.GetRecordsLostRing())
	status.RecordsLostSlot = max(status.GetRecordsLostSlot(), c.lost.GetRecordsLostSlot())
	status.RecordsLostQueue = max(status.GetRecordsLostQueue(), c.lost.GetRecordsLostQueue())
	status.RecordsLostBpf = max(status.GetRecordsLostBpf(), c.lost.GetRecordsLostBpf())
	return status
}

// controllers are all controllers that were ever heard of. They belong to the loop.
type controllers struct {
	byID map[string]*controller
	made func(*controller) // is told of each new one
}

// get returns the controller of that id, made when it is new: the event channel may be
// faster than the management channel.
func (cs *controllers) get(id string) *controller {
	c := cs.byID[id]
	if c == nil {
		c = &controller{
			id: id, local: map[uint64]uint64{}, lost: &attunev1.ControllerStatus{},
			points: map[uint32]*attunev1.PointWant{}, tables: map[uint64][]uint32{},
		}
		cs.byID[id] = c
		cs.made(c)
	}
	return c
}

// arrive returns the controller that says hello. One that was given up is another one when it
// comes back: its processes count as ended, and under their handles others begin. What it says
// of itself goes on.
func (cs *controllers) arrive(id string) *controller {
	before := cs.byID[id]
	if before == nil || !before.over {
		return cs.get(id)
	}
	delete(cs.byID, id)
	c := cs.get(id)
	c.status, c.lost = before.status, before.lost
	return c
}
