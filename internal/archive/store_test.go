// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/sqlfile"
	"github.com/attune-hpc/attune/internal/testing/files"
)

// epoch is when the tasks of these tests begin.
var epoch = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

// newTask returns the n-th task of a program.
func newTask(program string, n int) *Task {
	start := epoch.Add(time.Duration(n) * time.Minute)
	return &Task{
		Schema: SchemaID, Program: strings.Repeat("ab", 32), Source: "attune", Job: fmt.Sprint(n),
		Asked: Asked{MemoryBytes: 8 << 30, Cores: 4},
		Account: account.Account{
			Schema: account.SchemaID, Command: []string{"/opt/bin/" + program, "-t", "4", fmt.Sprintf("sample%d.bam", n)},
			Start: start, End: start.Add(time.Duration(n+1) * time.Second), WallSeconds: float64(n + 1),
			Exit: account.Exit{Type: account.ExitNormal, Code: new(0)}, Host: account.Host{Name: "n1", CPUs: 8},
			CPUSeconds: new(2 * float64(n+1)), CoresAverage: new(2.0),
			Memory:   account.Memory{Resident: new(uint64(n+1) << 20)},
			Accuracy: map[string]account.Accuracy{"wall_seconds": account.Exact},
		},
	}
}

func mustOpen(t testing.TB, path string) *Store {
	t.Helper()
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func mustAdd(t testing.TB, s *Store, tasks ...*Task) Added {
	t.Helper()
	added, err := s.Add(t.Context(), tasks...)
	if err != nil {
		t.Fatal(err)
	}
	return added
}

// A log in shared memory is not for a file system that may be of several machines.
func TestJournal(t *testing.T) {
	if got := journal("/proc"); got != "delete" {
		t.Errorf("%q on what is no disk", got)
	}
	if got := journal("/nowhere"); got != "delete" {
		t.Errorf("%q where nobody knows", got)
	}
}

func TestOnlyTheOwnerReadsIt(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, filepath.Join(dir, "archive.db"))
	mustAdd(t, s, newTask("a", 1))
	files, err := os.ReadDir(dir)
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files { // the log of writes among them
		info, err := file.Info()
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v", file.Name(), info.Mode(), err)
		}
	}
}

// TestDamage: what is wrong with the file is said with the remedy, and the file stays.
func TestDamage(t *testing.T) {
	for _, tt := range []struct {
		name   string
		damage func(t *testing.T, path string)
		want   error
	}{
		{"no database", func(t *testing.T, path string) { files.Write(t, path, strings.Repeat("not a database ", 1000), 0o600) }, ErrBroken},
		{"pages overwritten", func(t *testing.T, path string) {
			text := files.Read(t, path)
			for i := 4096; i < len(text); i++ {
				text[i] = 0xa5
			}
			files.Write(t, path, text, 0o600)
		}, ErrBroken},
		{"a newer layout", func(t *testing.T, path string) {
			s, err := open(t.Context(), path, options{wait: time.Second, limit: maxBytes, migrations: append(migrations[:len(migrations):len(migrations)], "CREATE TABLE later (x TEXT)")})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}, sqlfile.ErrNewer},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "archive.db")
			s, err := Open(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			mustAdd(t, s, newTask("a", 1))
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			tt.damage(t, path)
			before := files.Read(t, path)
			s, err = Open(t.Context(), path)
			if err == nil {
				_, err = s.Add(t.Context(), newTask("a", 2))
				_ = s.Close() // it is damaged
			}
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "move") {
				t.Errorf("error %v, want %v, the file and the remedy", err, tt.want)
			}
			if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
				t.Errorf("the file was changed (%v)", err)
			}
		})
	}
}

// TestFullDisk: SQLite says the same of a bound on its pages as of a full disk.
func TestFullDisk(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "archive.db"))
	mustAdd(t, s, newTask("a", 0))
	s.db.SetMaxOpenConns(1) // the bound is the connection's
	if _, err := s.db.ExecContext(t.Context(), "PRAGMA max_page_count = 1"); err != nil {
		t.Fatal(err)
	}
	var many []*Task
	for n := range 500 {
		many = append(many, newTask("a", n+1))
	}
	if _, err := s.Add(t.Context(), many...); !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "make room") {
		t.Errorf("error %v", err)
	}
	if all, err := s.List(t.Context(), Filter{}); len(all) != 1 || err != nil {
		t.Errorf("%d tasks are there, %v; want the one from before", len(all), err)
	}
}

