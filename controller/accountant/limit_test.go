// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/account"
)

func TestParseLimit(t *testing.T) {
	for _, tt := range []struct {
		text    string
		want    Limit
		wantErr string
	}{
		{text: "memory=2GB", want: Limit{Field: "memory.resident_peak_bytes", Max: 2e9}},
		{text: "memory=1.5GiB", want: Limit{Field: "memory.resident_peak_bytes", Max: 1.5 * (1 << 30)}},
		{text: "memory=1e8", want: Limit{Field: "memory.resident_peak_bytes", Max: 1e8}},
		{text: "memory=1.1GiB", want: Limit{Field: "memory.resident_peak_bytes", Max: 1181116006}},
		{text: "cgroup=64M", want: Limit{Field: "memory.cgroup_peak_bytes", Max: 64 << 20}},
		{text: "read=17", want: Limit{Field: "io.read_bytes", Max: 17}},
		{text: "io.written_bytes=0B", want: Limit{Field: "io.written_bytes"}},
		{text: "wall=10m", want: Limit{Field: "wall_seconds", Max: 600}},
		{text: "cpu=0.5", want: Limit{Field: "cpu_seconds", Max: 0.5}},
		{text: "processes=100", want: Limit{Field: "processes.peak", Max: 100}},
		{text: "memory", wantErr: "not FIELD=VALUE"},
		{text: "colour=3", wantErr: "cannot be limited"},
		{text: "disk=2MB", want: Limit{Field: "disk.bytes_peak", Max: 2e6}},
		{text: "total_files=20", want: Limit{Field: "disk.files_peak", Max: 20}},
		{text: "memory=10m", wantErr: "no value"},
		{text: "memory=2XB", wantErr: "no value"},
		{text: "memory=-1", wantErr: "no value"},
		{text: "memory=NaN", wantErr: "no value"},
		{text: "wall=2GB", wantErr: "no value"},
	} {
		t.Run(tt.text, func(t *testing.T) {
			got, err := ParseLimit(tt.text)
			if got != tt.want || (err == nil) != (tt.wantErr == "") || err != nil && !strings.Contains(err.Error(), tt.wantErr) {
				t.Errorf("%+v, %v; want %+v, %q", got, err, tt.want, tt.wantErr)
			}
		})
	}
}

// TestLimitedFieldsExist: each is a number of the account.
func TestLimitedFieldsExist(t *testing.T) {
	var r reading
	for name := range r.values() {
		if !slices.ContainsFunc(account.Fields(), func(f account.Field) bool { return f.Name == name && f.Numeric }) {
			t.Errorf("%s is no number of the account", name)
		}
	}
}

// TestSoftLimit: the command goes on, and the excess is told.
func TestSoftLimit(t *testing.T) {
	limits := []Limit{{Field: "io.read_bytes", Max: 10, Soft: true}, {Field: "wall_seconds", Max: 1e6}}
	a, exit := mustRun(t, Options{WithoutKernel: true, NoGroup: true, Limits: limits}, "sh", "-c", "head -c 100000 /dev/zero >/dev/null")
	if exit.Code != 0 || a.Exit.Type != account.ExitNormal || *a.Exit.Code != 0 {
		t.Errorf("the command ended with %+v, the account says %+v", exit, a.Exit)
	}
	if len(a.Exit.Limits) > 0 || len(a.Exit.SoftLimits) != 1 || !strings.HasPrefix(a.Exit.SoftLimits[0], "io.read_bytes: ") {
		t.Errorf("limits %q and %q", a.Exit.Limits, a.Exit.SoftLimits)
	}
}

// TestLimitAfterTheCommand: what the command took counts for the limit of what it has left
// behind.
func TestLimitAfterTheCommand(t *testing.T) {
	limits := []Limit{{Field: "io.read_bytes", Max: 150000}}
	const read = "head -c 100000 /dev/zero >/dev/null"
	a, _ := mustRun(t, Options{WithoutKernel: true, NoGroup: true, Wait: true, Limits: limits}, "sh", "-c", read+"; ("+read+"; sleep 60) &")
	if a.Exit.Type != account.ExitLimits || *a.IO.Read < 200000 {
		t.Errorf("the account says %+v, %d bytes read", a.Exit, *a.IO.Read)
	}
}

// TestSeries: each line is a document with what there was, and totals do not fall.
func TestSeries(t *testing.T) {
	var lines bytes.Buffer
	options := Options{WithoutKernel: true, NoGroup: true, Every: MinEvery, Series: &lines, SeriesPath: "here"}
	a, _ := mustRun(t, options, "sh", "-c", `head -c 1000000 /dev/zero >/dev/null; sleep 0.3`)
	var last account.Row
	var rows uint64
	for line := range bytes.Lines(lines.Bytes()) {
		var row account.Row
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if row.Seconds <= last.Seconds || row.CPUSeconds < last.CPUSeconds || row.Read < last.Read {
			t.Errorf("after %+v came %+v", last, row)
		}
		last, rows = row, rows+1
	}
	if rows < 2 || a.Series == nil || a.Series.Rows != rows || a.Series.Path != "here" {
		t.Errorf("%d lines, the account says %+v", rows, a.Series)
	}
}
