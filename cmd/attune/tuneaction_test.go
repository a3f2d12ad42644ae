// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/cmd/attune/internal/permission"
	"github.com/attune-hpc/attune/cmd/attune/tune"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// insideTest is a program of functions and variables to change.
type insideTest struct {
	*tuneTest
	library string
}

func newInsideTest(t *testing.T) *insideTest {
	t.Helper()
	const source = "../../controller/actuate/testdata/"
	program := targets.Build(t, source+"tuned.c", source+"tuned_other.c")
	library := targets.BuildWith(t, "gcc", "library.so", source+"library.c", "-shared", "-fPIC")
	return &insideTest{&tuneTest{Target: targets.Start(t, program)}, library}
}

// attune runs the command; $L is the library.
func (i *insideTest) want(t *testing.T, args string, code int, words ...string) outcome {
	t.Helper()
	return i.tuneTest.want(t, strings.ReplaceAll(args, "$L", i.library), code, words...)
}

func TestTuneSet(t *testing.T) {
	i := newInsideTest(t)
	i.want(t, "tune set --dry-run $P tuned:counter@tuned.c=5", 0, "would change", "1 → 5", "memory write", "can be undone")
	i.want(t, "tune set $P tuned:counter@tuned.c=5 tuned:own=7", 0, "1 → 5", "by memory write", "own of process", "threads that start later", "attune undo ")
	if got := i.Ask(t, "counter"); got != "5 2" {
		t.Errorf("the program has %s", got)
	}
	i.want(t, "tune set $P tuned:counter@tuned.c=6 --if-old 4", 1, "counter@tuned.c is 5, not 4 as the change requires", "nothing was changed")
	i.want(t, "tune set $P tuned:counter=6", 1, "ambiguous", "counter@tuned_other.c")
	// The command is long gone: the journal alone undoes it.
	i.want(t, "changes", 0, "tuned:counter@tuned.c", "tuned:own")
	for _, c := range i.changes(t) {
		i.want(t, "undo "+c.ID, 0, "undone")
	}
	if got := i.Ask(t, "counter") + " " + i.Ask(t, "own"); got != "1 2 10 10" {
		t.Errorf("the program has %s afterwards", got)
	}
}

func TestTuneCall(t *testing.T) {
	i := newInsideTest(t)
	i.want(t, "tune call --returns real $P tuned:mixed 1 2.5 text 4.0 -- -9", 0, "returned 11;", "ptrace at a safe place", "stopped")
	if got := i.Ask(t, "last"); got != "1 2.5 text 4 -9" {
		t.Errorf("the program saw %s", got)
	}
	// What the debug information says of the types goes for numbers without a point.
	i.want(t, "tune call $P tuned:mixed 3 2 text 5 -- -9", 0, "returned 13;")
	if got := i.Ask(t, "last"); got != "3 2 text 5 -9" {
		t.Errorf("the program saw %s", got)
	}
	i.want(t, "tune call $P tuned:mixed 1.5", 1, "parameter 0 of mixed is a", "takes no real number")
	i.want(t, "tune call $P mixed 3 2 text 5 -- -9", 0, "done: call mixed in process")
	i.want(t, "tune call --dry-run $P tuned:mixed", 0, "would change", "cannot be taken back")
	i.want(t, "tune call --expect 1 $P libc.so.6:getpid", 1, "expected 1")
	if left := i.changes(t); len(left) != 0 {
		t.Errorf("calls are listed: %+v", left)
	}
}

// A call is made where a function is entered or left, by the thread that does.
func TestTuneCallAtFunction(t *testing.T) {
	i := newInsideTest(t)
	i.want(t, "tune call --at tuned:twice --wait 50ms $P tuned:thread_id", 1, "refused", "came to the function")
	i.want(t, "tune call --at tuned:twice --after tuned:twice $P tuned:thread_id", 2, "either --at or --after")
	i.want(t, "tune call --at tuned:nowhere $P tuned:thread_id", 1, "safe point", "no such symbol")
	i.want(t, "__complete tune call $P --at tuned:thread", 0, "tuned:thread_id")
	for _, row := range []struct{ flag, where string }{{"--at", "entry of usleep"}, {"--after", "exit of usleep"}} {
		second := i.Ask(t, "second")
		i.want(t, "tune call --wait 20s "+row.flag+" libc.so.6:usleep $P tuned:thread_id", 0, row.where+", thread "+second, "returned "+second)
	}
}

