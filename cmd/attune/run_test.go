// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/pty"
)

// Package launch tests this in depth; here it is about what Analyzer,
// controller, library and BPF add to it.
func TestProgramSeesNoDifference(t *testing.T) { seesNoDifference(t, quietly()) }

// seesNoDifference compares what a program and its parent see under a command of
// attune with what they see without.
func seesNoDifference(t *testing.T, run string) {
	t.Helper()
	for _, tt := range differences {
		t.Run(tt.name, func(t *testing.T) {
			want, got := shell(t, tt.script, "/usr/bin/env"), shell(t, tt.script, run)
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(outcome{})); diff != "" {
				t.Errorf("direct -, attuned +:\n%s", diff)
			}
		})
	}
}

// visible is the environment but for what is to be there with attune only.
const visible = `grep -vE '^(ATTUNE_JOB|ATTUNE_SOCKET|ATTUNE_FILTERS|LD_PRELOAD|ASAN_OPTIONS|_|XDG_)'`

// differences are scripts in which something could be seen, with $RUN before the program.
var differences = []struct{ name, script string }{
	{"input and output", `printf 'x\0y' | $RUN cat`},
	{"exit code", `$RUN sh -c 'echo out; echo err >&2; exit 3'`},
	{"death by signal", `ulimit -c 0; exec $RUN sh -c 'kill -SEGV $$'`},
	{"descriptors", `exec 9>f; $RUN bash -c 'cd /proc/$$/fd; for n in *; do [ -e $n ] && echo $n; done' </dev/null`},
	{"closed streams", `$RUN cat <&-; echo $?; $RUN echo x >&-; echo $?`},
	{"limits", `ulimit -S -n 99 -l 32; $RUN cat /proc/self/limits`},
	{"size of files", `ulimit -f 100; $RUN sh -c 'sleep 0.1; /bin/echo out; exit 3'`},
	{"file too large", `ulimit -c 0 -f 1; exec $RUN sh -c 'yes >f; echo $?'`},
	{"signal state", `trap '' HUP QUIT USR1; $RUN grep -E '^Sig(Ign|Blk|Cgt)' /proc/self/status`},
	{"environment", `env -i A=1 B= PATH="$PATH" HOME=/x $RUN env | ` + visible},
	{"umask and directory", `umask 027; mkdir d; cd d; $RUN sh -c 'umask; basename $PWD'`},
	{"deleted directory", `mkdir d; cd d; rmdir ../d; $RUN echo ok`},
	{"process group", `$RUN sh -c 'read -r a b c d pgrp sid rest </proc/self/stat; echo $((pgrp == '$$')) $((sid == '$$'))'`},
	{"nothing is left of a pipeline", `$RUN yes | head -1; echo ${PIPESTATUS[0]}`},
	{"children", `$RUN sh -c 'for i in 1 2 3; do sh -c "exit $i"; echo $?; done'`},
}

// readReport decodes the report r.json of a run in dir.
func readReport(t *testing.T, dir string) report.Report {
	t.Helper()
	text := files.Read(t, filepath.Join(dir, "r.json"))
	var r report.Report
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return r
}

func TestReport(t *testing.T) {
	code := func(n int) report.Exit { return report.Exit{Code: &n} }
	tests := []struct {
		name, script string
		want         report.Exit
		code         int
	}{
		{"success", `exec $RUN sh -c 'exit 0'`, code(0), 0},
		{"failure", `exec $RUN sh -c 'exit 7'`, code(7), 7},
		{"killed", `exec $RUN sh -c 'kill -KILL $$'`, report.Exit{Signal: "SIGKILL"}, -1},
		{"killed through attune", `$RUN sleep 100 & p=$!; until pgrep -P $p sleep >/dev/null; do :; done; kill $p; wait $p`,
			report.Exit{Signal: "SIGTERM"}, 143},
		{"standard error closed", `exec 2>&-; exec $RUN sh -c 'exit 5'`, code(5), 5},
		{"standard error full", `exec 2>/dev/full; exec $RUN sh -c 'exit 5'`, code(5), 5},
		{"standard error a broken pipe", `{ $RUN sh -c 'exit 5'; echo $? >code; } 2> >(exec 0<&-); exit $(cat code)`, code(5), 5},
		{"directory deleted meanwhile", `mkdir d; cd d; exec $RUN sh -c 'rmdir ../d; exit 5'`, code(5), 5},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			got := shellIn(t, dir, tt.script, filepath.Join(bin, "attune")+" run --report "+dir+"/r.json --")
			if got.code != tt.code {
				t.Errorf("%+v, want exit code %d", got, tt.code)
			}
			r := readReport(t, dir)
			if diff := cmp.Diff(tt.want, r.Exit); diff != "" {
				t.Errorf("exit: %s", diff)
			}
			if !r.Finished || len(r.Processes) == 0 || r.WallSeconds <= 0 {
				t.Errorf("incomplete: finished %v, %d processes, %v s", r.Finished, len(r.Processes), r.WallSeconds)
			}
		})
	}
}

