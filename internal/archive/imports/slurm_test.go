// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // zones, also where the system has none

	"github.com/attune-hpc/attune/internal/archive"
)

// TestSlurmTyped: what was typed at the prompt may have line ends and bars.
func TestSlurmTyped(t *testing.T) {
	const text = `JobID|JobName|State|SubmitLine|Start|End|ExitCode
7|bash|COMPLETED|salloc -N2 bash -c cd "$0"
sort in | uniq -c | tee out
wait|2026-05-04T10:00:00|2026-05-04T11:00:00|0:0
7.0|sort|COMPLETED|srun sort|2026-05-04T10:00:00|2026-05-04T11:00:00|0:0
8|uniq|COMPLETED|srun uniq|2026-05-04T10:00:00|2026-05-04T11:00:00|0:0
`
	for name, text := range map[string]string{
		"parsable2": text,
		"parsable":  strings.NewReplacer("ExitCode", "ExitCode|", "|0:0", "|0:0|").Replace(text),
		"line ends": strings.ReplaceAll(text, "\n", "\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			f := mustFile(t, "sacct.txt")
			f.Text = []byte(text)
			got, err := Read("slurm", f)
			if err != nil || len(got.Tasks) != 2 {
				t.Fatalf("%d tasks, %v", len(got.Tasks), err)
			}
			want := strings.Fields(`salloc -N2 bash -c cd "$0" sort in | uniq -c | tee out wait`)
			if a := got.Tasks[0].Account; !slices.Equal(a.Command, want) || a.WallSeconds != 3600 || *a.Exit.Code != 0 {
				t.Errorf("%+v", a)
			}
		})
	}
}

// TestSlurmNames: the name of a job may have bars, beside what was typed or without it, and
// another delimiter may be chosen.
func TestSlurmNames(t *testing.T) {
	const plain = `JobID|JobName|State|Start|End|ExitCode
7|align|sort||COMPLETED|2026-05-04T10:00:00|2026-05-04T11:00:00|0:0
7.batch|batch|COMPLETED|2026-05-04T10:00:00|2026-05-04T11:00:00|0:0
`
	const withTyped = `ExitCode|JobID|JobName|Start|End|State|SubmitLine
0:0|7|align|sort||2026-05-04T10:00:00|2026-05-04T11:00:00|CANCELLED by 1000|sbatch a | b
`
	for name, text := range map[string]string{
		"alone":    plain,
		"parsable": strings.ReplaceAll(strings.ReplaceAll(plain, "ExitCode", "ExitCode|"), ":0\n", ":0|\n"),
		"typed":    withTyped,
		"unit":     strings.ReplaceAll(strings.ReplaceAll(plain, "align|sort|", "align/sort/"), "|", "\x1f"),
		"two":      strings.ReplaceAll(strings.ReplaceAll(plain, "align|sort|", "align/sort/"), "|", "::"),
	} {
		f := mustFile(t, "sacct.txt")
		f.Text = []byte(text)
		got, err := Read("", f)
		if err != nil || len(got.Tasks) != 1 {
			t.Errorf("%s: %d tasks, %v", name, len(got.Tasks), err)
			continue
		}
		if a := got.Tasks[0]; strings.ReplaceAll(a.Name, "/", "|") != "align|sort|" || a.Account.WallSeconds != 3600 {
			t.Errorf("%s: %q, %+v", name, a.Name, a.Account)
		}
	}
}

// TestSlurmTimes: a job that was cancelled while it waited has an end and never ran, and one that ran
// while the clock was turned back may end before its start by the clock.
func TestSlurmTimes(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	const header = "JobID|JobName|State|ExitCode|Start|End|NodeList"
	for _, tt := range []struct {
		name, table, want string // no want: it never began
	}{
		{"no start", header + "|ElapsedRaw\n1|a|CANCELLED by 7|0:0|None|2026-05-04T10:00:00|None assigned|0", ""},
		{"start unknown", header + "|Elapsed\n1|a|CANCELLED by 7|0:0|Unknown|2026-05-04T10:00:00|None assigned|00:00:00", ""},
		{"no start, no time", header + "\n1|a|CANCELLED by 7|0:0|None|2026-05-04T10:00:00|None assigned", ""},
		{"start is end", header + "\n1|a|CANCELLED by 7|0:0|2026-05-04T10:00:00|2026-05-04T10:00:00|None assigned", ""},
		{"short", header + "\n1|a|COMPLETED|0:0|2026-05-04T10:00:00|2026-05-04T10:00:00|n1", "08:00:00-08:00:00; wall_seconds=0 exact"},
		{"no column of starts", "JobID|JobName|State|ExitCode|End|Elapsed\n1|a|COMPLETED|0:0|2026-05-04T10:00:00|00:20:00", "07:40:00-08:00:00; wall_seconds=1200 exact"},
		{"turned back", header + "|ElapsedRaw\n1|a|COMPLETED|0:0|2026-10-25T02:50:00|2026-10-25T02:10:00|n1|1200", "00:50:00-01:10:00; wall_seconds=1200 exact"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Read("slurm", File{Name: "it", Text: []byte(tt.table), Local: berlin})
			if err != nil {
				t.Fatal(err)
			}
			text := ""
			for _, task := range got.Tasks {
				_, text, _ = strings.Cut(line(task), "; normal 0; ")
			}
			if text != tt.want || (got.Skipped["never began"] == 1) != (tt.want == "") {
				t.Errorf("%q, left out: %v; want %q", text, got.Skipped, tt.want)
			}
			store, err := archive.Open(t.Context(), filepath.Join(t.TempDir(), "archive.db"))
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			if _, err := store.Add(t.Context(), got.Tasks...); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestStepOfEqualSizes: a step whose two sizes are the same has both.
func TestStepOfEqualSizes(t *testing.T) {
	s, err := readStep(map[string]string{"MaxRSS": "5120K", "MaxVMSize": "5120K"})
	if err != nil || s.memory != 5120<<10 || s.virtual != 5120<<10 {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestSizesOfSteps: a size that no step has is none of the job.
func TestSizesOfSteps(t *testing.T) {
	const begin, step = "JobID|JobName|State|ExitCode|Start|End|", "\n1|a|COMPLETED|0:0|2026-05-04T10:00:00|2026-05-04T11:00:00|\n1.0|a|COMPLETED|0:0|2026-05-04T10:00:00|2026-05-04T11:00:00|5K"
	for column, want := range map[string]string{
		"MaxRSS":    "memory.resident_peak_bytes=5120 sampled",
		"MaxVMSize": "memory.virtual_peak_bytes=5120 sampled",
	} {
		got, err := Read("slurm", File{Name: "it", Text: []byte(begin + column + step), Local: time.UTC})
		if err != nil {
			t.Fatal(err)
		}
		if _, text, _ := strings.Cut(line(got.Tasks[0]), "exact; "); text != want {
			t.Errorf("%s: %s", column, text)
		}
	}
}
