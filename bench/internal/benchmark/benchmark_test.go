// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/bench/internal/present"
	"github.com/attune-hpc/attune/internal/testing/files"
)

// measured is a document with given goals.
type measured struct {
	Common
	goals []present.Goal
}

func (m *measured) Print() { m.Goals = m.goals }

func TestCheck(t *testing.T) {
	var (
		met        = present.Goal{Name: "speed", Value: 1, Limit: 2}
		missed     = present.Goal{Name: "memory", Value: 30, Unit: "MB", Limit: 25}
		unmeasured = present.Goal{Name: "cost", Value: present.Figure(math.NaN()), Limit: 25}
		failure    = errors.New("no such program")
	)
	tests := []struct {
		name  string
		check bool
		goals []present.Goal
		err   error
		wants string // of the error; empty: none
	}{
		{"met", true, []present.Goal{met}, nil, ""},
		{"missed", true, []present.Goal{met, missed}, nil, "1 of 2 goals missed:\n  memory: 30.0 MB, promised at most 25.0 MB; missed by 20.0 %"},
		{"not measured", true, []present.Goal{unmeasured}, nil, "cost: not measured"},
		{"no goals", true, nil, nil, "no goal was checked"},
		{"missed, not checked", false, []present.Goal{missed}, nil, ""},
		{"failed, not checked", false, nil, failure, "no such program"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "figures.json")
			o := Options{Document: &measured{goals: tt.goals}, Measure: func(context.Context) error { return tt.err }}
			err := run(t.Context(), o, false, tt.check, file)
			if (err != nil) != (tt.wants != "") || err != nil && !strings.Contains(err.Error(), tt.wants) {
				t.Errorf("got %v, want %q", err, tt.wants)
			}
			if tt.err != nil {
				return
			}
			// The figures are there whatever the verdict.
			var got Common
			data := files.Read(t, file)
			if err := json.Unmarshal(data, &got); err != nil || len(got.Goals) != len(tt.goals) {
				t.Errorf("figures: got %s, %v; want %d goals", data, err, len(tt.goals))
			}
		})
	}
}

func TestQuick(t *testing.T) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	runs, seconds := flags.Int("n", 100, ""), flags.Float64("seconds", 30, "")
	if err := flags.Parse([]string{"-seconds", "20"}); err != nil {
		t.Fatal(err)
	}
	quick := Quick{"n": "5", "seconds": "10"}
	if err := quick.apply(flags); err != nil {
		t.Fatal(err)
	}
	if *runs != 5 || *seconds != 20 {
		t.Errorf("got %d runs of %v s, want 5, and the 20 s that were given", *runs, *seconds)
	}
	if got, want := quick.String(), "-n 5 -seconds 10"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := (Quick{"nothing": "1"}).apply(flags); err == nil {
		t.Error("a flag that does not exist was set")
	}
}
