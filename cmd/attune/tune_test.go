// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/cmd/attune/tune"
	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// tuneTest has a program to change. The journal is the user's: as root, that of
// the machine comes before the environment's.
type tuneTest struct {
	*targets.Target
	pipe string // its own; others it shares with this test
}

func newTuneTest(t *testing.T) *tuneTest {
	t.Helper()
	program := targets.Build(t, "../../controller/actuate/system/testdata/keeper.c")
	target := targets.Start(t, program)
	fds := strings.Fields(target.Ask(t, "fds"))
	return &tuneTest{target, fds[len(fds)-1]}
}

// attune runs the command; $P is the program's pid, $R its pipe.
func (k *tuneTest) attune(t *testing.T, args string) outcome {
	t.Helper()
	return shell(t, "P="+strconv.Itoa(k.PID)+" R="+k.pipe+"; $ATTUNE_BINARY "+args, "")
}

func (k *tuneTest) want(t *testing.T, args string, code int, words ...string) outcome {
	t.Helper()
	got := k.attune(t, args)
	if got.code != code {
		t.Fatalf("%s: code %d, want %d: %+v", args, got.code, code, got)
	}
	for _, word := range words {
		if !strings.Contains(got.stdout+got.stderr, word) {
			t.Errorf("%s: %+v lacks %q", args, got, word)
		}
	}
	if strings.Count(got.stderr, "\n") > 1 {
		t.Errorf("%s: more than a line of errors: %s", args, got.stderr)
	}
	return got
}

// changes of the program, by the command's own list.
func (k *tuneTest) changes(t *testing.T) []actuate.InForce {
	t.Helper()
	var all, mine []actuate.InForce
	got := k.want(t, "changes --json", 0)
	if err := json.Unmarshal([]byte(got.stdout), &all); err != nil {
		t.Fatalf("%v in %s", err, got.stdout)
	}
	for _, c := range all {
		if c.PID == k.PID {
			mine = append(mine, c)
		}
	}
	return mine
}

func TestTuneAndUndo(t *testing.T) {
	k := newTuneTest(t)
	k.want(t, "tune --dry-run $P pipe.size@$R=128K", 0, "would change", "65536 → 131072", "can be undone")
	if got := k.Ask(t, "pipe"); got != "65536" || len(k.changes(t)) != 0 {
		t.Fatalf("a dry run changed the size to %s", got)
	}
	k.want(t, "tune $P pipe.size@$R=128K thread.policy=batch", 0, "65536 → 131072", "other → batch", "attune undo ")
	k.want(t, "tune $P pipe.size@$R=100000", 0, "unchanged", "is 131072 already")
	changes := k.changes(t)
	if len(changes) != 2 || changes[0].Knob != "pipe.size" || changes[0].Where != "fd "+k.pipe || changes[0].Old != "65536" || changes[1].Where != "4 threads" {
		t.Fatalf("%+v", changes)
	}
	if got := k.Ask(t, "pipe"); got != "131072" {
		t.Errorf("the program has %s", got)
	}
	k.want(t, "changes", 0, changes[0].ID, "pipe.size", "65536", "131072", "hand")
	k.want(t, "__complete undo ''", 0, changes[1].ID+"\tthread.policy")
	// A run that starts and ends in another terminal leaves it alone.
	k.want(t, "run --quiet -- true", 0)
	if got := k.Ask(t, "pipe"); got != "131072" {
		t.Errorf("attune run restored %s", got)
	}
	k.want(t, "undo "+changes[0].ID+" "+changes[1].ID, 0, "undone: change "+changes[0].ID)
	if got := k.Ask(t, "pipe"); got != "65536" || len(k.changes(t)) != 0 {
		t.Errorf("the program has %s after undo", got)
	}
	k.want(t, "undo "+changes[0].ID, 1, "no such change", "see `attune changes`")
	if got := k.want(t, "changes", 0); got.stdout == "" && got.stderr != "Nothing is changed.\n" {
		t.Errorf("without changes: %+v", got)
	}
}

