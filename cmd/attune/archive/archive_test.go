// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/cmd/attune/internal/archived"
	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/archive"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/testing/files"
)

const samples = "../../../internal/archive/imports/testdata/"

// attune executes `attune archive`, and returns what it printed.
func attune(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out strings.Builder
	cmd := Command(&cli.Env{Stdout: &out, Stderr: &out})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func mustAttune(t *testing.T, args ...string) string {
	t.Helper()
	out, err := attune(t, args...)
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return out
}

// wants checks that all texts are in the output.
func wants(t *testing.T, out string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(out, text) {
			t.Errorf("%q is not in\n%s", text, out)
		}
	}
}

func TestCommands(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	wants(t, mustAttune(t, "list"), "Nothing is archived: attune account --archive")
	wants(t, mustAttune(t, "list", "--categories"), "Nothing is archived")
	wants(t, mustAttune(t, "list", "--failed"), "Nothing of that kind is archived")
	if out := mustAttune(t, "list", "--json"); out != "[]\n" {
		t.Errorf("of an empty archive, for programs: %q", out)
	}
	wants(t, mustAttune(t, "report"), "attune archive import")
	wants(t, mustAttune(t, "import", samples+"sacct.txt", samples+"nextflow.tsv"), "added: 7", "is running: 1", "is cached: 1")
	wants(t, mustAttune(t, "import", samples+"sacct.txt"), "added: 0", "were there already: 5")
	wants(t, mustAttune(t, "list", "align"), "4.29 GB", "limits", "signal")
	wants(t, mustAttune(t, "list", "--categories"), "FASTQC", "sweep")
	var list []archive.Summary
	if err := json.Unmarshal([]byte(mustAttune(t, "list", "--json", "--succeeded", "align")), &list); err != nil || len(list) != 1 {
		t.Fatalf("%d tasks, %v", len(list), err)
	}
	wants(t, mustAttune(t, "show", list[0].ID[:5]), list[0].ID, "bound: that of the largest task", "bound: that of the tasks' parent", "asked.cores")
	wants(t, mustAttune(t, "query", "--field", "wall_seconds"), "wall_seconds of 7 tasks", "skewness", "█")
	wants(t, mustAttune(t, "report"), "7 tasks in 3 categories, 5 failed", "next time ask for")

	path := filepath.Join(t.TempDir(), "all.jsonl")
	mustAttune(t, "export", "--output", path)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	wants(t, mustAttune(t, "import", path), "added: 7")
	if again := mustAttune(t, "export"); again != string(files.Read(t, path)) {
		t.Errorf("an export of what was imported differs:\n%s", again)
	}
}

// damage makes accounts of the archive in a state directory unreadable.
func damage(t *testing.T, state, which string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(state, "attune", archived.File))
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), "UPDATE document SET body = x'00' WHERE "+which)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestExportWithoutTheUnreadable: what cannot be read is not in an export, which is said, and all else is; an
// export that could not be written fails for that, too, and one without anything to describe for what was left out.
func TestExportWithoutTheUnreadable(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir)
	mustAttune(t, "import", samples+"sacct.txt")
	damage(t, dir, "number = 2")
	s, err := archive.Open(t.Context(), filepath.Join(dir, "attune", archived.File))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close() // all that is written to it fails
	var cmd cobra.Command
	cmd.SetContext(t.Context())
	for format, want := range map[string]int{formatLines: 4, formatCrate: 1} {
		path := filepath.Join(dir, "as-"+format)
		_, err := attune(t, "export", "--format", format, "--output", path)
		if !errors.Is(err, archive.ErrUnreadable) {
			t.Errorf("%s: error %v", format, err)
		}
		if lines := strings.Count(string(files.Read(t, path)), "\n"); lines < want {
			t.Errorf("%s: %d lines, want %d", format, lines, want)
		}
		leftOut, err := export(&cmd, s, archive.Filter{}, full, format)
		if !errors.Is(leftOut, archive.ErrUnreadable) || !errors.Is(err, unix.ENOSPC) || errors.Is(err, archive.ErrUnreadable) {
			t.Errorf("%s to a full disk: %v; left out: %v", format, err, leftOut)
		}
	}
	if out, err := attune(t, "export"); strings.Count(out, "\n") != 4 || !errors.Is(err, archive.ErrUnreadable) {
		t.Errorf("error %v after\n%s", err, out)
	}
	damage(t, dir, "true")
	if out, err := attune(t, "export", "--format", formatCrate); !errors.Is(err, archive.ErrUnreadable) || exitcode.Of(err) != exitcode.Failure {
		t.Errorf("a crate of nothing that can be read: error %v after\n%s", err, out)
	}
}