// TestBounded: beyond the limit the oldest go, and the file does not grow.
func TestBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "archive.db")
	s, err := open(t.Context(), path, options{wait: time.Second, limit: 1 << 20, migrations: migrations})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var forgotten int64
	for round := range 30 {
		var tasks []*Task
		for n := range 100 {
			tasks = append(tasks, newTask("a", 100*round+n))
		}
		forgotten += mustAdd(t, s, tasks...).Forgotten
	}
	left, err := s.List(t.Context(), Filter{})
	if err != nil || forgotten == 0 || int64(len(left)) != 3000-forgotten {
		t.Fatalf("%d left, %d forgotten of 3000, %v", len(left), forgotten, err)
	}
	if latest, err := s.Task(t.Context(), left[0].ID); err != nil || latest.Job != "2999" {
		t.Errorf("the latest is %+v, %v", latest, err)
	}
	if oldest := left[len(left)-1]; oldest.Job != fmt.Sprint(forgotten) {
		t.Errorf("the oldest is %s, want %d", oldest.Job, forgotten)
	}
	if info, err := os.Stat(path); err != nil || info.Size() > 2<<20 {
		t.Errorf("the file has %d bytes, %v", info.Size(), err)
	}
}

// TestMeasures: each number of an account has a column.
func TestMeasures(t *testing.T) {
	apart := regexp.MustCompile(`\[\]|^(available|cost|host|provenance|series)\.`) // in lists, or not of the task
	for _, f := range account.Fields() {
		if f.Numeric && !apart.MatchString(f.Name) && !slices.Contains(measures, f.Name) {
			t.Errorf("%s has no column: add one to measures, and a migration", f.Name)
		}
	}
	task := newTask("a", 1)
	task.InputBytes = new(uint64(7))
	for field, want := range map[string]float64{"input_bytes": 7, "asked.memory_bytes": 8 << 30, "asked.cores": 4, "cores_average": 2} {
		if got, known := task.Number(field); !known || got != want {
			t.Errorf("%s: %v, %t; want %v", field, got, known, want)
		}
	}
}

func TestPattern(t *testing.T) {
	for _, tt := range []struct {
		command string
		want    string
	}{
		{"/opt/bin/align -t 4 --in=a.fastq.gz b7.bam", "align -t # --in=*.fastq.gz *.bam"},
		{"solver -n100 --eps=1e-9 mesh/17 out", "solver -n# --eps=# * out"},
		{"python3 train.py --lr 0.1 --seed 42 --tag run12", "python3 *.py --lr # --seed # --tag run#"},
		{"bwa mem ref.fa x_1.fq x_2.fq", "bwa mem *.fa *.fq *.fq"},
		{"sort -S 4G", "sort -S #"},
		{"tar xf data.tar.xz", "tar xf *.tar.xz"},
		{"gzip 5.gz", "gzip *.gz"},
		{"prog .hidden v1.2 0x1f -5", "prog .hidden v#.# # #"},
		{"true", "true"},
	} {
		if got := Pattern(strings.Fields(tt.command)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.command, got, tt.want)
		}
	}
	if got := Pattern([]string{"sh", "-c", "echo 1\necho 2\n"}); got != "sh -c …" {
		t.Errorf("a script: %q", got)
	}
	if got := Pattern([]string{"a", strings.Repeat("é", 1000)}); len(got) > maxPattern+3 || !strings.HasSuffix(got, "…") {
		t.Errorf("%d bytes", len(got))
	}
	if Pattern(nil) != "" {
		t.Error("a pattern of nothing")
	}
}

// TestSynchronous: a power cut damages the file with neither kind of log.
func TestSynchronous(t *testing.T) {
	for journal, want := range map[string]int{"wal": 1, "delete": 2} { // normal, full
		t.Run(journal, func(t *testing.T) {
			s := mustOpenJournal(t, filepath.Join(t.TempDir(), "archive.db"), journal)
			var kind string
			var level int
			if err := s.db.QueryRowContext(t.Context(), "PRAGMA journal_mode").Scan(&kind); err != nil || kind != journal {
				t.Errorf("journal %q, %v", kind, err)
			}
			if err := s.db.QueryRowContext(t.Context(), "PRAGMA synchronous").Scan(&level); err != nil || level != want {
				t.Errorf("level %d, %v; want %d", level, err, want)
			}
		})
	}
}
