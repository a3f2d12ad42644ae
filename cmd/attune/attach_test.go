// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/pty"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// Whoever names a parent, or a pattern, means all of its processes, the idle ones too:
// a line says of each that it was entered.
func TestAttachToAFamily(t *testing.T) {
	const family = `dir=$(mktemp -d); cp "$(command -v sleep)" $dir/tst-sleeper
		sh -c 'for i in 1 2 3; do '$dir'/tst-sleeper 100 & done; wait' & parent=$!
		until [ $(pgrep -c -P $parent) = 3 ]; do sleep 0.01; done
		for p in $(pgrep -P $parent); do until grep -q tst-slee /proc/$p/comm && grep -q libc /proc/$p/maps && grep -q '^State:.S' /proc/$p/status; do sleep 0.01; done; done
		$ATTUNE_BINARY attach $ATTACH 2>log & attached=$!
		for i in $(seq 6000); do [ $(grep -c '^attune: entered process' log) -ge $WANTED ] && break; sleep 0.02; done
		kill -INT $attached; wait $attached; cat log
		kill $(pgrep -P $parent) $parent; rm -r $dir`
	for name, row := range map[string]struct{ attach, wanted string }{
		"by its parent": {"$parent", "4"},
		"by a pattern":  {"--name tst-slee*", "3"},
	} {
		t.Run(name, func(t *testing.T) {
			script := strings.NewReplacer("$ATTACH", row.attach, "$WANTED", row.wanted).Replace(family)
			got := shell(t, script, "")
			if entered := strings.Count(got.stdout, "attune: entered process"); entered < int(row.wanted[0]-'0') || strings.Contains(got.stdout, "ran before") {
				t.Errorf("%d entered: %+v", entered, got)
			}
		})
	}
}

// TestStopOfAWatchedAttach: the live view gives its lines back before the shell has the terminal.
func TestStopOfAWatchedAttach(t *testing.T) {
	target := targets.Start(t, targets.Build(t, "testdata/steps.c"))
	tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	if err := tty.Resize(40, 120); err != nil {
		t.Fatal(err)
	}
	sh := exec.Command("bash", "--norc", "--noprofile", "-i")
	sh.Env = append(os.Environ(), "PS1=% ", "TERM=dumb")
	if err := tty.Start(sh); err != nil {
		t.Fatal(err)
	}
	const taken, released = "\x1b[1;34r", "\x1b[r"
	for _, step := range []struct{ keys, shown, before string }{
		{"", "% ", ""},
		{fmt.Sprintf("%s attach --watch %d\n", filepath.Join(bin, "attune"), target.PID), taken, ""},
		{"\x1a", "Stopped", released},
		{"fg\n", taken, ""},
		{"\x03", "so far", released}, // the report
		{"exit\n", "exit", ""},
	} {
		if err := tty.Type(step.keys); err != nil {
			t.Fatal(err)
		}
		shown, err := tty.Expect(step.shown, patience.Limit)
		if err != nil || !strings.Contains(shown, step.before) {
			t.Fatalf("after %q: %q lacks %q, %v", step.keys, shown, step.before, err)
		}
	}
	if err := sh.Wait(); err != nil {
		t.Error(err)
	}
}

// TestAttachWithoutReader: it ends in order when nobody reads what it says any more.
func TestAttachWithoutReader(t *testing.T) {
	got := shell(t, `sleep 100 & p=$!
		until [ "$(cat /proc/$p/comm)" = sleep ]; do sleep 0.01; done
		`+unread+`
		$ATTUNE_BINARY attach --report report.json $p 2>&3; code=$?
		kill $p; [ -s report.json ] || echo no report; exit $code`, "")
	if got.code != 0 || got.stdout != "" {
		t.Errorf("%+v", got)
	}
}

