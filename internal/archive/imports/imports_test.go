// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/archive"
	"github.com/attune-hpc/attune/internal/testing/files"
)

var changed = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func mustFile(t testing.TB, name string) File {
	t.Helper()
	text := files.Read(t, filepath.Join("testdata", name))
	return File{Name: name, Text: text, Changed: changed, Local: time.FixedZone("", 7200)}
}

// line is a task in a line: the name, the end, the exit and numbers.
func line(t *archive.Task) string {
	a := &t.Account
	name := t.Name
	if name == "" {
		name = a.Command[0]
	}
	exit := a.Exit.Type
	switch {
	case a.Exit.Code != nil:
		exit += fmt.Sprint(" ", *a.Exit.Code)
	case a.Exit.Signal != "":
		exit += " " + a.Exit.Signal
	case len(a.Exit.Limits) > 0:
		exit += " " + a.Exit.Limits[0]
	}
	out := []string{name, t.Job, exit, a.Start.Format(time.TimeOnly) + "-" + a.End.Format(time.TimeOnly)}
	for _, field := range archive.Fields() {
		if v, known := t.Number(field); known {
			out = append(out, fmt.Sprintf("%s=%.6g %s", field, v, a.Accuracy[field]))
		}
	}
	return strings.Join(out, "; ")
}