// TestShowExit: how a task ended is said once, whatever its signal is called.
func TestShowExit(t *testing.T) {
	for want, exit := range map[string]account.Exit{
		"killed by SIGKILL":          {Type: account.ExitSignal, Signal: "SIGKILL"},
		"killed by signal 34":        {Type: account.ExitSignal, Signal: "signal 34"},
		"limits SIGKILL disk.a: > 4": {Type: account.ExitLimits, Signal: "SIGKILL", Limits: []string{"disk.a: > 4"}},
		"killed by SIGKILL cores: 3": {Type: account.ExitSignal, Signal: "SIGKILL", SoftLimits: []string{"cores: 3"}},
	} {
		var out strings.Builder
		task := &archive.Task{Account: account.Account{Exit: exit}}
		if err := writeTask(&cli.Env{Stdout: &out}, "0123", task); err != nil {
			t.Fatal(err)
		}
		wants(t, out.String(), want)
		if strings.Contains(out.String(), "signal signal") {
			t.Errorf("said twice:\n%s", out.String())
		}
	}
}

// TestDirectives: each batch system's, as its manual has them.
func TestDirectives(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	mustAttune(t, "import", samples+"sacct.txt", samples+"cctools.summary")
	for batch, texts := range map[string][]string{
		"slurm":      {"#SBATCH --mem=", "M\n", "#SBATCH --cpus-per-task=4\n", "#SBATCH --time=01:12:00\n"},
		"htcondor":   {"request_memory = ", " MB\n", "request_cpus = 4\n", "allowed_execute_duration = 4320\n"},
		"gridengine": {"#$ -l h_vmem=", "#$ -pe smp 4\n", "#$ -l h_rt=4320\n"},
		"nextflow":   {"withName: 'align'", "memory = ", ".MB\n", "cpus = 4\n", "time = 4320.s\n"},
		"snakemake":  {"threads: 4\n", "mem_mb=", "runtime=72\n"},
	} {
		t.Run(batch, func(t *testing.T) {
			wants(t, mustAttune(t, "estimate", "align", "--for", batch), append(texts, "memory: twice what task ")...)
		})
	}
	wants(t, mustAttune(t, "estimate", "blast", "--for", "slurm"), "#SBATCH --tmp=")
	var e archive.Estimate
	if err := json.Unmarshal([]byte(mustAttune(t, "estimate", "blast", "--json", "--input-bytes", "1000")), &e); err != nil || e.Tasks != 1 || e.MemoryBytes == nil {
		t.Errorf("%+v, %v", e, err)
	}
	wants(t, mustAttune(t, "estimate", "blast"), "memory", "disk", "from 1 that succeeded (1 failed)")
}

// TestRefusals: what is wrong is said with what to do, and nothing is imported by halves.
func TestRefusals(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	broken := filepath.Join(t.TempDir(), "broken.txt")
	text := strings.Replace(string(files.Read(t, samples+"sacct.txt")), "2097152K", "plenty", 1)
	files.Write(t, broken, text, 0o600)
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{"import", samples + "nextflow.tsv", broken}, []string{"broken.txt:4", "plenty", "sacct --parsable2"}},
		{[]string{"import", "/nowhere"}, []string{"/nowhere", "nothing was imported"}},
		{[]string{"import", "--format", "pbs", broken}, []string{"pbs", "there are attune"}},
		{[]string{"estimate", "nothing"}, []string{"not in the archive", "attune archive list"}},
		{[]string{"estimate", "x", "--for", "cron"}, []string{"cron", "slurm"}},
		{[]string{"show", "ffff"}, []string{"not in the archive"}},
		{[]string{"query", "--field", "speed"}, []string{"speed", "wall_seconds"}},
		{[]string{"query", "--quantile", "95"}, []string{"between 0 and 1"}},
		{[]string{"query"}, []string{"no task"}},
		{[]string{"report", "--html", "/nowhere/page.html"}, []string{"/nowhere"}},
	} {
		out, err := attune(t, tt.args...)
		if err == nil {
			t.Errorf("%v: %s", tt.args, out)
			continue
		}
		wants(t, err.Error(), tt.want...)
	}
	wants(t, mustAttune(t, "list"), "Nothing is archived")
}

