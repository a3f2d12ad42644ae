// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"slices"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// TestControllerIsLost cuts the line between the two while a change is in force.
// The Analyzer says that the program is out of reach, and not what it cannot know;
// the controller gives the program its own value back; both end in order.
func TestControllerIsLost(t *testing.T) {
	n := start(t)
	p := n.program(t)
	n.proposal(t, "judging", "kept")
	n.line.cut()
	n.until(t, "the process to be out of reach", func(s report.Snapshot) bool { return s.Processes == 0 })
	patience.Until(t, "the program's own value", func() bool { return pace(t, p) == slow })
	r := n.finish(t)
	n.stopController(t)
	if err := p.End(t); err == nil || err.Error() != "exit status 7" {
		t.Errorf("the program ends with %v, want its own status 7", err)
	}
	told := func(m report.Remark) bool {
		return m.From == "attune" && strings.Contains(m.Text, "the connection to controller") && strings.HasSuffix(m.Text, ": 1")
	}
	if !slices.ContainsFunc(r.Remarks, told) {
		t.Errorf("remarks %+v, want one that a controller is lost with one process", r.Remarks)
	}
	if len(r.Changes) != 1 || r.Changes[0].UndoneSeconds != nil || !slices.Contains([]string{report.VerdictUnjudged, report.VerdictKept}, r.Changes[0].Verdict) {
		t.Errorf("changes %+v, want one of which is not known that it was undone", r.Changes)
	}
}
