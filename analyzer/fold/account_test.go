// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestCommand: a session is named by the program that its first process executes, which
// was a fork of the batch system's daemon when it was handed over.
func TestCommand(t *testing.T) {
	image := func(handle uint64, pid int32, words ...string) *attunev1.Process {
		return &attunev1.Process{Handle: handle, CommandLine: words, Identity: &attunev1.ProcessIdentity{Pid: pid, StartTicks: 5}}
	}
	for _, tt := range []struct {
		name, want string
		given      []string
		images     []*attunev1.Process
	}{
		{name: "the only one", want: "./a 1", images: []*attunev1.Process{image(1, 100, "./a", "1")}},
		{name: "handed over", want: "/bin/true", images: []*attunev1.Process{image(1, 100, "slurmstepd: [802.0]"), image(2, 100, "/bin/true")}},
		{name: "told late", want: "/bin/true", images: []*attunev1.Process{image(1, 100), image(1, 100, "/bin/true")}},
		{name: "ended before it was looked at", want: "./a", images: []*attunev1.Process{image(1, 100, "./a"), image(2, 100)}},
		{name: "starts another", want: "./a", images: []*attunev1.Process{image(1, 100, "./a"), image(2, 101, "./b")}},
		{name: "the owner's words", want: "sh run", given: []string{"sh", "run"}, images: []*attunev1.Process{image(1, 100, "./a")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := NewAccount()
			a.header.Command = tt.given
			for _, p := range tt.images {
				a.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Process{Process: &attunev1.RecordedProcess{Process: p}}})
			}
			if got := strings.Join(a.Summary().Command, " "); got != tt.want {
				t.Errorf("command %q, want %q", got, tt.want)
			}
		})
	}
}

// TestManyRemarks: of more remarks than there is place for the first and the latest stay, and
// the report says how many are left out. Why the session was ended is the latest.
func TestManyRemarks(t *testing.T) {
	a := NewAccount()
	for n := range 300 {
		a.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Remark{Remark: &attunev1.RecordedRemark{Text: fmt.Sprint(n)}}})
	}
	a.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Exit{Exit: &attunev1.RecordedExit{Reason: "asked"}}})
	var got []string
	for _, m := range a.Report(0).Remarks {
		got = append(got, m.Text)
	}
	var want []string
	for n := range 300 {
		if n < maxRemarks/2 || n > 200 {
			want = append(want, fmt.Sprint(n))
		}
	}
	want = append(want, "The session was ended: asked.", "101 remarks after the first 100 are not listed")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
}
