// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"github.com/attune-hpc/attune/analyzer/report"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// controller is one controller.
type controller struct {
	present bool // connected, or awaited
	status  *attunev1.ControllerStatus
}

// controllers are those of the session by id.
type controllers map[string]*controller

// of returns one, which is known from then on.
func (cs controllers) of(id string) *controller {
	c := cs[id]
	if c == nil {
		c = &controller{}
		cs[id] = c
	}
	return c
}

// state takes over whether one is there.
func (cs controllers) state(of *attunev1.RecordedController) {
	if st := of.GetState(); st != attunev1.ControllerState_CONTROLLER_STATE_UNSPECIFIED {
		cs.of(of.GetController()).present = st != attunev1.ControllerState_CONTROLLER_STATE_GONE
	}
}

// present counts those that are connected or awaited.
func (cs controllers) present() (n int) {
	for _, c := range cs {
		if c.present {
			n++
		}
	}
	return n
}

// losses adds what they have lost.
func (cs controllers) losses(lost *report.Lost) {
	for _, c := range cs {
		lost.Ring += c.status.GetRecordsLostRing()
		lost.Slot += c.status.GetRecordsLostSlot()
		lost.Queue += c.status.GetRecordsLostQueue()
		lost.Away += c.status.GetHitsLost() + c.status.GetSamplesLost() + c.status.GetEndsLost()
		lost.BPF += c.status.GetRecordsLostBpf()
	}
}

// overhead adds up what they say of themselves.
func (cs controllers) overhead() (o report.Overhead) {
	for _, c := range cs {
		o.ControllerCPUSeconds += c.status.GetCpuSeconds()
		o.MemoryPeakBytes = max(o.MemoryPeakBytes, c.status.GetPeakResidentBytes())
		o.ProbeSeconds += c.status.GetProbeSeconds()
	}
	return o
}
