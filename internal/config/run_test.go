// SPDX-License-Identifier: Apache-2.0

package config

import (
	"math"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/exitcode"
)

func TestValidate(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Run)
		want   string // part of the message; empty: valid
	}{
		{"default", func(*Run) {}, ""},
		{"every mode", func(r *Run) { r.Mode = Observe }, ""},
		{"mode", func(r *Run) { r.Mode = "fast" }, "observe, advise, tune"},
		{"log level", func(r *Run) { r.LogLevel = "loud" }, "debug, info"},
		{"tunlet", func(r *Run) { r.Tunlets = []string{"malloc"} }, ""},
		{"tunlet path", func(r *Run) { r.Tunlets = []string{"./malloc"} }, "attune tunlet list"},
		{"empty tunlet", func(r *Run) { r.Tunlets = []string{""} }, "attune tunlet list"},
		{"probe", func(r *Run) { r.Probes = []string{"libc.so.6:malloc"} }, ""},
		{"probe without object", func(r *Run) { r.Probes = []string{":malloc"} }, "OBJECT:FUNCTION"},
		{"probe without symbol", func(r *Run) { r.Probes = []string{"libc.so.6"} }, "OBJECT:FUNCTION"},
		{"probe without object, which is unique", func(r *Run) { r.Probes = []string{"malloc"} }, ""},
		{"objective", func(r *Run) { r.Objective = "steps=output:^step" }, ""},
		{"objective of nothing", func(r *Run) { r.Objective = "steps" }, "docs/reference/objective.md"},
		{"no memory for tunlets", func(r *Run) { r.TunletMB = 15 }, "15 MB"},
		{"no number of megabytes", func(r *Run) { r.TunletMB = math.NaN() }, "15 MB"},
		{"no time for tunlets", func(r *Run) { r.TunletCPU = 0 }, "percentage of one core"},
		{"budget", func(r *Run) { r.Budget = 0 }, "percentage"},
		{"no number as budget", func(r *Run) { r.Budget = math.NaN() }, "percentage"},
		{"budget beyond all", func(r *Run) { r.Budget = 101 }, "percentage"},
		{"watch and quiet", func(r *Run) { r.Watch, r.Quiet = true, true }, "exclude"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := Default()
			tt.change(&r)
			err := r.Validate()
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("%v does not say %q", err, tt.want)
			}
			if got := exitcode.Of(err); got != exitcode.Usage {
				t.Errorf("exit code %d", got)
			}
		})
	}
}
