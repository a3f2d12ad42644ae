// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"slices"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// endPatience is how long the end of the application waits for tunlets to hear of it,
// which have nothing to do with that any more: as long as for any other call, since on a
// crowded machine one that is well may need a second.
const endPatience = 5 * time.Second

// end tells of the end of the application, once.
func (ts *tunlets) end() {
	if ts.ended {
		return
	}
	ts.ended = true
	ts.teller.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Finish{Finish: &attunev1.RecordedFinish{}}})
	for _, t := range ts.running {
		t.applicationEnded(ts.clock.unixNow())
	}
}

// untold lists the tunlets that have not answered yet that the application has ended, in
// the order of their names.
func (ts *tunlets) untold() (names []string) {
	for name, t := range ts.running {
		if !t.toldEnd {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// leaveUntold says which tunlets are not waited for, and whether there are any.
func (ts *tunlets) leaveUntold() bool {
	for _, name := range ts.untold() {
		ts.teller.emitRemark(ownName, 0, fmt.Sprintf("tunlet %s did not answer within %v at the end, and was not waited for", name, endPatience))
	}
	return len(ts.untold()) > 0
}
