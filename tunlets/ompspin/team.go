// SPDX-License-Identifier: Apache-2.0

package ompspin

import (
	"github.com/attune-hpc/attune/tunlets/kit/openmp"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// team follows one process with libgomp.
type team struct {
	openmp.Team

	regions regions // since counting began
}

// load is what the team did over [openmp.Span]; false before it is known.
func (t *team) load() (load, bool) {
	span, ok := t.Latest()
	if !ok {
		return load{}, false
	}
	return loadOf(t.Window, span)
}

// watch asks for the measure points.
func (t *team) watch(h *sdk.Host) {
	t.regions = regions{}
	t.Watch(h, t.Runtime.Regions(t.Handle), t.Runtime.Durations(t.Handle))
}

// Rest wants no samples before the team waits for a CPU, unless it does already,
// or is looked after since it was changed.
func (t *team) Rest(h *sdk.Host) {
	switch {
	case t.Proposal != "":
	case t.GaveUp:
		h.Want(t.Handle, sdk.NoSamples())
	default:
		l, known := t.load()
		t.Doze(h, l.wait, known)
	}
}
