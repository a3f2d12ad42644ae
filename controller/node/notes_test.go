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
	if _, troubles := n.current(); len(troubles) != 1 || !strings.HasSuffix(troubles[0].GetText(), " the clock was set") {
		t.Errorf("troubles %q", troubles)
	}
}

// TestPartsOfAUser: who is no root is told of the node what is theirs, and what is wrong
// with the node itself.
func TestPartsOfAUser(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.notes.trouble("the disk is full")
		b.notes.troubleOf(1000, "ann's job is given up")
		b.notes.troubleOf(0, "root's session is given up")
		for uid, want := range map[uint32]int{0: 3, 1000: 2, 1001: 1} {
			if told := b.recorder.recordFor(uid).GetTroubles(); len(told) != want || !strings.HasSuffix(told[0].GetText(), " the disk is full") {
				t.Errorf("user %d is told %v", uid, told)
			}
		}
	})
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
