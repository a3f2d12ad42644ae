// SPDX-License-Identifier: Apache-2.0

package live

import (
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/analyzer/report"
)

func TestLines(t *testing.T) {
	full := report.Snapshot{
		Seconds: 3.4, Mode: "tune",
		Processes:  2,
		Tunlets:    []report.TunletState{{Name: "a", State: "asleep"}, {Name: "malloc", State: "running"}, {Name: "z", State: "asleep"}},
		Points:     []report.PointRate{{Target: "malloc", Mechanism: "hook", PerSecond: 123456}},
		Objectives: []report.ObjectiveValue{{Tunlet: "malloc", Name: "rate", Unit: "1/s", Scope: "pid 1", Value: 48}},
		Proposals: []report.ProposalState{
			{Tunlet: "malloc", State: "kept", Knobs: []string{"top_pad"}, Processes: 1, Gain: 12.34, Reason: "faster"},
		},
		Events: report.Events{Lost: report.Lost{Ring: 7}},
	}
	tests := []struct {
		name     string
		snapshot report.Snapshot
		want     []string
	}{
		{"nothing yet", report.Snapshot{Mode: "observe"}, []string{
			"── attune observe, 0 s, 0 processes ──", "measures  /proc only: nothing calls for more yet", "", "", "", "",
		}},
		{"everything", full, []string{
			"── attune tune, 3 s, 2 processes, malloc running, 2 tunlets asleep, 7 events lost ──",
			"measures  malloc 123 k/s (hook)",
			"malloc    █ 48 1/s of pid 1",
			"malloc    top_pad in 1 process: kept, 12.3x (faster)",
			"", "",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var v view
			if diff := cmp.Diff(tt.want, v.lines(tt.snapshot, 100)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCurveRemembersItsPast(t *testing.T) {
	var v view
	var lines []string
	for i := range past + 8 {
		lines = v.lines(report.Snapshot{Objectives: []report.ObjectiveValue{{Name: "x", Value: float64(i)}}}, 200)
	}
	curve := strings.Fields(lines[2])[0]
	if got := utf8.RuneCountInString(curve); got != past || !strings.HasSuffix(curve, "█") {
		t.Errorf("curve %q of %d values", curve, got)
	}
}

// TestCurvesEnd: of what has no value any more nothing is remembered.
func TestCurvesEnd(t *testing.T) {
	var v view
	value := func(scope string) report.Snapshot {
		return report.Snapshot{Objectives: []report.ObjectiveValue{{Name: "x", Scope: scope, Value: 1}}}
	}
	for i := range 100 {
		v.lines(value(strconv.Itoa(i)), 200)
	}
	if len(v.curves) != 1 || len(v.curves["\x00x\x0099"]) != 1 {
		t.Errorf("curves %v", v.curves)
	}
}

func TestTooMuchIsCut(t *testing.T) {
	s := report.Snapshot{Mode: "tune"}
	for range 30 {
		s.Objectives = append(s.Objectives, report.ObjectiveValue{Scope: "\x1b[2J" + strings.Repeat("long ", 40)})
		s.Proposals = append(s.Proposals, report.ProposalState{Reason: strings.Repeat("ä", 300)})
	}
	var v view
	lines := v.lines(s, 80)
	if len(lines) != height {
		t.Errorf("%d lines", len(lines))
	}
	for _, line := range lines {
		if utf8.RuneCountInString(line) > 80 || strings.ContainsRune(line, '\x1b') {
			t.Errorf("line %q", line)
		}
	}
}

func TestNumber(t *testing.T) {
	tests := []struct {
		value float64
		want  string
	}{{0, "0"}, {3.14159, "3.14"}, {999, "999"}, {1000, "1 k"}, {1.5e6, "1.5 M"}, {-2e9, "-2 G"}}
	for _, tt := range tests {
		if got := number(tt.value); got != tt.want {
			t.Errorf("number(%v) = %q, want %q", tt.value, got, tt.want)
		}
	}
}