// TestOwnAccounts: what attune account puts into the archive has the program, the input and
// the job.
func TestOwnAccounts(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("SLURM_JOB_ID", "4711")
	t.Setenv("SLURM_MEM_PER_NODE", "2048")
	t.Setenv("SLURM_CPUS_ON_NODE", "3")
	input := filepath.Join(t.TempDir(), "in.dat")
	files.Write(t, input, make([]byte, 1234), 0o600)
	task := archived.Begin([]string{"sh", "-c", "true", input}, "", "")
	a := &account.Account{Schema: account.SchemaID, Command: []string{"sh", "-c", "true", input}, Exit: account.Exit{Type: account.ExitNormal, Code: new(0)}}
	a.End = a.Start.Add(1e9)
	if err := task.Keep(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	task.Drop()
	var got archive.Task
	if err := json.Unmarshal([]byte(mustAttune(t, "export")), &got); err != nil {
		t.Fatal(err)
	}
	if got.Job != "4711" || len(got.Program) != 64 || got.InputBytes == nil || *got.InputBytes != 1234 || got.Asked != (archive.Asked{MemoryBytes: 2 << 30, Cores: 3}) {
		t.Errorf("%+v", got)
	}
	archived.Begin(nil, "x", "").Drop()
	if err := archived.Begin([]string{"/nowhere"}, "", "").Keep(t.Context(), &account.Account{}); err == nil {
		t.Error("an account of nothing is kept")
	}
}

// TestCrateOfEqualTasks: each is an action, also where their accounts are the same to the letter.
func TestCrateOfEqualTasks(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	twice := filepath.Join(t.TempDir(), "twice.txt")
	files.Write(t, twice, strings.Repeat(string(files.Read(t, samples+"time.txt")), 2), 0o600)
	wants(t, mustAttune(t, "import", twice), "added: 4")
	if n := strings.Count(mustAttune(t, "export", "--format", "ro-crate"), `"ActivateAction"`); n != 4 {
		t.Errorf("%d actions", n)
	}
}

// TestPlace: the archive is where the flag says, else the environment, else the last file
// that says it; a password stands on no command line.
func TestPlace(t *testing.T) {
	dir, config := t.TempDir(), t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir)
	t.Setenv("XDG_CONFIG_HOME", config)
	place := func(name string) string { return filepath.Join(dir, name) }
	made := func(name string) {
		t.Helper()
		if _, err := os.Stat(place(name)); err != nil {
			t.Error(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(config, "attune"), 0o700); err != nil {
		t.Fatal(err)
	}
	files.Write(t, filepath.Join(config, "attune/attune.yaml"), "archive-at: "+place("file.db")+"\n", 0o600)
	mustAttune(t, "list")
	made("file.db")
	t.Setenv("ATTUNE_ARCHIVE_AT", place("environment.db"))
	mustAttune(t, "list")
	made("environment.db")
	mustAttune(t, "list", "--archive-at", place("flag.db"))
	made("flag.db")
	for _, url := range []string{"postgres://me:hidden@/db?host=/nowhere", "postgresql:///db?host=/nowhere&user=me&password=hidden"} {
		_, err := attune(t, "list", "--archive-at", url)
		if exitcode.Of(err) != exitcode.Usage || strings.Contains(err.Error(), "hidden") {
			t.Errorf("a password in %s: %v", url, err)
		}
		t.Setenv("ATTUNE_ARCHIVE_AT", url)
		if _, err := attune(t, "list"); err == nil || strings.Contains(err.Error(), "hidden") {
			t.Errorf("error %v", err)
		}
	}
}

// TestUnwrittenOutputs: where nothing can be written, what was written before stays.
func TestUnwrittenOutputs(t *testing.T) {
	dir := t.TempDir()
	noDirectory := filepath.Join(dir, "state")
	files.Write(t, noDirectory, "", 0o600)
	for _, row := range []struct {
		name, state string
		args        []string
	}{
		{"export without the store", noDirectory, []string{"export", "--output"}},
		{"report without the store", noDirectory, []string{"report", "--html"}},
		{"crate without tasks", filepath.Join(dir, "empty"), []string{"export", "--format", "ro-crate", "--output"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Setenv("XDG_STATE_HOME", row.state)
			path := filepath.Join(dir, "out")
			files.Write(t, path, "last night's", 0o600)
			if out, err := attune(t, append(row.args, path)...); err == nil {
				t.Errorf("it did not fail: %s", out)
			}
			if got := string(files.Read(t, path)); got != "last night's" {
				t.Errorf("there is %q", got)
			}
		})
	}
}