// The memory is attune's own, not that of the process that started it.
func TestReportOfMemory(t *testing.T) {
	ballast := make([]byte, 512<<20)
	for i := 0; i < len(ballast); i += os.Getpagesize() {
		ballast[i] = 1
	}
	dir := t.TempDir()
	shellIn(t, dir, `exec $RUN sleep 0.1`, filepath.Join(bin, "attune")+" run --report "+dir+"/r.json --")
	runtime.KeepAlive(ballast)
	if peak := readReport(t, dir).Overhead.MemoryPeakBytes; peak == 0 || peak > 256<<20 {
		t.Errorf("%d MB", peak>>20)
	}
}

// The descriptors that these names mean are let go while the program runs.
func TestReportIntoAStream(t *testing.T) {
	tests := []struct{ name, script string }{
		{"standard output by a dash", `$RUN --report - -- echo out | cat >r`},
		{"standard output, a pipe", `$RUN --report /dev/stdout -- echo out | cat >r`},
		{"standard output, a file", `$RUN --report /dev/stdout -- echo out >r`},
		{"an inherited descriptor", `$RUN --report /dev/fd/3 -- sh -c 'exec 3>&-; echo out >>r' 3>>r`},
		{"process substitution", `$RUN --report >(cat >>r; touch end) -- sh -c 'echo out >r'; until [ -e end ]; do :; done`},
		{"a FIFO", `mkfifo f; exec 4<>f; cat <f >>r 4>&- & $RUN --report f -- sh -c 'echo out >r' 4>&-; exec 4>&-; wait`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			shellIn(t, dir, tt.script, filepath.Join(bin, "attune")+" run --quiet")
			text := files.Read(t, filepath.Join(dir, "r"))
			document, after := strings.CutPrefix(string(text), "out\n")
			var r report.Report
			if err := json.Unmarshal([]byte(document), &r); err != nil || !after || !r.Finished {
				t.Errorf("%v in %q", err, text)
			}
		})
	}
}

func TestTextAtTheEnd(t *testing.T) {
	got := shell(t, `$ATTUNE_BINARY run -- echo hello`, "")
	if got.stdout != "hello\n" || !strings.Contains(got.stderr, "echo ran") {
		t.Errorf("%+v", got)
	}
}