// One that cannot be made takes the others back.
func TestTuneAllOrNothing(t *testing.T) {
	k := newTuneTest(t)
	k.want(t, "tune $P pipe.size@$R=128K socket.tcp_nodelay@99=1", 1, "fd 99", "nothing was changed")
	if got := k.Ask(t, "pipe"); got != "65536" || len(k.changes(t)) != 0 {
		t.Errorf("the program has %s", got)
	}
	k.want(t, "tune $P 2000000000 pipe.size@$R=128K", 1, "process 2000000000", "there is none")
	if got := k.Ask(t, "pipe"); got != "65536" {
		t.Errorf("the program has %s", got)
	}
}

// What this user could not take back is done where that is wanted.
func TestTuneWithoutUndo(t *testing.T) {
	command := []string{targets.Build(t, "../../controller/actuate/system/testdata/keeper.c")}
	as := "" // an ordinary user
	if os.Geteuid() == 0 {
		as = "setpriv --bounding-set=-all -- "
		command = append(strings.Fields(as), command...)
	}
	target := targets.StartCommand(t, exec.Command(command[0], command[1:]...))
	for _, row := range []struct {
		flag, says string
		code       int
	}{
		{"", "use --no-undo to change it anyway", 1},
		{"--no-undo ", "no way back: raising the hard limit", 0},
	} {
		got := shell(t, fmt.Sprint(as, "$ATTUNE_BINARY tune ", row.flag, target.PID, " limit.core=0:0"), "")
		if got.code != row.code || !strings.Contains(got.stdout+got.stderr, row.says) {
			t.Errorf("%+v, want %d and %q", got, row.code, row.says)
		}
	}
}

func TestTuneJSON(t *testing.T) {
	k := newTuneTest(t)
	var lines []tune.Answer
	got := k.want(t, "tune --json $P pipe.size@$R=128K limit.core=0", 0)
	if err := json.Unmarshal([]byte(got.stdout), &lines); err != nil || len(lines) != 2 {
		t.Fatalf("%v in %s", err, got.stdout)
	}
	if l := lines[0]; l.State != tune.StateChanged || l.ID == "" || l.Old != "65536" || l.New != "131072" || l.PID != k.PID || l.Program != "keeper" {
		t.Errorf("%+v", l)
	}
	k.want(t, "undo "+lines[0].ID, 0)
}

func TestTuneUsage(t *testing.T) {
	k := newTuneTest(t)
	tests := []struct {
		name, args string
		code       int
		want       string
	}{
		{"nothing", "tune", 2, "see `attune tune --help`"},
		{"unknown", "tune $P sock.nodelay=1", 2, "did you mean socket.tcp_nodelay"},
		{"value", "tune $P thread.nice=100", 2, "from -20 to 19"},
		{"flag", "tune --dry $P thread.nice=1", 2, "unknown flag"},
		{"kernel thread or none", "tune 2 thread.nice=1", 1, "process 2: "},
		{"undo nothing", "undo", 2, "either ids or --all"},
		{"undo both", "undo --all 3", 2, "either ids or --all"},
		{"list", "tune --list", 0, "socket.tcp_nodelay"},
		{"list for programs", "tune --list --json", 0, `"name": "socket.tcp_nodelay"`},
		{"completion of names", "__complete tune $P thread.n", 0, "thread.nice=\t"},
		{"completion of words", "__complete tune $P glibc.stdio.mode=", 0, "glibc.stdio.mode=full"},
		{"completion of values", "__complete tune $P pipe.size@0=", 0, "pipe.size@0=1M"},
		{"completion of processes", "__complete tune ''", 0, strconv.Itoa(k.PID) + "\tkeeper"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { k.want(t, tt.args, tt.code, tt.want) })
	}
}