// What cannot be done is said at once: nobody waits for the end of a process that is not
// controlled.
func TestAttachRefuses(t *testing.T) {
	const second = `sleep 100 & p=$!
		until [ "$(cat /proc/$p/comm)" = sleep ]; do sleep 0.01; done
		$ATTUNE_BINARY attach $p 2>first & first=$!
		until grep -q entered first; do sleep 0.01; done
		timeout 60 $ATTUNE_BINARY attach $p; code=$?
		kill -INT $first; wait $first; kill $p; exit $code`
	rows := map[string]struct {
		script, says string
		code         int
	}{
		"held by another":   {second, "cannot be entered: another attune controls the process", 1},
		"not there":         {"$ATTUNE_BINARY attach 4194304", "attune: process 4194304: there is none, or it has ended\n", 1},
		"the whole machine": {"$ATTUNE_BINARY attach 1", "--name PATTERN", 2},
		"every name":        {"$ATTUNE_BINARY attach --name '*'", "not all", 2},
		"no such name":      {"$ATTUNE_BINARY attach --name no-such-program-at-all", "no process of yours", 2},
	}
	if comm, err := os.ReadFile("/proc/2/comm"); err == nil && string(comm) == "kthreadd\n" { // no container
		rows["a kernel thread"] = struct {
			script, says string
			code         int
		}{"$ATTUNE_BINARY attach 2", "attune: process 2 (kthreadd): it is a kernel thread\n", 1}
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			if got := shell(t, row.script, ""); got.code != row.code || !strings.Contains(got.stderr, row.says) {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestAttachToAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("takes root to be two users")
	}
	got := shell(t, `dir=$(mktemp -d); chmod 755 $dir; cp $ATTUNE_BINARY $dir/attune; sleep 100 & p=$!
		cd /; HOME=$dir timeout 60 setpriv --reuid 65534 --regid 65534 --clear-groups env -u XDG_STATE_HOME -u XDG_CACHE_HOME $dir/attune attach $p; code=$?
		kill $p; rm -r $dir; exit $code`, "")
	if got.code != 1 || !strings.Contains(got.stderr, "it belongs to user root: no permission") {
		t.Errorf("%+v", got)
	}
}

// A process that executes its program only after it was attached to is entered then, also if
// it could not be before, and a line says so.
func TestAttachBeforeTheProgram(t *testing.T) {
	program := targets.Build(t, "testdata/steps.c", "-g")
	static := targets.BuildText(t, "execs", `#include <unistd.h>
		int main(int argc, char **argv) { char byte; return argc > 1 && read(0, &byte, 1) == 1 ? execv(argv[1], argv + 1) : 1; }`, "-static")
	got := shell(t, "cd $(mktemp -d); mkfifo go; "+static+" "+program+` <go >out & p=$!; exec 3>go
		until [ "$(cat /proc/$p/comm)" = execs ]; do sleep 0.01; done
		$ATTUNE_BINARY attach --mode observe --probe 'steps:step' $p 2>log & a=$!
		for i in $(seq 3000); do grep -q "process $p (execs) is watched from outside" log && break; sleep 0.02; done
		echo >&3
		for i in $(seq 3000); do grep -q "entered process $p (steps)" log && break; sleep 0.02; done
		kill -INT $a; wait $a; cat log; kill $p`, "")
	outside, entered := strings.Index(got.stdout, "(execs) is watched from outside only"), strings.Index(got.stdout, "(steps)\n")
	if outside < 0 || entered < outside {
		t.Errorf("%+v", got)
	}
}

// A service that replaces itself, as php-fpm does at a graceful reload, goes on under
// control: attach ends with the last of its processes.
func TestAttachOutlivesWhoWasNamed(t *testing.T) {
	const service = `sh -c 'until [ -e again ]; do sleep 0.05; done; (until [ -e end ]; do sleep 0.05; done) & exit' & p=$!
		until [ "$(cat /proc/$p/comm)" = sh ]; do sleep 0.01; done
		$ATTUNE_BINARY attach $p 2>log & a=$!
		for i in $(seq 3000); do grep -q "entered process $p" log && break; sleep 0.01; done
		touch again; wait $p
		sleep 1; kill -0 $a && echo goes on
		touch end; wait $a; echo ended with $?; cat log; rm again end log`
	got := shell(t, "cd $(mktemp -d); "+service, "")
	if !strings.Contains(got.stdout, "goes on") || !strings.Contains(got.stdout, "ended with 0") {
		t.Errorf("%+v", got)
	}
}

// The switch is followed while processes are being entered, each of which takes its time:
// those that wait for their turn are not tried any more, and no line speaks of those that were.
func TestSwitchedOffWhileItAttaches(t *testing.T) {
	ownSwitch(t)
	many := runtime.NumCPU() + 30 // more than are entered until it is switched off
	program := targets.Build(t, "testdata/vforks.c")
	got := shell(t, fmt.Sprintf(`for i in $(seq %d); do %s & pids="$pids $!"; done
		for p in $pids; do until pgrep -P $p >/dev/null; do sleep 0.01; done; done
		$ATTUNE_BINARY attach --log-file lines --log-level info $pids 2>log & attached=$!
		until grep -q 'not entered yet' log || ! kill -0 $attached; do sleep 0.01; done
		$ATTUNE_BINARY off >/dev/null; wait $attached; echo ended with $?
		for p in $pids; do grep -q "let go before it was entered.* pid=$p " lines && echo tried; done; cat log >&2
		kill -9 $pids`, many, program), "")
	tried := strings.Count(got.stdout, "tried")
	if tried == 0 || tried >= many || !strings.Contains(got.stdout, "ended with 0\n") ||
		!strings.Contains(got.stderr, "switched off") || strings.Contains(got.stderr, "context canceled") {
		t.Errorf("%d of %d tried: %+v", tried, many, got)
	}
}
