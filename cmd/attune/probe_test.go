// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// probeTest has a program to measure in; $P is its pid.
type probeTest struct{ *targets.Target }

func newProbeTest(t *testing.T) *probeTest {
	t.Helper()
	return &probeTest{targets.Start(t, targets.Build(t, "testdata/steps.c", "-g"))}
}

func (k *probeTest) attune(t *testing.T, args string) outcome {
	t.Helper()
	return shell(t, "P="+strconv.Itoa(k.PID)+"; $ATTUNE_BINARY probe "+args, "")
}

func (k *probeTest) want(t *testing.T, args string, code int, words ...string) outcome {
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
	return got
}

// listed is an element of `attune probe list --json`.
type listed struct {
	ID        int
	PID       int
	Point     string
	State     string
	Mechanism string
	Hits      uint64
	Reason    string
}

func (k *probeTest) list(t *testing.T, processes string) (all []listed) {
	t.Helper()
	got := k.want(t, "list --json "+processes, 0)
	if err := json.Unmarshal([]byte(got.stdout), &all); err != nil {
		t.Fatalf("%v in %s", err, got.stdout)
	}
	return all
}

// event is a line of `attune probe watch --json`.
type event struct {
	Kind      string
	PID       int
	Point     string
	State     string
	Hits      uint64
	Min, Max  int64
	Value     string
	Values    map[string]any
	Mechanism string
}

// watch returns what a command that watches has seen until the program has ended, or
// enough, which ends the command; nil: never.
func (k *probeTest) watch(t *testing.T, enough func([]event) bool, args ...string) (events []event) {
	t.Helper()
	args = append([]string{"probe", "watch", "--json", "--interval", "100ms", strconv.Itoa(k.PID)}, args...)
	cmd := exec.CommandContext(patience.Context(t), filepath.Join(bin, "attune"), args...)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Errorf("%v in %s", err, lines.Text())
		}
		events = append(events, e)
		if enough != nil && enough(events) {
			enough = nil
			_ = cmd.Process.Signal(syscall.SIGINT) // it has ended where it saw enough at its end
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%q: %v\n%s", args, err, stderr.String())
	}
	return events
}

// sum adds up what a point counted in all intervals.
func sum(events []event, point string) (all event) {
	for _, e := range events {
		if e.Kind != "interval" || e.Point != point || e.Hits == 0 {
			continue
		}
		if e.Min != 0 && (all.Min == 0 || e.Min < all.Min) { // 0: a hit at the border of two intervals
			all.Min = e.Min
		}
		all.Max, all.Value = max(all.Max, e.Max), e.Value
		all.Hits += e.Hits
	}
	return all
}

func TestProbeWatch(t *testing.T) {
	k := newProbeTest(t)
	const steps, calls, single, nothing = "steps:step sum n=arg0 if n > 3", "libc.so.6:getppid", "steps:step take arg0 every 4", "steps:nothing"
	isHit := func(e event) bool { return e.Kind == "hit" }
	isRefusal := func(e event) bool { return e.Kind == "point" && e.Point == nothing && e.State == "refused" }
	events := k.watch(t, func(events []event) bool {
		got := sum(events, steps)
		return got.Min != 0 && got.Min <= 4 && got.Max >= 10 && sum(events, calls).Hits > 0 && slices.ContainsFunc(events, isHit) && slices.ContainsFunc(events, isRefusal)
	}, steps, calls, single, nothing)
	if got := sum(events, steps); got.Hits == 0 || got.Min != 4 || got.Max != 10 || got.Value != "n" {
		t.Errorf("steps: %+v", got)
	}
	if got := sum(events, calls); got.Hits == 0 || got.Value != "" {
		t.Errorf("library calls: %+v", got)
	}
	for _, e := range events {
		if n, ok := e.Values["arg0"].(float64); isHit(e) && (!ok || n < 1 || n > 10) {
			t.Errorf("hit with %v", e.Values)
		}
	}
	if err := k.End(t); err == nil || err.Error() != "exit status 3" {
		t.Errorf("the program ended with %v, want its own 3", err)
	}
}

