// SPDX-License-Identifier: Apache-2.0

package probeview

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/attune-hpc/attune/internal/hits"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Placed says whether some point was in place at any time.
func (p *Printer) Placed() bool { return p.placed }

// stateText is what became of a point, in a sentence, with what can be done about it.
func stateText(st *attunev1.PointStatus) string {
	text := hits.StateText(st)
	if st.GetDegradedReason() != "" && (st.GetState() == attunev1.PointState_POINT_STATE_OFF || hits.Degraded(st)) {
		text += "; --budget PERCENT lets points take more, 100 sets no limit"
	}
	return text
}

// mostGone bounds the points of ended processes that are known at the end: a watch that follows
// children may see any number of them.
const mostGone = 1000

// Unhit says of points that were in place and never hit why that may be, for people.
func (p *Printer) Unhit() {
	for _, at := range p.sorted(p.gone...) {
		st := at.probe.GetStatus()
		unhit := !at.hit && !p.options.JSON && st.GetState() == attunev1.PointState_POINT_STATE_PLACED
		if why := hits.Unseen(st.GetMechanism(), at.target); why != "" && unhit {
			fmt.Fprintf(p.options.Notes, "attune: %d %s: not hit: %s\n", at.probe.GetPid(), at.probe.GetText(), why)
		}
	}
}

// caller is the address that a call returns to, with the name of what is there.
func (p *Printer) caller(at *point, address uint64) string {
	text := "0x" + strconv.FormatUint(address, 16)
	if p.options.Caller != nil {
		text = strings.TrimSpace(p.options.Caller(at.probe.GetPid(), address) + " " + text)
	}
	return text
}

// shown is a key for people.
func (p *Printer) shown(at *point, k hits.Key) string {
	capture := at.read.Spec.GetKeyCapture()
	if k.Has && !p.options.JSON && hits.Caller(at.read.Spec, capture) {
		return p.caller(at, k.Value)
	}
	return k.Show(attunev1.SignedCapture(at.read.Spec, capture))
}
