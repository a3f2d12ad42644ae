// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/cmd/attune/internal/permission"
	"github.com/attune-hpc/attune/cmd/attune/internal/settings"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// ownSwitch has the switch of the commands of a test in its own directory.
func ownSwitch(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	t.Setenv(permission.OffVariable, filepath.Join(dir, "node-off")) // for root
}

func TestOffAndOn(t *testing.T) {
	ownSwitch(t)
	who := "somebody"
	t.Setenv("SUDO_USER", who)
	if u, err := user.Current(); os.Geteuid() != 0 && err == nil {
		who = u.Username
	}
	off := shell(t, `$ATTUNE_BINARY off --reason 'on trial' && $ATTUNE_BINARY off`, "")
	if off.code != 0 || strings.Count(off.stdout, "is switched off") != 1 || !strings.Contains(off.stdout, "is off already") || !strings.Contains(off.stdout, ": by "+who+": on trial") {
		t.Fatalf("%+v", off)
	}
	if reason, is := permission.MySwitch().Off(); !is || reason != "by "+who+": on trial" {
		t.Errorf("%q, %v, want it off for the reason that was given first", reason, is)
	}
	if again := shell(t, `$ATTUNE_BINARY off --reason other`, ""); again.code != 0 {
		t.Errorf("%+v", again)
	}
	if reason, _ := permission.MySwitch().Off(); reason != "by "+who+": other" {
		t.Errorf("off for %q, want the new reason", reason)
	}
	on := shell(t, `$ATTUNE_BINARY on && $ATTUNE_BINARY on`, "")
	if on.code != 0 || on.stdout != strings.Repeat("attune is switched on\n", 2) {
		t.Errorf("%+v", on)
	}
}

// What one's own switch cannot do is said.
func TestOnWhileTheNodeIsOff(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a user has one switch, which is not the node's")
	}
	ownSwitch(t)
	own := permission.UserSwitch(settings.UserDir(os.Getenv))
	if err := own.TurnOff("mine"); err != nil {
		t.Fatal(err)
	}
	if got := shell(t, `$ATTUNE_BINARY on`, ""); got.code != 0 || !strings.Contains(got.stdout, "still off: mine ("+string(own)+")") {
		t.Errorf("%+v", got)
	}
}

func TestProgramsRunWhileSwitchedOff(t *testing.T) {
	ownSwitch(t)
	if err := permission.MySwitch().TurnOff("on trial"); err != nil {
		t.Fatal(err)
	}
	const program = ` -- sh -c 'echo $$; env | grep -E "^(LD_PRELOAD|ATTUNE_JOB)="; exit 3'`
	for _, tt := range []struct{ name, run, says string }{
		{"run", "run --mode frob", "attune: the program runs without it: switched off: on trial"},
		{"quiet", "run --quiet --mode frob", ""},
	} {
		got := shell(t, `echo $$; exec $ATTUNE_BINARY `+tt.run+program, "")
		lines := strings.Fields(got.stdout)
		if got.code != 3 || len(lines) != 2 || lines[0] != lines[1] || !strings.HasPrefix(got.stderr, tt.says) || tt.says == "" && got.stderr != "" {
			t.Errorf("%s: %+v, want the same process id twice, code 3, and stderr %q", tt.name, got, tt.says)
		}
	}
}

func TestNothingIsTouchedWhileSwitchedOff(t *testing.T) {
	ownSwitch(t)
	if err := permission.MySwitch().TurnOff("on trial"); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"attach", "tune --dry-run"} {
		got := shell(t, `sleep 100 & $ATTUNE_BINARY `+command+` $! $KNOB; code=$?; kill $!; exit $code`, "")
		if got.code != 1 || !strings.Contains(got.stderr, "switched off: on trial") || !strings.Contains(got.stderr, "attune on") {
			t.Errorf("%s: %+v", command, got)
		}
		t.Setenv("KNOB", "thread.nice=1") // for tune
	}
}

// A program that runs is given back, and goes on.
func TestSwitchedOffWhileItRuns(t *testing.T) {
	ownSwitch(t)
	dir := t.TempDir()
	got := shellIn(t, dir, `mkfifo go
		$RUN sh -c 'read x <go; echo "went on $x"; exit 3' & p=$!
		until grep -q process_started t; do sleep 0.01; done
		$ATTUNE_BINARY off --reason 'on trial' >/dev/null
		until grep -q 'given back' log; do sleep 0.01; done
		echo by itself >go; wait $p`, filepath.Join(bin, "attune")+" run --quiet --timeline t --log-file log --report r.json --")
	if got.stdout != "went on by itself\n" || got.code != 3 {
		t.Errorf("%+v", got)
	}
	r := readReport(t, dir)
	const why = "switched off: everything is given back: by "
	if !slices.ContainsFunc(r.Remarks, func(m report.Remark) bool {
		return strings.Contains(m.Text, why) && strings.Contains(m.Text, ": on trial")
	}) {
		t.Errorf("remarks %+v", r.Remarks)
	}
}

// What is started with ATTUNE=off below attune is left alone, and nothing else.
func TestOffInTheEnvironmentOfAChild(t *testing.T) {
	dir := t.TempDir()
	got := shellIn(t, dir, `mkfifo go
		$RUN sh -c 'ATTUNE=off sleep 0.3; cat go' & p=$!
		until grep -q 'process_started.*/cat"' t; do sleep 0.01; done
		echo >go; wait $p`, filepath.Join(bin, "attune")+" run --quiet --timeline t --report r.json --")
	if got.code != 0 {
		t.Fatalf("%+v", got)
	}
	var seen []string
	for _, p := range readReport(t, dir).Processes {
		if p.Instrumented {
			seen = append(seen, filepath.Base(p.Exe))
		}
	}
	if all := strings.Join(seen, " "); strings.Count(all, "cat") != 1 || strings.Contains(all, "sleep") {
		t.Errorf("instrumented: %s, want cat and not sleep", all)
	}
}

// joinedSays starts a packed shell that reads a line, gives it the line when it has
// shared memory with its controller, and returns what it says then.
func joinedSays(t *testing.T, packed, script string) string {
	t.Helper()
	cmd := exec.CommandContext(patience.Context(t), packed, "-c", script)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, "the program to join its controller", func() bool {
		maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", cmd.Process.Pid))
		return err == nil && bytes.Contains(maps, []byte("memfd:attune"))
	})
	if err := errors.Join(stdin.Close(), cmd.Wait()); err != nil {
		t.Fatal(err)
	}
	return stdout.String()
}

// A packed program finds the switch before anything of Attune is unpacked.
func TestPackedProgramWhileSwitchedOff(t *testing.T) {
	ownSwitch(t)
	emptyPlaces(t)
	pack := mustPack(t, "/bin/sh", "--quiet")
	const ask = `read line; echo "${LD_PRELOAD:+with}"`
	if said := joinedSays(t, pack, ask); said != "with\n" {
		t.Fatalf("said %q, want it under Attune", said)
	}
	if err := permission.UserSwitch(settings.UserDir(os.Getenv)).TurnOff("on trial"); err != nil {
		t.Fatal(err)
	}
	if got := shell(t, pack+" -c '"+ask+"' </dev/null", ""); got.stdout != "\n" || got.code != 0 || got.stderr != "" {
		t.Errorf("%+v, want it alone", got)
	}
}