func TestTimeline(t *testing.T) {
	dir := t.TempDir()
	shellIn(t, dir, `$ATTUNE_BINARY run --quiet --timeline t -- sleep 0.3`, "")
	f, err := os.Open(filepath.Join(dir, "t"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	kinds := map[string]bool{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var e report.Entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%v in %q", err, lines.Text())
		}
		kinds[e.Kind] = true
	}
	for _, kind := range []string{"session_started", "process_started", "session_ended"} {
		if !kinds[kind] {
			t.Errorf("no %s among %v", kind, kinds)
		}
	}
}

func TestUsageErrorsComeBeforeTheProgram(t *testing.T) {
	tests := []struct{ name, args, want string }{
		{"no command", "run", "no program to run; write: attune run -- CMD"},
		{"unknown command", "frobnicate", `unknown command "frobnicate"; see`},
		{"mistyped command", "runn", "did you mean `attune run`?"},
		{"unknown flag", "run --frob -- touch started", "see `attune run --help`"},
		{"mode", "run --mode fast -- touch started", "use one of observe, advise, tune"},
		{"missing tunlet", "run --tunlet nothing -- touch started", "there are: malloc"},
		{"tunlets in no directory", "run --tunlet-dir /no/such/dir -- touch started", "no directory /no/such/dir; name one that holds tunlets"},
		{"the same of another command", "tunlet list --tunlet-dir /no/such/dir", "no directory /no/such/dir"},
		{"option of no tunlet", "run --tunlet-option mallco.memory_bytes=1G -- touch started", `no tunlet "mallco"`},
		{"an argument too many", "archive query align memory", "unexpected argument memory; see `attune archive query --help`"},
		{"an argument too few", "archive show", "an argument is missing; write: attune archive show ID"},
		{"report in no directory", "run --report /no/such/r -- touch started", "--report"},
		{"report is a directory", "run --report . -- touch started", "is a directory"},
		{"timeline", "run --timeline /no/such/t -- touch started", "--timeline"},
		{"log file", "run --timeline results --log-file /no/such/l -- touch started", "--log-file"},
		{"record", "run --timeline results --record /no/such/r -- touch started", "--record"},
		{"report into a FIFO without reader", "run --report fifo -- touch started", "start its reader first"},
		{"timeline into one", "run --timeline fifo -- touch started", "start its reader first"},
		{"log into one", "run --log-file fifo -- touch started", "start its reader first"},
		{"watch without terminal", "run --watch -- touch started", "use --timeline"},
		{"probe", "run --probe libc.so.6 -- touch started", "OBJECT:FUNCTION"},
		{"argument of doctor", "doctor x", "unexpected argument x"},
		{"unknown command of tunlet", "tunlet frob", "see `attune tunlet --help`"},
		{"mistyped command of tunlet", "tunlet lits", "did you mean `attune tunlet list`?"},
		{"mistyped command of archive", "archive lits", "did you mean `attune archive list`?"},
		{"mistyped command of probe", "probe lits", "did you mean `attune probe list`?"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			got := shellIn(t, dir, "mkfifo fifo; echo earlier >results; $ATTUNE_BINARY "+tt.args, "")
			if got.code != 2 || got.stdout != "" || strings.Count(got.stderr, "\n") != 1 || !strings.Contains(got.stderr, tt.want) {
				t.Errorf("%+v, want code 2 and one line with %q", got, tt.want)
			}
			if _, err := os.Stat(filepath.Join(dir, "started")); err == nil {
				t.Error("the program was started")
			}
			if results, err := os.ReadFile(filepath.Join(dir, "results")); string(results) != "earlier\n" {
				t.Errorf("earlier results are %q, %v", results, err)
			}
		})
	}
}

// TestNoSuchProgram: where there is no program to run, earlier results stay.
func TestNoSuchProgram(t *testing.T) {
	dir := t.TempDir()
	got := shellIn(t, dir, "echo earlier >results; echo text >text; $ATTUNE_BINARY run --timeline results no-such-program; "+
		"a=$?; $ATTUNE_BINARY run --timeline results ./text; echo $a $?; cat results", "")
	if got.stdout != "127 126\nearlier\n" || strings.Count(got.stderr, "\n") != 2 {
		t.Errorf("%+v, want the codes 127 and 126, and the earlier results", got)
	}
}

func TestFlagsEndAtTheProgram(t *testing.T) {
	got := shell(t, `$ATTUNE_BINARY run --quiet echo --mode frob --help`, "")
	if want := "--mode frob --help\n"; got.stdout != want || got.code != 0 {
		t.Errorf("%+v, want stdout %q", got, want)
	}
}

func TestSwitchedOff(t *testing.T) {
	got := shell(t, `export ATTUNE=off; echo $$; exec $ATTUNE_BINARY run --mode frob -- sh -c 'echo $$; env | grep -E "^(LD_PRELOAD|ATTUNE_JOB)="'`, "")
	lines := strings.Fields(got.stdout)
	if len(lines) != 2 || lines[0] != lines[1] || got.stderr != "" {
		t.Errorf("%+v, want the same process id twice and nothing else", got)
	}
}

func TestFullDiskHarmsNothing(t *testing.T) {
	got := shell(t, `$ATTUNE_BINARY run --report /dev/full --timeline /dev/full --log-file /dev/full -- sh -c 'echo hello; exit 3'`, "")
	if got.stdout != "hello\n" || got.code != 3 {
		t.Errorf("%+v", got)
	}
	if !strings.Contains(got.stderr, "no space left") || strings.Count(got.stderr, "lines are missing") != 1 {
		t.Errorf("stderr does not tell, once: %q", got.stderr)
	}
}

