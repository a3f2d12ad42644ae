// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/system"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

func TestTuneArguments(t *testing.T) {
	tests := []struct {
		name     string
		args     []string
		pids     []int
		settings []setting
		err      string
	}{
		{
			"several", []string{"7", "THREAD.nice=5", "8", "pipe.size@3=1M"}, []int{7, 8},
			[]setting{{"thread.nice", "5", system.Everywhere, false, 0, false}, {"pipe.size", "1M", 3, false, 0, false}}, "",
		},
		{"value with an equals sign", []string{"7", "socket.tcp_congestion=a=b"}, []int{7}, []setting{{"socket.tcp_congestion", "a=b", system.Everywhere, false, 0, false}}, ""},
		{"of a library", []string{"7", "Gomp.spin_count=0"}, []int{7}, []setting{{"gomp.spin_count", "0", system.Everywhere, true, 0, false}}, ""},
		{"with a unit", []string{"7", "glibc.stdio.size@7=64K"}, []int{7}, []setting{{"glibc.stdio.size@7", "64K", system.Everywhere, true, 65536, false}}, ""},
		{"a word of a library", []string{"7", "glibc.stdio.mode=line"}, []int{7}, []setting{{"glibc.stdio.mode", "line", system.Everywhere, true, 1, false}}, ""},
		{"of MPI", []string{"7", "MPI_T.Some_limit=64K"}, []int{7}, []setting{{"mpi_t.Some_limit", "64K", system.Everywhere, false, 0, true}}, ""},
		{"of MPI without a name", []string{"7", "mpi_t.=1"}, nil, nil, `unknown knob "mpi_t."`},
		{"out of bounds", []string{"7", "omp.num_threads=0"}, nil, nil, "outside 1..65536"},
		{"no number", []string{"7", "omp.num_threads=many"}, nil, nil, "whole number"},
		{"nothing", nil, nil, nil, "no process id"},
		{"no process", []string{"thread.nice=5"}, nil, nil, "no process id"},
		{"no setting", []string{"7"}, nil, nil, "nothing to change"},
		{"a word", []string{"seven", "thread.nice=5"}, nil, nil, "neither a process id"},
		{"process 0", []string{"0", "thread.nice=5"}, nil, nil, "neither a process id"},
		{"huge process", []string{"99999999999999999999", "thread.nice=5"}, nil, nil, "neither a process id"},
		{"unknown knob", []string{"7", "colour=5"}, nil, nil, `unknown knob "colour"`},
		{"no name", []string{"7", "=5"}, nil, nil, `unknown knob ""`},
		{"bad value", []string{"7", "thread.nice=nice"}, nil, nil, "bad value"},
		{"bad number", []string{"7", "pipe.size@x=5"}, nil, nil, "no thread or descriptor number"},
		{"negative number", []string{"7", "pipe.size@-1=5"}, nil, nil, "no thread or descriptor number"},
		{"number of a limit", []string{"7", "limit.core@1=5"}, nil, nil, "as a whole"},
		{"twice", []string{"7", "thread.nice=5", "thread.nice=6"}, nil, nil, "given twice"},
		{"process twice", []string{"7", "7", "thread.nice=5"}, nil, nil, "given twice"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pids, settings, err := tuneArguments(tt.args)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%v, want %q", err, tt.err)
				}
				return
			}
			if diff := cmp.Diff(tt.pids, pids); diff != "" || err != nil {
				t.Error(diff, err)
			}
			if diff := cmp.Diff(tt.settings, settings, cmp.AllowUnexported(setting{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

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

func TestTuneJSON(t *testing.T) {
	k := newTuneTest(t)
	var lines []tuned
	got := k.want(t, "tune --json $P pipe.size@$R=128K limit.core=0", 0)
	if err := json.Unmarshal([]byte(got.stdout), &lines); err != nil || len(lines) != 2 {
		t.Fatalf("%v in %s", err, got.stdout)
	}
	if l := lines[0]; l.State != stateChanged || l.ID == "" || l.Old != "65536" || l.New != "131072" || l.PID != k.PID || l.Program != "keeper" {
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
		{"completion of names", "__complete tune $P thread.n", 0, "thread.nice=\t"},
		{"completion of words", "__complete tune $P glibc.stdio.mode=", 0, "glibc.stdio.mode=full"},
		{"completion of values", "__complete tune $P pipe.size@0=", 0, "pipe.size@0=1M"},
		{"completion of processes", "__complete tune ''", 0, strconv.Itoa(k.PID) + "\tkeeper"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { k.want(t, tt.args, tt.code, tt.want) })
	}
}