func TestTuneLoad(t *testing.T) {
	i := newInsideTest(t)
	i.want(t, "tune load $P $L --symbol from_library --close-on-undo", 0, "not loaded → loaded, from_library at 0x", "attune undo ")
	i.want(t, "tune load --dry-run $P $L", 0, "loaded already → loaded", "constructors do not run again")
	i.want(t, "tune call $P library.so:from_library", 0, "returned 4711")
	i.want(t, "undo "+i.changes(t)[0].ID, 0, "undone")
	i.want(t, "tune call $P library.so:from_library", 1, "no such object")
}

// What is loaded later finds what a library that is loaded globally has.
func TestTuneLoadGlobally(t *testing.T) {
	i := newInsideTest(t)
	needs := targets.BuildText(t, "needing", "int from_library(void); int needing(void); int needing(void) { return 2 * from_library(); }", "-shared", "-fPIC")
	i.want(t, "tune load $P $L", 0)
	i.want(t, "tune load $P "+needs, 1, "undefined symbol: from_library")
	i.want(t, "tune load --global $P $L", 0)
	i.want(t, "tune load $P "+needs, 0)
	i.want(t, "tune call $P needing:needing", 0, "returned 9422")
}

// One process of several in which it cannot be done takes it back in all.
func TestTuneSeveralProcesses(t *testing.T) {
	first, second := newInsideTest(t), newInsideTest(t)
	both := fmt.Sprintf("%d %d", first.PID, second.PID)
	first.want(t, "tune set "+both+" tuned:ratio=2.5", 0)
	if a, b := first.Ask(t, "ratio"), second.Ask(t, "ratio"); a != "2.5" || b != "2.5" {
		t.Errorf("the programs have %s and %s", a, b)
	}
	first.want(t, "undo "+second.changes(t)[0].ID, 0)
	got := first.want(t, "tune set --json "+both+" tuned:ratio=3.5 --if-old 2.5", 1, "nothing was changed", strconv.Itoa(second.PID))
	if a := first.Ask(t, "ratio"); a != "2.5" || got.stdout != "" {
		t.Errorf("the first program has %s: %s", a, got.stdout)
	}
	first.want(t, "undo "+first.changes(t)[0].ID, 0)
	// getpid is not the same in both: the second fails, the first is told.
	got = first.want(t, fmt.Sprintf("tune call --json --expect %d %s libc.so.6:getpid", first.PID, both), 1)
	var lines []tune.Answer
	if err := json.Unmarshal([]byte(got.stdout), &lines); err != nil || len(lines) != 2 {
		t.Fatalf("%v in %s", err, got.stdout)
	}
	if lines[0].State != tune.StateFailed || !strings.Contains(lines[0].Reason, "cannot be taken back") || lines[1].State != tune.StateFailed {
		t.Errorf("%+v", lines)
	}
}

func TestTunePolicy(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may choose the policy file")
	}
	i := newInsideTest(t)
	file := filepath.Join(t.TempDir(), "policy.yaml")
	files.Write(t, file, "rules:\n  - deny: [call]\n    names: ['libc*:*']\n    reason: ask the operators\n", 0o600)
	t.Setenv(permission.PolicyVariable, file)
	i.want(t, "tune call $P libc.so.6:getpid", 1, "rule 1 of "+file+": ask the operators")
	i.want(t, "tune call $P tuned:thread_id", 0, "returned")
	files.Write(t, file, "rules: 5\n", 0o600)
	i.want(t, "tune $P limit.core=0", 1, "policy "+file)
}