// TestRead reads the sample of each format, which is guessed.
func TestRead(t *testing.T) {
	for _, tt := range []struct {
		file    string
		format  string
		want    []string
		skipped map[string]int
	}{
		{"attune.json", "attune", []string{
			"./solver; ; normal 0; 10:00:00-10:01:30; wall_seconds=90 exact; cpu_seconds=170.5 exact; processes.total=3 ; memory.resident_peak_bytes=7.34003e+08 sampled",
			"solver; 4711; normal 1; 11:00:00-11:00:30; wall_seconds=30 ; asked.memory_bytes=1.07374e+09 ",
		}, nil},
		{"cctools.summary", "cctools", []string{
			"blast; 17; normal 0; 10:00:00-10:02:10; wall_seconds=130.5 exact; cpu_seconds=250.25 sampled; cores_average=1.918 sampled; cores_peak=2.4 sampled; " +
				"processes.total=5 sampled; processes.peak=3 sampled; memory.proportional_peak_bytes=8.51444e+08 sampled; memory.virtual_peak_bytes=2.14748e+09 sampled; " +
				"memory.swap_peak_bytes=0 sampled; io.read_bytes=6.71089e+08 bound; io.written_bytes=3.14573e+06 bound; io.network_received_bytes=0 bound; " +
				"io.network_sent_bytes=0 bound; disk.files_peak=12 sampled; disk.bytes_peak=3.67002e+07 sampled",
			"./blast; ; limits memory.proportional_peak_bytes: > 1048576000; 10:00:00-10:00:01; wall_seconds=1 exact; cpu_seconds=0.9 sampled; cores_average=0.9 sampled; " +
				"memory.proportional_peak_bytes=1.07374e+09 sampled",
		}, nil},
		{"kickstart.yaml", "kickstart", []string{
			"analyze; 1234.0; normal 0; 08:00:00-08:00:12; wall_seconds=12.5 exact; cpu_seconds=12 exact; user_seconds=10.25 exact; system_seconds=1.75 exact; " +
				"cores_average=0.96 exact; memory.resident_peak_bytes=2.09715e+08 bound; context_switches.voluntary=210 exact; context_switches.involuntary=17 exact; " +
				"faults.minor=51234 exact; faults.major=3 exact",
			"analyze; ; signal SIGSEGV; 08:01:00-08:01:00; wall_seconds=0.1 exact; cpu_seconds=0.06 exact; user_seconds=0.05 exact; system_seconds=0.01 exact; " +
				"cores_average=0.6 exact; memory.resident_peak_bytes=1.04858e+06 bound",
		}, nil},
		{"sacct.txt", "slurm", []string{
			"align; 101; normal 0; 08:00:00-09:00:00; wall_seconds=3600 exact; cpu_seconds=12600 bound; cores_average=3.5 bound; " +
				"memory.resident_peak_bytes=4.29497e+09 bound; memory.virtual_peak_bytes=6.44245e+09 bound; asked.memory_bytes=1.71799e+10 ; asked.cores=4 ; asked.wall_seconds=7200 ",
			"align; 102; limits memory.cgroup_peak_bytes: > 17179869184; 08:00:00-08:00:30; wall_seconds=30 exact; cpu_seconds=20.25 bound; cores_average=0.675 bound; " +
				"memory.resident_peak_bytes=1.71799e+10 sampled; memory.virtual_peak_bytes=1.78258e+07 sampled; asked.memory_bytes=1.71799e+10 ; asked.cores=4 ; asked.wall_seconds=7200 ",
			"sweep; 103_1; limits wall_seconds: > 90000; 08:00:00-09:00:01; wall_seconds=90001 exact; cpu_seconds=90000 bound; cores_average=0.999989 bound; " +
				"asked.memory_bytes=2.09715e+09 ; asked.cores=1 ; asked.wall_seconds=90000 ",
			"align; 104; signal signal 15; 08:00:00-08:00:10; wall_seconds=10 exact; cpu_seconds=1 bound; cores_average=0.1 bound; asked.memory_bytes=1.71799e+10 ; asked.cores=4 ; asked.wall_seconds=7200 ",
			"align; 105; normal 2; 08:00:00-08:00:10; wall_seconds=10 exact; cpu_seconds=1 bound; cores_average=0.1 bound; asked.memory_bytes=1.71799e+10 ; asked.cores=4 ; asked.wall_seconds=7200 ",
		}, map[string]int{"is running": 1, "never began": 1}},
		{"nextflow.tsv", "nextflow", []string{
			"FASTQC; 8812; normal 0; 08:00:05-08:01:10; wall_seconds=65 exact; cpu_seconds=77.74 sampled; cores_average=1.196 sampled; " +
				"memory.resident_peak_bytes=2.74517e+08 sampled; memory.virtual_peak_bytes=3.65072e+09 sampled; io.read_bytes=1.45228e+08 sampled; " +
				"io.written_bytes=881971 sampled; asked.memory_bytes=4.29497e+09 ; asked.cores=2 ; asked.wall_seconds=14400 ",
			"FASTQC; 8813; normal 137; 08:00:05-08:00:09; wall_seconds=4 exact; asked.memory_bytes=4.29497e+09 ; asked.cores=2 ; asked.wall_seconds=14400 ",
		}, map[string]int{"is cached": 1, "never began": 1}},
		{"nextflow.csv", "nextflow", []string{
			"ALIGN:SORT; 8812; normal 0; 10:00:05-10:01:10; wall_seconds=65 exact; cpu_seconds=77.74 sampled; cores_average=1.196 sampled; " +
				"memory.resident_peak_bytes=2.74485e+08 sampled; memory.virtual_peak_bytes=3.64431e+09 sampled; io.read_bytes=1.45216e+08 sampled; io.written_bytes=882021 sampled",
		}, nil},
		{"time.txt", "time", []string{
			"./solver; ; normal 0; 11:59:48-12:00:00; wall_seconds=12 exact; cpu_seconds=11.75 exact; user_seconds=10.5 exact; system_seconds=1.25 exact; cores_average=0.979167 exact; " +
				"memory.resident_peak_bytes=2.09715e+08 bound; io.storage_read_bytes=1.04858e+06 exact; io.storage_written_bytes=4096 exact; " +
				"context_switches.voluntary=12 exact; context_switches.involuntary=34 exact; faults.minor=5123 exact; faults.major=2 exact",
			"./solver; ; signal signal 9; 10:59:59-12:00:00; wall_seconds=3601 exact; cpu_seconds=0 exact; user_seconds=0 exact; system_seconds=0 exact; cores_average=0 exact; " +
				"memory.resident_peak_bytes=1.04858e+06 bound; io.storage_read_bytes=0 exact; io.storage_written_bytes=0 exact; " +
				"context_switches.voluntary=1 exact; context_switches.involuntary=0 exact; faults.minor=5 exact; faults.major=0 exact",
		}, nil},
	} {
		t.Run(tt.file, func(t *testing.T) {
			f := mustFile(t, tt.file)
			if format := guess(f.Text); format != tt.format {
				t.Errorf("it looks like %q", format)
			}
			got, err := Read("", f)
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for _, task := range got.Tasks {
				lines = append(lines, line(task))
			}
			if diff := cmp.Diff(tt.want, lines); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(tt.skipped, got.Skipped); diff != "" {
				t.Errorf("skipped (-want +got)\n%s", diff)
			}
			store, err := archive.Open(t.Context(), filepath.Join(t.TempDir(), "archive.db"))
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			if added, err := store.Add(t.Context(), got.Tasks...); err != nil || added.New != len(tt.want) {
				t.Errorf("added %+v, %v", added, err)
			}
			again, err := Read(tt.format, f)
			if err != nil {
				t.Fatal(err)
			}
			if added, err := store.Add(t.Context(), again.Tasks...); err != nil || added.Known != len(tt.want) {
				t.Errorf("the second time added %+v, %v", added, err)
			}
		})
	}
}

