// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/analyzer/report"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func TestEnding(t *testing.T) {
	code := func(n int32) *int32 { return &n }
	exited := func(n int) report.Exit { return report.Exit{Code: &n} }
	for _, tt := range []struct {
		name     string
		statuses []int32 // of processes that were seen
		left     bool    // the last of them may go on, out of reach
		end      *attunev1.RecordedExit
		want     report.Exit
		finished bool
		rows     int
		remark   string
	}{
		{name: "goes on", statuses: []int32{0}, rows: 1},
		{name: "said", statuses: []int32{0}, end: &attunev1.RecordedExit{Code: code(3)}, want: exited(3), finished: true, rows: 1},
		{name: "killed", end: &attunev1.RecordedExit{Signal: "SIGKILL"}, want: report.Exit{Signal: "SIGKILL"}, finished: true},
		{
			name: "as its processes did, of which one did not end well", statuses: []int32{0, 2 << 8, 1 << 8},
			end: &attunev1.RecordedExit{}, want: exited(2), finished: true, rows: 3,
		},
		{name: "as its processes did, well", statuses: []int32{0, 0}, end: &attunev1.RecordedExit{}, want: exited(0), finished: true, rows: 2},
		{
			name: "ended by somebody", end: &attunev1.RecordedExit{Reason: "its end was asked for"}, statuses: []int32{2 << 8}, rows: 1,
			remark: "The session was ended: its end was asked for.",
		},
		{name: "one is out of reach", statuses: []int32{2 << 8, 0}, left: true, end: &attunev1.RecordedExit{}, rows: 2},
		{
			name: "one is out of reach, but how it ended was said", statuses: []int32{0}, left: true,
			end: &attunev1.RecordedExit{Code: code(0)}, want: exited(0), finished: true, rows: 1,
		},
		{
			name: "one was seen and one was not", statuses: []int32{0}, want: exited(0), finished: true, rows: 2,
			end: &attunev1.RecordedExit{Code: code(0), Unseen: []*attunev1.RecordedUnseen{{Pid: 100}, {Pid: 4711, Code: code(1)}}},
		},
		{name: "some go on", end: &attunev1.RecordedExit{GoingOn: true, Unseen: []*attunev1.RecordedUnseen{{Pid: 4711}}}, rows: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := NewAccount()
			for i, status := range tt.statuses {
				handle := uint64(i + 1)
				a.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Process{Process: &attunev1.RecordedProcess{
					Process: &attunev1.Process{Handle: handle, Identity: &attunev1.ProcessIdentity{Pid: int32(100 + i)}},
				}}})
				gone := &attunev1.RecordedProcessEnd{Ended: &attunev1.ProcessEnded{Process: handle, WaitStatus: &status}}
				if tt.left && i == len(tt.statuses)-1 {
					gone.GoingOn, gone.Ended.WaitStatus = true, nil
				}
				a.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_ProcessGone{ProcessGone: gone}})
			}
			if tt.end != nil {
				a.Take(&attunev1.RecordingFrame{AtNanos: 1e9, What: &attunev1.RecordingFrame_Exit{Exit: tt.end}})
			}
			r := a.Report(2 * time.Second)
			if diff := cmp.Diff(tt.want, r.Exit); diff != "" || r.Finished != tt.finished || len(r.Processes) != tt.rows {
				t.Errorf("finished %v, %d processes, exit (-want +got):\n%s", r.Finished, len(r.Processes), diff)
			}
			if remark := append(r.Remarks, report.Remark{})[0].Text; remark != tt.remark {
				t.Errorf("remark %q, want %q", remark, tt.remark)
			}
		})
	}
}

// TestOutOfReach: a process whose controller has gone has not ended, as far as is known,
// until somebody tells of its end or another controller has found it.
func TestOutOfReach(t *testing.T) {
	id := &attunev1.ProcessIdentity{Pid: 100, StartTicks: 7}
	found := func(handle uint64) *attunev1.RecordingFrame {
		return &attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Process{Process: &attunev1.RecordedProcess{
			Process: &attunev1.Process{Handle: handle, Host: "n1", Identity: id},
		}}}
	}
	gone := func(handle uint64, goingOn bool) *attunev1.RecordingFrame {
		return &attunev1.RecordingFrame{What: &attunev1.RecordingFrame_ProcessGone{ProcessGone: &attunev1.RecordedProcessEnd{
			Ended: &attunev1.ProcessEnded{Process: handle}, EndedNanos: 2e9, GoingOn: goingOn,
		}}}
	}
	for _, tt := range []struct {
		name  string
		then  []*attunev1.RecordingFrame
		ended []bool   // each image
		lines []string // of the timeline
	}{
		{"for good", nil, []bool{false}, []string{"process_started"}},
		{"its end is told", []*attunev1.RecordingFrame{gone(1, false)}, []bool{true}, []string{"process_started", "process_ended"}},
		{
			"found again", []*attunev1.RecordingFrame{found(2), gone(2, false)}, []bool{true, true},
			[]string{"process_started", "process_started", "process_ended"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := NewAccount()
			var lines []string
			timeline := NewTimeline(a, func(e report.Entry) { lines = append(lines, e.Kind) })
			for _, f := range append([]*attunev1.RecordingFrame{found(1), gone(1, true)}, tt.then...) {
				a.Take(f)
				timeline.Take(f)
			}
			if running := a.Running(); len(running) > 0 {
				t.Errorf("the session still has %v", running)
			}
			var ended []bool
			for _, p := range a.Report(3 * time.Second).Processes {
				ended = append(ended, p.EndedSeconds != nil)
			}
			if diff := cmp.Diff(tt.ended, ended); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.lines, lines); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The time of the program is the program's, however long the end of the session takes.
func TestTimeOfTheProgram(t *testing.T) {
	start := time.Unix(1000, 0)
	a := NewAccount()
	a.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Header{Header: &attunev1.RecordingHeader{StartUnixNano: start.UnixNano()}}})
	a.Take(&attunev1.RecordingFrame{AtNanos: 12e9, What: &attunev1.RecordingFrame_Exit{Exit: &attunev1.RecordedExit{
		EndedUnixNano: start.Add(7 * time.Second).UnixNano(), Unseen: []*attunev1.RecordedUnseen{{Pid: 4711}},
	}}})
	r := a.Report(12 * time.Second)
	if r.WallSeconds != 7 || len(r.Processes) != 1 || *r.Processes[0].EndedSeconds != 7 {
		t.Errorf("ran %v s, processes %+v; want 7 s", r.WallSeconds, r.Processes)
	}
}
