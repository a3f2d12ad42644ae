// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestTroubleThatIsOver: what is no more is no trouble, and the others stay.
func TestTroubleThatIsOver(t *testing.T) {
	n := &notes{changed: func() {}}
	n.trouble("the clock was set")
	n.trouble(switchedOff + "a new kernel is on trial")
	n.over(switchedOff)
	if _, troubles := n.current(); len(troubles) != 1 || !strings.HasSuffix(troubles[0], " the clock was set") {
		t.Errorf("troubles %q", troubles)
	}
}

// TestTextsOfProcessesLeftAlone: the name of a program, which need not be UTF-8, does not keep
// the registry from what a node has.
func TestTextsOfProcessesLeftAlone(t *testing.T) {
	r := recorder{sessions: newSessions(nil, nil, nil), notes: &notes{changed: func() {}}}
	r.notes.mismatch(&attunev1.Mismatch{Pid: int32(os.Getpid()), Executable: "caf\xe9"})
	response := r.locate(new(attunev1.LocateRequest))
	if _, err := proto.Marshal(response); err != nil || len(response.GetMismatches()) != 1 || response.GetMismatches()[0].GetExecutable() != "caf?" {
		t.Errorf("%v, %v", response, err)
	}
}