// TestMalformed: the error has the line and what to do.
func TestMalformed(t *testing.T) {
	replace := func(old, with string) func(string) string {
		return func(text string) string { return strings.Replace(text, old, with, 1) }
	}
	for _, tt := range []struct {
		file   string
		change func(string) string
		line   int
		want   string
	}{
		{"attune.json", replace(`"version": "0.1.0"`, `"version": `), 3, "not JSON"},
		{"attune.json", replace("attune.account/1", "attune.account/9"), 1, "attune.account/9"},
		{"attune.json", replace("90,", `"long",`), 1, "wall_seconds"},
		{"attune.json", func(text string) string { return text[:300] }, 10, "not JSON"},
		{"cctools.summary", replace(`[812,"MB"]`, `[812,"stone"]`), 1, "stone"},
		{"cctools.summary", replace(`[1777888801250000,"us"]`, `17`), 7, "with its unit"},
		{"cctools.summary", replace(`"wall_time":[130.5,"s"],`, ""), 1, "wall_time"},
		{"kickstart.yaml", replace("  duration: 12.503", "  duration 12.503\n\t:"), 4, ""},
		{"kickstart.yaml", replace("version: 3.0", "version: 2.1"), 1, "2.1"},
		{"kickstart.yaml", replace("maxrss: 1024", "maxrss: much"), 68, "much"},
		{"sacct.txt", replace("|n18\n", "\n"), 5, "14 cells"},
		{"sacct.txt", replace("2097152K", "plenty"), 4, "plenty"},
		{"sacct.txt", replace("2026-05-04T10:00:00", "today"), 2, "today"},
		{"sacct.txt", replace("101|align|COMPLETED", "99|align|COMPLETED"), 3, "without the job"},
		{"sacct.txt", replace("JobID|", "Job|"), 0, "none of the formats"},
		{"sacct.txt", replace("Start|End|ElapsedRaw", "Begin|End|Time"), 2, "how long"},
		{"nextflow.tsv", replace("261.8 MB", "many"), 2, "many"},
		{"nextflow.tsv", replace("\t137\t", "\tmaybe\t"), 3, "maybe"},
		{"nextflow.csv", replace(",882021", ",882021,1"), 2, "fields"},
		{"nextflow.csv", replace(",1777888800000,", ",-,"), 2, "when it ended"},
		{"time.txt", replace("Exit status: 0", "Exit"), 24, "no line"},
		{"time.txt", replace("10.50", "ten"), 2, "ten"},
		{"time.txt", func(text string) string { return text[:len(text)-20] }, 37, "no line"},
		{"time.txt", replace("\tExit status: 0\nCommand terminated", "Command terminated"), 24, "no line"},
		{"time.txt", replace("User time", "Used time"), 2, "without"},
		{"time.txt", func(text string) string { return timedLine + `"sh -c a` }, 1, "cut off"},
		{"attune.json", func(string) string { return `{"schema":"attune.account/1","command":["a"]}` }, 0, "task 1 of 1: not the account of a task: no time of its end"},
		{"sacct.txt", replace("|3600|", "|-3600|"), 0, "task 1 of 5"},
		{"nextflow.csv", replace(",1777888800000,", ",999999999999999,"), 0, "the year"},
		{"time.txt", func(string) string { return "" }, 0, "none of the formats"},
	} {
		t.Run(tt.file+" "+tt.want, func(t *testing.T) {
			f := mustFile(t, tt.file)
			f.Text = []byte(tt.change(string(f.Text)))
			result, err := Read("", f)
			if err == nil {
				t.Fatalf("%d tasks, no error", len(result.Tasks))
			}
			place := tt.file + ": "
			if tt.line > 0 {
				place = fmt.Sprintf("%s:%d: ", tt.file, tt.line)
			}
			_, remedy, _ := strings.Cut(err.Error(), "; nothing was imported of it: ")
			if !strings.HasPrefix(err.Error(), place) || !strings.Contains(err.Error(), tt.want) || remedy == "" || len(result.Tasks) > 0 {
				t.Errorf("%v; want it of %s", err, place)
			}
		})
	}
}