// Points stay until they are removed, and what one command removes or stops
// watching stays with the others.
func TestProbeAddAndRemove(t *testing.T) {
	k := newProbeTest(t)
	k.want(t, "add $P steps:step libc.so.6:getppid steps:nothing", 0, "%1", "placed", "refused", "no such symbol: nothing")
	k.want(t, "add $P steps:step", 0, "%1")
	shell(t, unread+"$ATTUNE_BINARY probe add "+strconv.Itoa(k.PID)+" steps:none >&3", "") // its answer ends it
	before := k.list(t, "$P")
	if len(before) != 2 || before[0].Point != "steps:step" || before[0].State != "placed" || before[0].Mechanism == "" {
		t.Fatalf("%+v", before)
	}
	k.watch(t, func(events []event) bool { return sum(events, "steps:step").Hits > 0 })
	k.want(t, "watch --for 300ms $P steps:step", 0)
	k.want(t, "remove $P %2", 0, "removed: "+strconv.Itoa(k.PID)+" libc.so.6:getppid")
	after := k.list(t, "$P")
	if len(after) != 1 || after[0].ID != 1 || after[0].Hits <= before[0].Hits {
		t.Errorf("%+v, before %+v", after, before)
	}
	k.want(t, "remove $P %2", 1, "attune probe list")
	k.want(t, "remove $P", 0, "steps:step")
	if err := k.End(t); err == nil || err.Error() != "exit status 3" {
		t.Errorf("the program ended with %v, want its own 3", err)
	}
}

// With --follow, what a process forks is measured in as well, and a watch lasts
// as long as any of them, also where the point cannot be placed in one of them.
func TestProbeFollow(t *testing.T) {
	k := newProbeTest(t)
	watched := make(chan []event, 1)
	go func() { watched <- k.watch(t, nil, "--follow", "steps:step") }()
	processes := strconv.Itoa(k.PID)
	k.awaitHits(t, processes)
	if err := k.Say("e"); err != nil {
		t.Fatal(err)
	}
	other := k.Line(t)
	isRefusal := func(l listed) bool { return l.State == "refused" }
	patience.Until(t, "a refusal in "+other, func() bool { return slices.ContainsFunc(k.list(t, other), isRefusal) })
	for range 2 {
		if err := k.Say("f"); err != nil {
			t.Fatal(err)
		}
		child := k.Line(t)
		processes += " " + child
		k.awaitHits(t, child)
	}
	if err := k.End(t); err == nil || err.Error() != "exit status 3" {
		t.Errorf("the program ended with %v, want its own 3", err)
	}
	hits, ended := make(map[int]uint64), make(map[int]bool)
	for _, e := range <-watched {
		hits[e.PID] += e.Hits
		ended[e.PID] = ended[e.PID] || e.Kind == "ended"
	}
	for pid := range strings.FieldsSeq(processes) {
		if n, _ := strconv.Atoi(pid); hits[n] == 0 || !ended[n] {
			t.Errorf("process %s, of %s: %d hits, ended %v", pid, processes, hits[n], ended[n])
		}
	}
}

// awaitHits returns when the points in processes have hits.
func (k *probeTest) awaitHits(t *testing.T, processes string) {
	t.Helper()
	patience.Until(t, "hits in "+processes, func() bool {
		all := k.list(t, processes)
		return len(all) > 0 && !slices.ContainsFunc(all, func(l listed) bool { return l.Hits == 0 })
	})
}

// text is the program's code as it is in its memory.
func (k *probeTest) text(t *testing.T) []byte {
	t.Helper()
	images, err := objfile.Images(k.PID)
	if err != nil {
		t.Fatal(err)
	}
	program, err := elf.Open(images[0].Path)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	section := program.Section(".text")
	text := make([]byte, section.Size)
	if err := targets.ReadMemory(k.PID, images[0].Bias+section.Addr, text); err != nil {
		t.Fatal(err)
	}
	return text
}