func TestBadTunletsHarmNothing(t *testing.T) {
	tests := []struct{ name, script, reason string }{
		{"crashes at start", "#!/bin/sh\nexit 1\n", ""},
		{"says nonsense", "#!/bin/sh\necho nonsense\nsleep 100\n", ""},
		{"hangs", "#!/bin/sh\nexec sleep 100\n", "had not answered when the session ended"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "attune-tunlet-bad")
			files.Write(t, path, tt.script, 0o755)
			got := shellIn(t, dir, `$ATTUNE_BINARY run --quiet --report r.json --tunlet-dir . --tunlet bad -- sh -c 'sleep 0.3; echo hello; exit 3'`, "")
			if got.stdout != "hello\n" || got.code != 3 {
				t.Errorf("%+v", got)
			}
			r := readReport(t, dir)
			if len(r.Tunlets) != 1 {
				t.Fatalf("tunlets in the report: %+v", r.Tunlets)
			}
			one := r.Tunlets[0]
			if one.Name != "bad" || one.State == "running" || one.State == "stopped" || one.Version != "" || one.Reason == "" || !strings.Contains(one.Reason, tt.reason) {
				t.Errorf("%+v, want one that never came up, and %q", one, tt.reason)
			} else if strings.Contains(one.Reason, "no such file") {
				t.Errorf("it was never started: %s", one.Reason)
			}
		})
	}
}

func TestOwnDeathLeavesTheProgramAlone(t *testing.T) {
	got := shell(t, `mkfifo in out
		$RUN sh -c 'echo started >out; read x <in; echo "went on with $x" >out' & p=$!
		read line <out; kill -KILL $p; wait $p
		{ exec 3>in; echo $line >&3; }; cat out`, quietly())
	if want := "went on with started\n"; got.stdout != want {
		t.Errorf("%+v, want stdout %q", got, want)
	}
}

// However often a program is asked to end that does not want to, Attune passes that on and
// stays with it to its end.
func TestProgramThatDoesNotEnd(t *testing.T) {
	got := shell(t, `$RUN bash -c 'trap "echo asked >>got" TERM; trap "" HUP; touch ready; until [ -e end ]; do sleep 0.01; done; exit 7' & p=$!
		until [ -e ready ]; do sleep 0.01; done
		for n in 1 2 3; do
			kill -HUP $p; kill -TERM $p
			until [ -e got ] && [ $(wc -l <got) = $n ]; do sleep 0.01; done
			kill -0 $p && echo "stays after $n"
		done
		touch end; wait $p`, quietly())
	if want := "stays after 1\nstays after 2\nstays after 3\n"; got.stdout != want || got.code != 7 {
		t.Errorf("%+v, want stdout %q and code 7", got, want)
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	runtime, err := os.MkdirTemp("/tmp", "x") //nolint:usetesting // sockets need a short path
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(runtime)
	got := shell(t, `export XDG_RUNTIME_DIR=`+runtime+`; $RUN true; $RUN nothing-of-this-name; $RUN sh -c 'kill -9 $$'; find `+runtime+` -mindepth 2`, quietly())
	if got.stdout != "" {
		t.Errorf("left behind: %s", got.stdout)
	}
}

// typeUntil types keys, so many times at most, until something is shown.
func typeUntil(tty *pty.Terminal, keys, shown string, tries int) (err error) {
	for range tries {
		if err := tty.Type(keys); err != nil {
			return err
		}
		if _, err = tty.Expect(shown, patience.Limit/time.Duration(tries)); err == nil {
			return nil
		}
	}
	return err
}

func TestJobControl(t *testing.T) {
	tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	sh := exec.Command("bash", "--norc", "--noprofile", "-i")
	sh.Env = append(os.Environ(), "PS1=% ", "TERM=dumb", "RUN="+filepath.Join(bin, "attune")+" run --report "+t.TempDir()+"/r.json --")
	if err := tty.Start(sh); err != nil {
		t.Fatal(err)
	}
	program := `trap 'echo interrupted' INT; echo ready; read x; read x; echo "read $x"; exit 4`
	steps := []struct{ keys, shown string }{
		{"", "% "},
		{"$RUN bash -c '" + strings.ReplaceAll(program, "'", `'"'"'`) + "'\n", "\nready"},
		{"\x03", "interrupted"},
		{"\x1a", "Stopped"},
		{"jobs\n", "Stopped"},
		{"fg\n", "bash -c"},
		{"\nword\n", "read word"},
		{"", "exit code 4"}, // the report
		{"echo code=$?.\n", "code=4."},
		{"exit\n", "exit"},
	}
	for _, step := range steps {
		tries := 1
		if step.keys == "\x03" { // bash forgets a signal that comes just before it waits for input
			tries = 60
		}
		if err := typeUntil(tty, step.keys, step.shown, tries); err != nil {
			t.Fatalf("after %q: %v", step.keys, err)
		}
	}
	if err := sh.Wait(); err != nil {
		t.Error(err)
	}
}
