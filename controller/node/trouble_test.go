// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func newHealth() (h *health, told func() []string) {
	h = &health{notes: &notes{changed: func() {}}, log: slog.New(slog.DiscardHandler)}
	return h, func() (told []string) {
		_, troubles := h.notes.current()
		for _, t := range troubles {
			told = append(told, t.GetText())
		}
		return told
	}
}

// A clock that drifts is adjusted and tells nothing; one that is set is told
// of, in either direction, once.
func TestClockThatIsSet(t *testing.T) {
	h, told := newHealth()
	h.offset = time.Hour
	for _, step := range []struct {
		by   time.Duration
		told string // in the latest trouble; empty: nothing new
	}{
		{500 * time.Millisecond, ""},
		{-clockJump, ""},
		{time.Hour, "set by 1h0m0s"},
		{0, ""},
		{-2 * time.Second, "set by -2s"},
	} {
		before := len(told())
		h.clock(h.offset + step.by)
		now := told()
		if step.told == "" && len(now) != before {
			t.Errorf("a step of %v is told: %q", step.by, now[before:])
		}
		if step.told != "" && (len(now) != before+1 || !strings.Contains(now[before], step.told)) {
			t.Errorf("a step of %v: %q, want %q", step.by, now[before:], step.told)
		}
	}
}

// A full disk is told of when it begins, not for as long as it lasts.
func TestFullDiskIsToldOnce(t *testing.T) {
	h, told := newHealth()
	full := errors.New("no space left on device")
	for _, err := range []error{nil, full, full, nil, nil, full} {
		h.disk(err)
	}
	if got := told(); len(got) != 2 || !strings.Contains(got[0], full.Error()) {
		t.Errorf("told %q, want the disk to be full twice", got)
	}
}

func TestWritable(t *testing.T) {
	dir := t.TempDir()
	if err := writable(dir); err != nil {
		t.Error(err)
	}
	if err := writable(dir + "/missing"); err == nil {
		t.Error("a directory that is not there can be written to")
	}
}

func TestNotesAreBounded(t *testing.T) {
	h, told := newHealth()
	for range 3 * maxTroubles {
		h.notes.trouble("again")
	}
	h.notes.trouble("last")
	if got := told(); len(got) != maxTroubles || !strings.HasSuffix(got[len(got)-1], "last") {
		t.Errorf("%d troubles, the latest %q", len(got), got[len(got)-1])
	}
}

// TestPolicyIsTold: what is wrong with a policy is announced when that is known, and not
// with the next record that has another reason.
func TestPolicyIsTold(t *testing.T) {
	inBubble(t, func(b *bench) {
		for len(b.recorder.touched) > 0 {
			<-b.recorder.touched
		}
		b.policy = b.policy.Kept(errors.New("a mistake"))
		b.PolicyChanged()
		select {
		case <-b.recorder.touched:
		default:
			t.Error("nobody is told")
		}
		if troubles := b.recorder.record().GetTroubles(); len(troubles) != 1 || !strings.Contains(troubles[0].GetText(), "a mistake") {
			t.Errorf("troubles %q", troubles)
		}
	})
}

// TestMismatchesOfAUser: however many processes of one user are left alone, another's is
// told.
func TestMismatchesOfAUser(t *testing.T) {
	n := &notes{changed: func() {}}
	own := int32(os.Getpid()) // those that have ended are not told
	n.mismatch(&attunev1.Mismatch{Pid: own, Uid: 4712})
	for range 3 * maxMismatches {
		n.mismatch(&attunev1.Mismatch{Pid: own, Uid: 4711})
	}
	all, _ := n.current()
	if len(all) != maxMismatches || all[0].GetUid() != 4712 {
		t.Errorf("%d are told, the first one of %d", len(all), all[0].GetUid())
	}
}

// TestTroublesOfAUser: however much goes wrong with what one user has here, what the node and
// others should know stays, and no text is long.
func TestTroublesOfAUser(t *testing.T) {
	h, told := newHealth()
	h.notes.trouble("the disk is full")
	h.notes.troubleOf(4712, "ann's")
	for range 3 * maxTroubles {
		h.notes.troubleOf(4711, strings.Repeat("€", maxTrouble))
	}
	got := told()
	if len(got) != maxTroubles || !strings.HasSuffix(got[0], " the disk is full") || !strings.HasSuffix(got[1], " ann's") {
		t.Errorf("told: %.200q", got)
	}
	if last := got[len(got)-1]; len(last) > maxTrouble+64 || !utf8.ValidString(last) {
		t.Errorf("%d bytes: %q", len(last), last)
	}
}
