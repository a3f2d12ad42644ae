// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/provenance"
	"github.com/attune-hpc/attune/internal/testing/files"
)

// TestAccountedProgramSeesNoDifference: with root, where there is, and as without.
func TestAccountedProgramSeesNoDifference(t *testing.T) {
	for _, flags := range []string{"", "--without-root --no-cgroup ", "--capture 1KB --limit wall=1000 --limit memory=1TB ", "--measure-dir " + t.TempDir() + " --limit disk=1TB "} {
		t.Run(flags, func(t *testing.T) {
			seesNoDifference(t, filepath.Join(bin, "attune")+" account --quiet "+flags+"--")
		})
	}
}

// TestAccount: the document is of the program, which has its output for itself.
func TestAccount(t *testing.T) {
	dir := t.TempDir()
	got := shellIn(t, dir, `$ATTUNE_BINARY account --json a.json --series s.jsonl --every 10ms -- sh -c 'echo out; sleep 0.1; until [ -s s.jsonl ]; do sleep 0.01; done; exit 3'`, "")
	if got.stdout != "out\n" || got.code != 3 || !strings.HasPrefix(got.stderr, "attune: ended with exit code 3 after ") {
		t.Errorf("%+v", got)
	}
	a := readAccount(t, filepath.Join(dir, "a.json"))
	if a.Schema != account.SchemaID || a.Command[0] != "sh" || a.Directory != dir || *a.Exit.Code != 3 || a.WallSeconds < 0.1 || *a.CPUSeconds <= 0 {
		t.Errorf("%+v", a)
	}
	if series, err := os.ReadFile(filepath.Join(dir, "s.jsonl")); err != nil || !strings.HasPrefix(string(series), `{"seconds":`) {
		t.Errorf("series %q, %v", series, err)
	}
}