func TestTuneActionUsage(t *testing.T) {
	i := newInsideTest(t)
	for _, row := range []struct {
		args string
		code int
		want string
	}{
		{"tune set tuned:counter=5", 2, "no process id given"},
		{"tune set $P", 2, "OBJECT:VARIABLE=VALUE"},
		{"tune set $P tuned:counter", 2, "OBJECT:VARIABLE=VALUE"},
		{"tune set $P tuned:counter=many", 2, "is no number"},
		{"tune set 4294967297 tuned:ratio=2.5", 2, "is no process id"},
		{"tune call $P", 2, "no function given"},
		{"tune call --returns text $P tuned:spoil", 2, "neither integer"},
		{"tune load $P", 2, "one file"},
		{"__complete tune ''", 0, "set\t"},
		{"__complete tune set $P tuned:coun", 0, "tuned:counter="},
		{"__complete tune call $P tun", 0, "tuned:\n"},
		{"__complete tune call $P tuned:mix", 0, "tuned:mixed\n"},
		{"__complete tune call ''", 0, strconv.Itoa(i.PID) + "\ttuned"},
	} {
		t.Run(row.args, func(t *testing.T) { i.want(t, row.args, row.code, row.want) })
	}
}

func TestTuneFunctions(t *testing.T) {
	i := newInsideTest(t)
	i.want(t, "tune replace --dry-run $P tuned:plain=tuned:twice", 0, "would change", "entry patch", "can be undone")
	i.want(t, "tune replace $P tuned:plain=tuned:twice", 0, "by entry patch", "attune undo ")
	i.want(t, "tune replace --load $P tuned:frozen=$L:from_library", 1, "takes 1 parameters", "use --force to replace it anyway", "but to load library.so, which stays")
	i.want(t, "tune param $P tuned:half 0=100.0", 0, "as passed → 100")
	i.want(t, "tune insert $P tuned:plain tuned:notice arg0", 0, "calls tuned:notice")
	i.want(t, "tune remove $P tuned:plain", 1, "excludes it")
	if got := i.Ask(t, "functions"); got != "10 1010 50" {
		t.Errorf("the program computes %s", got)
	}
	changes := i.changes(t)
	if len(changes) != 3 || changes[0].Old != "tuned:plain" || changes[0].New != "tuned:twice" || changes[1].Where != "parameter 0 of tuned:half" {
		t.Fatalf("%+v", changes)
	}
	for _, step := range []struct {
		at   int
		want string
	}{{0, "5 1005 50"}, {2, "5 1005 50"}, {1, "5 1005 2.5"}} {
		i.want(t, "undo "+changes[step.at].ID, 0, "undone")
		if got := i.Ask(t, "functions"); got != step.want {
			t.Errorf("without %s the program computes %s, want %s", changes[step.at].Knob, got, step.want)
		}
	}
}

// A call that is inserted at the exit gets what the function returns.
func TestTuneInsertAtExit(t *testing.T) {
	i := newInsideTest(t)
	i.want(t, "tune set $P tuned:counter@tuned.c=3", 0)
	i.want(t, "tune insert --at-exit $P tuned:plain tuned:notice result", 0, "calls tuned:notice")
	if got := i.Ask(t, "functions") + ", noticed " + i.Ask(t, "seen"); got != "15 1015 2.5, noticed 30" {
		t.Errorf("the program computes %s", got)
	}
	changes := i.changes(t)
	if len(changes) != 2 || changes[1].Where != "exit of tuned:plain" {
		t.Fatalf("%+v", changes)
	}
	i.want(t, "undo "+changes[1].ID, 0, "undone")
	if got := i.Ask(t, "functions") + ", noticed " + i.Ask(t, "seen"); got != "15 1015 2.5, noticed 30" {
		t.Errorf("afterwards the program computes %s", got)
	}
	i.want(t, "tune insert $P tuned:plain tuned:notice result", 1, "at the exit only")
}

func TestTuneFunctionUsage(t *testing.T) {
	i := newInsideTest(t)
	for args, want := range map[string]string{
		"tune replace $P tuned:plain":                "OBJECT:OLD=OBJECT:NEW",
		"tune replace --load $P tuned:plain=x.so:y":  "no path",
		"tune remove $P":                             "give one OBJECT:FUNCTION",
		"tune remove --returns no $P tuned:plain":    "--returns",
		"tune param $P tuned:plain":                  "NUMBER=VALUE",
		"tune param $P tuned:plain x=1":              "is no NUMBER=VALUE",
		"tune param --if-old x $P tuned:plain 0=1":   "--if-old",
		"tune insert $P tuned:plain":                 "OBJECT:CALLED",
		"tune remove --called-from : $P tuned:plain": "--called-from",
	} {
		t.Run(args, func(t *testing.T) { i.want(t, args, 2, want) })
	}
}