func TestUnits(t *testing.T) {
	for text, want := range map[string]uint64{"0": 0, "12": 12288, "12K": 12288, "1.5G": 3 << 29, "3 MB": 3 << 20, "7 GiB": 7 << 30, "12 B": 12, "2m": 2 << 20} {
		if got, err := bytesOf(text, 1024); got != want || err != nil {
			t.Errorf("%s: %d, %v; want %d", text, got, err, want)
		}
	}
	for text, want := range map[string]float64{"0:01.50": 1.5, "1:00:01": 3601, "1-01:00:00": 90000, "00:20.250": 20.25} {
		if got, err := clock(text); got != want || err != nil {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]float64{"1500": 1.5, "1h 2m 3.5s": 3723.5, "345ms": 0.345, "2d": 172800} {
		if got, err := span(text); got != want || err != nil {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "x", "-1", "1 2", "K", "1e300G", "NaN", "1:2:3:4", "5x", "s", "::"} {
		if got, err := bytesOf(text, 1); err == nil {
			t.Errorf("size %q: %d", text, got)
		}
		if got, err := clock(text); err == nil {
			t.Errorf("clock %q: %v", text, got)
		}
		if got, err := span(text); err == nil {
			t.Errorf("span %q: %v", text, got)
		}
	}
}

// FuzzRead: whatever the file, there is an error, or tasks that an archive takes.
func FuzzRead(f *testing.F) {
	files, err := os.ReadDir("testdata")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		if file.IsDir() {
			continue // what was found
		}
		for _, format := range Formats() {
			f.Add(format, mustFile(f, file.Name()).Text)
		}
	}
	store, err := archive.Open(f.Context(), filepath.Join(f.TempDir(), "archive.db"))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = store.Close() }) // nobody reads it
	f.Fuzz(func(t *testing.T, format string, text []byte) {
		result, err := Read(format, File{Name: "it", Text: text, Changed: changed, Local: time.UTC})
		if err != nil {
			if !strings.HasPrefix(err.Error(), "it:") || !strings.Contains(err.Error(), "; nothing was imported of it: ") || len(result.Tasks) > 0 {
				t.Errorf("%v with %d tasks", err, len(result.Tasks))
			}
			return
		}
		if _, err := store.Add(t.Context(), result.Tasks...); err != nil {
			t.Errorf("the archive does not take them: %v", err)
		}
		for _, task := range result.Tasks {
			if task.Source == "" || task.Account.Schema != account.SchemaID && format != "attune" {
				t.Errorf("%+v", task)
			}
		}
	})
}
