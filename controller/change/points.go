// SPDX-License-Identifier: Apache-2.0

package change

import (
	"fmt"
	"math"
	"time"

	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/controller/probe"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// PointsOptions of Points. All are needed.
type PointsOptions struct {
	// Members are where points are placed.
	Members *member.Set
	// Placer returns who places points, once it is there.
	Placer func() *probe.Placer
	// Hold adds a point that is to be in place before main of new processes. Free is
	// called when one is gone.
	Hold func(add func())
	Free func()
	// Need is told of each point that comes, for processes without DMLib.
	Need func(*attunev1.MeasurePoint)
	// Deliver is told how many more points deliver records, fewer if negative.
	Deliver func(more int32)
	// Answer takes a message to the Analyzer.
	Answer func(*attunev1.ManageRequest)
}

// Points are the measure points that the Analyzer asked for.
type Points struct {
	options PointsOptions
	asked   asked
}

// NewPoints returns Points, of which there are none.
func NewPoints(o PointsOptions) *Points {
	p := &Points{options: o}
	o.Members.OnLeave(func(m *member.Member) { p.asked.forgets(m.Handle()) })
	return p
}

// Lost notes that the connection was lost.
func (p *Points) Lost(now time.Time) { p.asked.loses(now) }

// Found notes that there is a connection.
func (p *Points) Found() { p.asked.finds() }

// Abandoned says whether there has been no connection for longer than patience.
func (p *Points) Abandoned(now time.Time, patience time.Duration) bool {
	return p.asked.abandoned(now, patience)
}

// DropOutlived removes points that nobody has asked for since the last connection
// was lost.
func (p *Points) DropOutlived() {
	for _, index := range p.asked.outlived() {
		p.Remove(index)
	}
}

// Add places a point, unless it is in place.
func (p *Points) Add(add *attunev1.AddPoint) {
	if add.GetPoint() == 0 || add.GetPoint() > math.MaxUint16 {
		p.Status(&attunev1.PointStatus{
			Point: add.GetPoint(), State: attunev1.PointState_POINT_STATE_REFUSED,
			Reason: fmt.Sprintf("point index %d is outside 1..%d", add.GetPoint(), math.MaxUint16),
		})
		return
	}
	index := uint16(add.GetPoint())
	states, known, other := p.asked.asks(index, add.GetSpec())
	if known {
		for _, status := range states {
			p.tell(status)
		}
		return
	}
	if other {
		p.takeOut(index)
	}
	switch add.GetSpec().GetDelivery() {
	case attunev1.Delivery_DELIVERY_EVENT, attunev1.Delivery_DELIVERY_SAMPLED:
		p.options.Deliver(1)
	}
	if len(add.GetSpec().GetProcesses()) == 0 {
		p.options.Hold(func() { p.options.Placer().Add(index, add.GetSpec()) })
	} else {
		p.options.Placer().Add(index, add.GetSpec())
	}
	p.options.Need(add.GetSpec())
	p.options.Deliver(0) // the pace depends on the points
}

// Remove takes a point out.
func (p *Points) Remove(index uint16) {
	p.asked.drops(index)
	p.takeOut(index)
	p.options.Free()
}

func (p *Points) takeOut(index uint16) {
	spec := p.options.Placer().Remove(index)
	switch spec.GetDelivery() {
	case attunev1.Delivery_DELIVERY_EVENT, attunev1.Delivery_DELIVERY_SAMPLED:
		p.options.Deliver(-1)
	}
}

// Status keeps what became of a point, and tells it.
func (p *Points) Status(status *attunev1.PointStatus) {
	p.asked.tells(status)
	p.tell(status)
}

func (p *Points) tell(status *attunev1.PointStatus) {
	p.options.Answer(&attunev1.ManageRequest{Message: &attunev1.ManageRequest_Point{Point: status}})
}