// TestUnwrittenWatch: a watch that cannot write what it sees ends, and its points are out: in order
// where nobody reads it any more, else with an error.
func TestUnwrittenWatch(t *testing.T) {
	for name, row := range map[string]struct {
		script string
		code   int
		says   string
	}{
		"its reader has gone":      {"set -o pipefail; $ATTUNE_BINARY probe watch --interval 50ms $P steps:step | head -n 1", 0, "hits"},
		"that of its notes":        {unread + "$ATTUNE_BINARY probe watch $P steps:step 2>&3", 0, ""},
		"on a full disk":           {"$ATTUNE_BINARY probe watch --interval 50ms $P steps:step >/dev/full", 1, "no space left on device"},
		"documents on a full disk": {"$ATTUNE_BINARY probe watch --json $P 'steps:step take arg0' >/dev/full", 1, "no space left on device"},
	} {
		t.Run(name, func(t *testing.T) {
			k := newProbeTest(t)
			before := k.text(t)
			got := shell(t, "P="+strconv.Itoa(k.PID)+"; "+row.script, "")
			if got.code != row.code || !strings.Contains(got.stdout+got.stderr, row.says) {
				t.Errorf("%+v", got)
			}
			if !bytes.Equal(before, k.text(t)) {
				t.Error("the code of the program is not as before")
			}
		})
	}
}

func TestProbeUsage(t *testing.T) {
	k := newProbeTest(t)
	second := "it is a kernel thread"
	if stat, err := procid.ReadStat(2); err != nil || !stat.Kernel {
		second = "there is none" // in a container
	}
	tests := []struct {
		name, args string
		code       int
		want       string
	}{
		{"nothing", "watch", 2, "PID... POINT..."},
		{"no process", "add libc.so.6:malloc", 2, "PID... POINT..."},
		{"no point", "add $P", 2, "PID... POINT..."},
		{"nothing to watch", "watch $P", 2, "PID... POINT..."},
		{"not in quotes", "watch $P libc.so.6:write sum arg2", 2, "quotes"},
		{"twice", "add $P libc.so.6:write libc.so.6:write", 2, "given twice"},
		{"no number", "watch x libc.so.6:write", 2, "PID... POINT..."},
		{"process 0", "watch 0 libc.so.6:write", 2, "no process id"},
		{"nobody", "watch 2000000000 libc.so.6:write", 1, "attune ps"},
		{"kernel thread or none", "add 2 libc.so.6:write", 1, second},
		{"no such process to list", "list 2000000000", 1, "attune ps"},
		{"interval", "watch --interval 1ms $P libc.so.6:write", 2, "50ms"},
		{"negative time", "watch --for -1s $P libc.so.6:write", 2, "10s"},
		{"folded stacks of no point", "watch --folded /dev/null $P libc.so.6:write", 2, "no point has any"},
		{"drawn stacks of no point", "watch --flame /dev/null $P libc.so.6:write", 2, "by stack"},
		{"nothing to remove", "remove $P", 1, "attune probe list"},
		{"nothing that can be placed", "watch $P steps:nothing", 1, "none of the 1"},
		{"unknown command", "remov $P", 2, "did you mean `attune probe remove`"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { k.want(t, tt.args, tt.code, tt.want) })
	}
}

// TestProbeOfAnotherUser: whose a process is, and what to do, is said in words.
func TestProbeOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("takes root to be two users")
	}
	got := shell(t, `dir=$(mktemp -d); chmod 755 $dir; cp $ATTUNE_BINARY $dir/attune; sleep 100 & p=$!
		cd /; HOME=$dir timeout 60 setpriv --reuid 65534 --regid 65534 --clear-groups env -u XDG_STATE_HOME -u XDG_CACHE_HOME $dir/attune probe watch $p malloc; code=$?
		kill $p; rm -r $dir; exit $code`, "")
	if got.code != 1 || !strings.Contains(got.stderr, "belongs to user root: no permission to look into it; run as that user") {
		t.Errorf("%+v", got)
	}
}

func TestProbeCompletion(t *testing.T) {
	k := newProbeTest(t)
	for words, want := range map[string]string{
		"''": strconv.Itoa(k.PID) + "\tsteps", "$P libc.so.6:mallo": "libc.so.6:malloc\n",
	} {
		got := shell(t, "P="+strconv.Itoa(k.PID)+"; $ATTUNE_BINARY __complete probe watch "+words, "")
		if !strings.Contains(got.stdout, want) {
			t.Errorf("%s: %+v lacks %q", words, got, want)
		}
	}
}