func TestAccountRefuses(t *testing.T) {
	for _, tt := range []struct{ name, script, says string }{
		{"no program", `$ATTUNE_BINARY account --json x`, "no program to run"},
		{"no directory", `$ATTUNE_BINARY account --json no/such/a.json -- echo out`, "no/such/a.json"},
		{"no such limit", `$ATTUNE_BINARY account --limit colour=3 -- echo out`, "cannot be limited"},
		{"no directory to measure", `$ATTUNE_BINARY account --measure-dir no/such -- echo out`, "no/such: no such file or directory"},
		{"too often", `$ATTUNE_BINARY account --every 1ms -- echo out`, "less than 10ms"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := shell(t, tt.script, ""); got.code != 2 || got.stdout != "" || !strings.Contains(got.stderr, tt.says) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestAccountLimit: a code of its own says that a limit ended the program.
func TestAccountLimit(t *testing.T) {
	got := shell(t, `$ATTUNE_BINARY account --limit wall=0.2 --grace 0s -- sh -c 'trap "" TERM; sleep 1000; exit 0'`, "")
	if got.code != 124 || !strings.Contains(got.stderr, "wall_seconds: ") {
		t.Errorf("%+v", got)
	}
}

// TestAccountSoftLimit: what only is to be told is told, and what is told only ends nothing.
func TestAccountSoftLimit(t *testing.T) {
	for name, row := range map[string]struct {
		limits, says string
		code         int
	}{
		"soft":          {"--soft-limit wall=0.01", "attune: exceeded   wall_seconds: ", 0},
		"soft and hard": {"--soft-limit wall=0.01 --limit processes=1", "attune: ended because of processes.peak: 2 > 1 after", 124},
	} {
		t.Run(name, func(t *testing.T) {
			program := "sleep 0.1; exec true"
			if row.code != 0 {
				program = "sleep 0.1; sleep 1000 & wait"
			}
			got := shell(t, "$ATTUNE_BINARY account --grace 0s "+row.limits+" -- sh -c '"+program+"'", "")
			if got.code != row.code || !strings.Contains(got.stderr, row.says) {
				t.Errorf("%+v, want it to say %q", got, row.says)
			}
		})
	}
}

// TestAccountLimitOfDisk: of the working directory, if no other is named.
func TestAccountLimitOfDisk(t *testing.T) {
	dir := t.TempDir()
	got := shellIn(t, dir, `$ATTUNE_BINARY account --json a.json --limit disk=1MB --grace 0s -- sh -c 'head -c 2000000 /dev/zero >big; sleep 1000'`, "")
	if a := readAccount(t, filepath.Join(dir, "a.json")); got.code != 124 || a.Disk.Bytes == nil || *a.Disk.Bytes <= 1_000_000 || a.Disk.Directories[0] != dir {
		t.Errorf("%+v, the account says %+v", got, a.Disk)
	}
}

// TestAccountLimitOfTheUnknown: what cannot be enforced is refused before the program starts.
func TestAccountLimitOfTheUnknown(t *testing.T) {
	got := shell(t, `$ATTUNE_BINARY account --limit cgroup=1GB --no-cgroup -- echo out`, "")
	if got.code != 2 || got.stdout != "" || !strings.Contains(got.stderr, "cannot be limited here: memory.cgroup_peak_bytes") {
		t.Errorf("%+v", got)
	}
}

// TestAccountOwnCode: a program that ends with the code of a limit is not taken for one that was ended.
func TestAccountOwnCode(t *testing.T) {
	dir := t.TempDir()
	got := shellIn(t, dir, `$ATTUNE_BINARY account --json a.json --limit wall=1000 -- sh -c 'exit 124'`, "")
	if a := readAccount(t, filepath.Join(dir, "a.json")); got.code != 124 || a.Exit.Type != account.ExitNormal || *a.Exit.Code != 124 || a.Exit.Limits != nil {
		t.Errorf("%+v, the account says %+v", got, a.Exit)
	}
}

// TestAccountIsKilled: whenever attune is killed, a program that has begun goes on to its
// end, and nothing of attune stays.
func TestAccountIsKilled(t *testing.T) {
	const script = `setsid sh -c 'echo $$ >id; exec $ATTUNE_BINARY account --limit wall=1000 --limit memory=1TB --measure-dir . -- sh -c "echo >begun; sleep 0.1; echo >ended"' 2>/dev/null &
		until [ -s id ]; do sleep 0.01; done; sleep %s; kill -9 $(cat id); wait; while pgrep -s $(cat id) >/dev/null; do sleep 0.01; done; ls`
	for _, after := range []string{"0", "0.02", "0.05", "0.1", "0.2"} {
		got := shellIn(t, t.TempDir(), fmt.Sprintf(script, after), "")
		if got.stdout != "begun\nended\nid\n" && got.stdout != "id\n" {
			t.Errorf("killed after %s s: %+v", after, got)
		}
	}
}

// TestAccountCrate: one flag makes a directory a crate, and the program's output is what it is without.
func TestAccountCrate(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("SOME_TOKEN", "very secret")
	got := shellIn(t, dir, `echo in >in; $ATTUNE_BINARY account --crate . --input in --output out --capture 1KB -- sh -c 'cat in; cat in >out; echo err >&2' >stdout 2>stderr; cat stdout; head -1 stderr`, "")
	if got.stdout != "in\nerr\n" || got.code != 0 {
		t.Errorf("%+v", got)
	}
	a := readAccount(t, filepath.Join(dir, "account.json"))
	p := a.Provenance
	if p == nil || p.Inputs[0].SHA256 != p.Outputs[0].SHA256 || p.Stdout.Text != "in\n" || p.Stderr.Text != "err\n" || p.Environment["SOME_TOKEN"] != provenance.Hidden {
		t.Errorf("%+v", p)
	}
	description, err := os.ReadFile(filepath.Join(dir, "ro-crate-metadata.json"))
	if err != nil || !strings.Contains(string(description), `"@id": "out"`) || strings.Contains(string(description), "very secret") {
		t.Errorf("%s, %v", description, err)
	}
	if got := shellIn(t, dir, `$ATTUNE_BINARY account --crate . -- echo out`, ""); got.code != 2 || got.stdout != "" || !strings.Contains(got.stderr, "exist") {
		t.Errorf("a second crate in one directory: %+v", got)
	}
}

// TestAccountCapturesNoPipe: nobody stands between a program and its reader.
func TestAccountCapturesNoPipe(t *testing.T) {
	dir := t.TempDir()
	got := shellIn(t, dir, `$ATTUNE_BINARY account --quiet --json a.json --capture 1KB -- sh -c 'yes; true' | head -1; exec >&-; $ATTUNE_BINARY account --quiet --json b.json --capture 1KB -- sh -c 'echo x 2>/dev/null'`, "")
	a, b := readAccount(t, filepath.Join(dir, "a.json")), readAccount(t, filepath.Join(dir, "b.json"))
	if got.stdout != "y\n" || got.code == 0 || a.Provenance.Stdout.Missing == "" || b.Provenance.Stdout.Missing == "" {
		t.Errorf("%+v, %+v, %+v", got, a.Provenance.Stdout, b.Provenance.Stdout)
	}
}

// TestAccountSnapshots: of a file that appears, and of lines that are written.
func TestAccountSnapshots(t *testing.T) {
	dir := t.TempDir()
	got := shellIn(t, dir, `echo "phase 0" >marks; $ATTUNE_BINARY account --quiet --every 10ms --json a.json --series s.csv --snapshot-on made --snapshot-on 'marks:^phase' -- sh -c '>made; sleep 0.3; echo "phase 1" >>marks; echo other >>marks; sleep 0.3; echo "phase 2" >>marks'`, "")
	var labels []string
	for _, s := range readAccount(t, filepath.Join(dir, "a.json")).Snapshots {
		labels = append(labels, s.Label)
	}
	if got.code != 0 || strings.Join(labels, ", ") != "made, phase 1, phase 2" {
		t.Errorf("%+v, snapshots %q", got, labels)
	}
	if series, err := os.ReadFile(filepath.Join(dir, "s.csv")); err != nil || !strings.HasPrefix(string(series), "seconds,cpu_seconds,") || strings.Count(string(series), "\n") < 2 {
		t.Errorf("series %q, %v", series, err)
	}
}

func readAccount(t *testing.T, path string) (a account.Account) {
	t.Helper()
	text := files.Read(t, path)
	if err := json.Unmarshal(text, &a); err != nil {
		t.Fatal(err)
	}
	return a
}
