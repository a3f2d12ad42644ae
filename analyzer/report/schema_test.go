// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	googleschema "github.com/google/jsonschema-go/jsonschema"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/attune-hpc/attune/internal/testing/golden"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const schemaFile = "../../docs/reference/report.schema.json"

// TestSchemaFile keeps the published schema equal to the types.
func TestSchemaFile(t *testing.T) {
	s, err := googleschema.For[Report](&googleschema.ForOptions{
		TypeSchemas: map[reflect.Type]*googleschema.Schema{
			reflect.TypeFor[Value](): {Types: []string{"null", "boolean", "number", "string"}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Properties["mode"].Enum = []any{"observe", "advise", "tune"}
	change := s.Properties["changes"].Items
	change.Properties["verdict"].Enum = []any{VerdictKept, VerdictUndone, VerdictRefused, VerdictFailed, VerdictUnjudged}
	change.Properties["prediction"].Enum = []any{"holds", "too_high", "too_low", "wrong"}
	golden.Schema(t, schemaFile, s, "report-1", "Attune report", "What one session of Attune saw, changed, gained and lost.")
}

// validate checks a JSON document against the published schema.
func validate(t *testing.T, doc []byte) error {
	t.Helper()
	s, err := jsonschema.NewCompiler().Compile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(v)
}

func ptr[T any](v T) *T { return &v }

// example returns a report with every field set.
func example() *Report {
	started := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	objective := &Objective{
		Name: "allocations_per_second", Unit: "1/s", Scope: "process 1",
		Before: Estimate{Median: 49, Low: ptr(48.1), High: ptr(49.9), Samples: 10},
		After:  Estimate{Median: 1091, Samples: 5},
		Gain:   ptr(22.265), P: ptr(0.00067),
	}
	return &Report{
		Schema: SchemaID, Version: "0.1.0", Command: []string{"/usr/bin/python3", "storm.py"}, JobID: "j1", Mode: "tune",
		StartedAt: started, WallSeconds: 12.34, Finished: true, Exit: Exit{Code: ptr(0)},
		Processes: []Process{
			{PID: 4711, ParentPID: 4700, Host: "n1", Exe: "/usr/bin/python3.11", SHA256: "00ff", Rank: ptr(0),
				StartedSeconds: 0.01, EndedSeconds: ptr(12.3), Exit: &Exit{Code: ptr(0)}, Instrumented: true,
				Mechanisms: []string{"dmlib", "proc"}, NotInstrumented: "uprobe: needs CAP_BPF"},
			{PID: 4712, Exe: "/usr/bin/busybox", Mechanisms: []string{"proc"}, NotInstrumented: "static binary", ReplacedByExec: true},
		},
		Tunlets: []Tunlet{
			{Name: "malloc", Version: "0.1.0", Summary: "memory", Path: "/x", SHA256: "aa", State: "running", PeakRSSBytes: 2e7},
			{Name: "shaky", State: "stopped", Reason: "killed", Restarts: 2},
			{Name: "broken", State: "quarantined", Reason: "exited 4 times: exit status 2", Restarts: 3},
		},
		Points: []Point{{Tunlet: "malloc", ID: "brk", Target: "hook malloc", State: "placed", Mechanism: "hook", Processes: 1, Hits: 99, CostNanos: 8}},
		Changes: []Change{
			{ID: "c1", Tunlet: "malloc", Proposal: "p1", Advice: "85ddc0126668", Process: 4711, Rank: ptr(0),
				Knob: "glibc.malloc.mmap_threshold", Action: "set glibc.malloc.mmap_threshold=33554432",
				Old: ValueOf(integer(131072)), New: ValueOf(integer(33554432)), SafePoint: "malloc hook, thread 4711",
				ProposedAt: 0.35, AppliedAt: ptr(started.Add(420 * time.Millisecond)), AppliedSeconds: ptr(0.42), StoppedSeconds: 0.0001,
				Objective: objective, PredictedGain: 20, Prediction: "holds", Why: "807000 minor faults/s", Verdict: VerdictKept, Reason: "gain: 22.3x"},
			{ID: "c2", Tunlet: "malloc", Proposal: "p2", Advice: "aa", Process: 4711, Knob: "glibc.malloc.arena_max",
				Action: "set glibc.malloc.arena_max=1", New: ValueOf(integer(1)), SafePoint: attunev1.SafePointNow, ProposedAt: 3, AppliedSeconds: ptr(3.1), UndoneSeconds: ptr(4.0),
				Objective: &Objective{Name: "allocations_per_second", Unit: "1/s", Scope: "process 1", LowerIsBetter: false,
					Before: Estimate{Median: 100, Samples: 5}, After: Estimate{Median: 80, Samples: 5}, Gain: ptr(0.8), P: ptr(0.008), Turns: 8},
				PredictedGain: 1.5, Prediction: "wrong",
				Verdict: VerdictUndone, Reason: "measured loss: 0.8x"},
			{ID: "c3", Tunlet: "mpi-progress", Proposal: "p1", Advice: "bb", Process: 4711, Knob: "openmpi.yield_when_idle",
				Action: "write libopen-pal.so*:opal_progress_yield_when_idle=true", New: ValueOf(truth(true)), Verdict: VerdictFailed, Reason: "symbol not found"},
			{ID: "c4", Tunlet: "omp-threads", Proposal: "p1", Advice: "cc", Process: 4711, Knob: "omp.num_threads", Action: "set omp.num_threads=2",
				New: ValueOf(integer(2)), PredictedGain: 2.6, Why: "4 threads share 1 CPU", Verdict: VerdictRefused, Reason: "refused: omp.num_threads: it divides work itself"},
		},
		Advice: []Advice{{ID: "85ddc0126668", Tunlet: "malloc", Actions: []string{"set a=1"}, Processes: []int{4711}, Why: "because",
			PredictedGain: 4, Confidence: 0.8, Seconds: 1}},
		Refused: []Refused{{Tunlet: "malloc", Proposal: "p9", Actions: []string{"set b=1"}, Reason: "the knob rests", Times: 12, Seconds: 5}},
		Events:  Events{Received: 1200, Records: 1000, Aggregates: 100, Samples: 100, Hits: 5, Lost: Lost{Ring: 1, Slot: 2, Queue: 3, BPF: 4, Analyzer: 5, Tunlet: 6, Away: 7}},
		Overhead: Overhead{CPUSeconds: 0.2, ControllerCPUSeconds: 0.12, TunletCPUSeconds: 0.08, ProgramCPUSeconds: 11.9,
			MemoryPeakBytes: 31e6, TunletPeakBytes: 2e7, TunletMemoryBytes: 3e7, ProbeSeconds: 0.01},
		Remarks: []Remark{{Seconds: 1, From: "malloc", Process: 4711, Text: "memory use will grow by 64 MB"}},
	}
}

func integer(n int64) *attunev1.Value {
	return &attunev1.Value{Kind: &attunev1.Value_Integer{Integer: n}}
}
func truth(b bool) *attunev1.Value { return &attunev1.Value{Kind: &attunev1.Value_Truth{Truth: b}} }

// TestReportFitsSchema validates a full report, and reports that must not pass.
func TestReportFitsSchema(t *testing.T) {
	tests := []struct {
		name    string
		change  func(*Report)
		wantErr string
	}{
		{name: "full", change: func(*Report) {}},
		{name: "killed", change: func(r *Report) { r.Exit = Exit{Signal: "SIGKILL"} }},
		{name: "unknown verdict", change: func(r *Report) { r.Changes[0].Verdict = "maybe" }, wantErr: "verdict"},
		{name: "unknown mode", change: func(r *Report) { r.Mode = "guess" }, wantErr: "mode"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := example()
			tt.change(r)
			data, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			err = validate(t, data)
			if tt.wantErr == "" && err != nil {
				t.Error(err)
			}
			if tt.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tt.wantErr)) {
				t.Errorf("error %v, want one about %q", err, tt.wantErr)
			}
		})
	}
}

func TestValueJSON(t *testing.T) {
	tests := []struct {
		name string
		in   *attunev1.Value
		want string
	}{
		{name: "unknown", in: nil, want: "null"},
		{name: "integer", in: integer(-1), want: "-1"},
		{name: "unsigned", in: &attunev1.Value{Kind: &attunev1.Value_Unsigned{Unsigned: math.MaxUint64}}, want: "18446744073709551615"},
		{name: "real", in: &attunev1.Value{Kind: &attunev1.Value_Real{Real: 0.5}}, want: "0.5"},
		{name: "not a number", in: &attunev1.Value{Kind: &attunev1.Value_Real{Real: math.NaN()}}, want: `"NaN"`},
		{name: "text", in: &attunev1.Value{Kind: &attunev1.Value_Text{Text: "a\"b"}}, want: `"a\"b"`},
		{name: "truth", in: truth(false), want: "false"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := ValueOf(tt.in)
			got, err := json.Marshal(v)
			if err != nil || string(got) != tt.want {
				t.Fatalf("got %s, %v; want %s", got, err, tt.want)
			}
			var back Value
			if err := json.Unmarshal(got, &back); err != nil || back.String() != v.String() {
				t.Errorf("back: %v, %v; want %v", back, err, v)
			}
		})
	}
}
