// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/packfile"
	"github.com/attune-hpc/attune/internal/targets"
)

// packedBash is a packed shell, which says nothing at its end.
var packedBash = sync.OnceValues(func() (string, error) {
	out := filepath.Join(bin, "bash.tuned")
	return out, packInto(out, "/bin/bash", "--quiet")
})

func packInto(out, program string, flags ...string) error {
	cmd := exec.Command(filepath.Join(bin, "attune"), append([]string{"pack", program, "-o", out}, flags...)...)
	text, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, text)
	}
	return nil
}

func mustPack(t *testing.T, program string, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), filepath.Base(program)+".tuned")
	if err := packInto(out, program, flags...); err != nil {
		t.Fatal(err)
	}
	return out
}

func mustPackBash(t *testing.T) string {
	t.Helper()
	path, err := packedBash()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// emptyPlaces gives a packed program empty directories, and returns what is in them.
func emptyPlaces(t *testing.T) (list func() []string) {
	t.Helper()
	base, err := os.MkdirTemp("/tmp", "p") //nolint:usetesting // sockets need a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	t.Setenv("XDG_RUNTIME_DIR", "")
	t.Setenv("TMPDIR", base)
	if os.Geteuid() == 0 {
		t.Setenv("XDG_RUNTIME_DIR", base) // root's own place comes before TMPDIR
	}
	return func() []string {
		found, err := filepath.Glob(filepath.Join(base, "attune*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
}

// eventually fails unless a condition comes true.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}

func TestPackedProgramSeesNoDifference(t *testing.T) {
	list := emptyPlaces(t)
	packed := mustPackBash(t)
	const visible = `grep -vE '^(ATTUNE|ATTUNE_JOB|ATTUNE_SOCKET|LD_PRELOAD|ASAN_OPTIONS|_|PWD|XDG_.*)='`
	tests := []struct{ name, script string }{
		{"input and output", `printf 'x\ny' | $RUN -c 'cat; echo err >&2'`},
		{"arguments", `exec -a 'other name' $RUN -c 'echo "$0|$1|$2|$#"; tr "\0" "|" </proc/$$/cmdline' '' 'a b' ''`},
		{"exit code", `$RUN -c 'exit 3'`},
		{"death by signal", `ulimit -c 0; exec $RUN -c 'kill -SEGV $$'`},
		{"killed from outside", `$RUN -c 'echo >up; while :; do sleep 0.02; done' & p=$!; until [ -e up ]; do sleep 0.02; done; kill $p; wait $p; echo $?`},
		{"same process", `$RUN -c 'echo $$ >p' & wait; [ $! = "$(cat p)" ] && echo same`},
		{"descriptors", `exec 9>f; $RUN -c 'cd /proc/$$/fd; for n in *; do [ -e $n ] && echo $n; done' </dev/null`},
		{"closed streams", `(exec -a sh $RUN -c 'cat; echo $?' <&-); echo $?; exec -a sh $RUN -c 'echo x; exit 9' >&-`},
		{"limits", `ulimit -S -n 99; $RUN -c 'cat /proc/self/limits'`},
		{"signal state", `trap '' HUP QUIT USR1; $RUN -c 'grep -E "^Sig(Ign|Blk)" /proc/$$/status'`},
		{"environment", `env -i A=1 B= PATH="$PATH" HOME=/x TMPDIR="$TMPDIR" ATTUNE="$ATTUNE" $RUN -c env | ` + visible},
		{"umask and directory", `umask 027; mkdir d; cd d; $RUN -c 'umask; basename $PWD'`},
		{"process group", `$RUN -c 'read -r a b c d pgrp sid rest </proc/self/stat; echo $((pgrp == '$$')) $((sid == '$$'))'`},
		{"children", `$RUN -c 'for i in 1 2 3; do sh -c "exit $i"; echo $?; done; wait; echo $?'`},
		{"stopped and continued", `$RUN -c 'kill -STOP $$; exit 7' & p=$!; until grep -q '^State:.T' /proc/$p/status; do sleep 0.02; done; kill -CONT $p; wait $p; echo $?`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := shell(t, tt.script, "/bin/bash")
			for _, attune := range []string{"", "off"} {
				t.Setenv("ATTUNE", attune)
				if diff := cmp.Diff(want, shell(t, tt.script, packed), cmp.AllowUnexported(outcome{})); diff != "" {
					t.Errorf("ATTUNE=%s: direct -, packed +:\n%s", attune, diff)
				}
			}
		})
	}
	eventually(t, "nothing is left", func() bool { return len(list()) == 0 })
}

// controllers lists the controllers of packed jobs with folders below TMPDIR.
func controllers(t *testing.T) (pids []int) {
	t.Helper()
	for _, pid := range processIDs() {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && bytes.HasPrefix(line, []byte("attune\x00packed\x00"+os.Getenv("TMPDIR"))) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// instrumented tells whether a process has shared memory with a controller.
func instrumented(pid int) bool {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	return err == nil && bytes.Contains(maps, []byte("memfd:attune"))
}

func TestOneControllerForAJob(t *testing.T) {
	emptyPlaces(t)
	const ranks = 5
	dir := t.TempDir()
	packed := mustPack(t, "/bin/bash", "--mode", "observe", "--report", filepath.Join(dir, "r.json"), "--timeline", filepath.Join(dir, "t.jsonl"))
	t.Setenv("PMIX_NAMESPACE", "job of a test")
	var started []*exec.Cmd
	for range ranks {
		cmd := exec.Command(packed, "-c", "while :; do sleep 0.1; done")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		started = append(started, cmd)
	}
	eventually(t, "all processes are instrumented", func() bool {
		timeline, _ := os.ReadFile(filepath.Join(dir, "t.jsonl")) // not there at first
		return !slices.ContainsFunc(started, func(cmd *exec.Cmd) bool {
			known := fmt.Sprintf(`"process_started","process":%d,`, cmd.Process.Pid)
			return !instrumented(cmd.Process.Pid) || !bytes.Contains(timeline, []byte(known))
		})
	})
	if got := controllers(t); len(got) != 1 {
		t.Errorf("controllers %v, want one", got)
	}
	for _, cmd := range started {
		if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", cmd.Process.Pid)); err != nil || string(name) != "bash\n" {
			t.Errorf("name %q, %v", name, err)
		}
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}
	eventually(t, "the controller ends", func() bool { return len(controllers(t)) == 0 })
	r := readReport(t, dir)
	if r.Exit.Signal != "SIGTERM" {
		t.Errorf("exit %+v, want SIGTERM", r.Exit)
	}
	for _, cmd := range started {
		others := func(p report.Process) bool { return p.PID != cmd.Process.Pid }
		if found := slices.DeleteFunc(slices.Clone(r.Processes), others); len(found) != 1 {
			t.Errorf("process %d is %d times in the report, want once: %+v", cmd.Process.Pid, len(found), found)
		}
	}
}

func TestControllerKilled(t *testing.T) {
	list := emptyPlaces(t)
	packed := mustPackBash(t)
	cmd := exec.Command(packed, "-c", "read line; exit 4")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the controller is there", func() bool { return len(controllers(t)) == 1 })
	if err := syscall.Kill(controllers(t)[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 4 {
		t.Errorf("exit code %d, want 4", code)
	}
	if len(list()) == 0 {
		t.Fatal("a killed controller left nothing: this test tests nothing")
	}
	if text, err := exec.Command(packed, "-c", "sleep 1").CombinedOutput(); err != nil || len(text) > 0 {
		t.Errorf("%v: %s", err, text)
	}
	eventually(t, "the next one cleans up", func() bool { return len(list()) == 0 })
}

func TestDamagedFilesAreRefused(t *testing.T) {
	emptyPlaces(t)
	whole, err := os.ReadFile(mustPackBash(t))
	if err != nil {
		t.Fatal(err)
	}
	packed, err := packfile.Read(bytes.NewReader(whole), int64(len(whole)))
	if err != nil {
		t.Fatal(err)
	}
	table := int(binary.LittleEndian.Uint64(whole[len(whole)-104:]))
	type damage struct {
		name  string
		bytes []byte
	}
	var all []damage
	cut := func(name string, size int) { all = append(all, damage{"cut off " + name, whole[:size]}) }
	flip := func(name string, at int) {
		b := bytes.Clone(whole)
		b[at] ^= 1
		all = append(all, damage{"changed " + name, b})
	}
	for _, part := range packed.Parts {
		cut("before "+part.Name, int(part.Offset))
		cut("in "+part.Name, int(part.Offset+part.StoredSize/2))
		flip(part.Name, int(part.Offset+part.StoredSize/2))
	}
	cut("before the table", table)
	cut("before the record", len(whole)-128)
	cut("in the record", len(whole)-64)
	cut("at the last byte", len(whole)-1)
	flip("table", table+5)
	for at := len(whole) - 128; at < len(whole); at += 9 {
		flip(fmt.Sprintf("record at %d", at), at)
	}
	all = append(all, damage{"lengthened", append(bytes.Clone(whole), 0)})
	path := filepath.Join(t.TempDir(), "damaged")
	for _, d := range all {
		if err := os.WriteFile(path, d.bytes, 0o755); err != nil {
			t.Fatal(err)
		}
		got := shell(t, "exec "+path+" -c 'echo ran'", "")
		if got.code != 126 || got.stdout != "" || !strings.Contains(got.stderr, "the file is ") || !strings.Contains(got.stderr, "pack it anew") {
			t.Errorf("%s: %+v", d.name, got)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

func TestUnpackGivesBackWhatWasPacked(t *testing.T) {
	packed, dir := mustPackBash(t), t.TempDir()
	got := shell(t, "$ATTUNE_BINARY unpack --extract "+dir+"/parts "+packed+" && cd "+dir+
		"/parts && cmp bash /bin/bash && cmp attune $ATTUNE_BINARY && stat -c %a bash attune && ls", "")
	want := "755\n755\n"
	if got.code != 0 || !strings.HasPrefix(got.stdout, want) || !strings.Contains(got.stdout, "attune-tunlet-malloc\n") {
		t.Errorf("%+v", got)
	}
	listed := shell(t, "$ATTUNE_BINARY unpack --list "+packed, "")
	for _, part := range []string{"program     bash ", "controller  attune ", "tunlet      attune-tunlet-malloc ", "library     libattune-dm-", "config      attune.yaml "} {
		if !strings.Contains(listed.stdout, part) {
			t.Errorf("no %q in\n%s", part, listed.stdout)
		}
	}
}

func TestPackRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"script": 0o755, "plain": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	program, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	setuid := filepath.Join(dir, "setuid")
	if err := errors.Join(os.WriteFile(setuid, program, 0o755), os.Chmod(setuid, 0o755|os.ModeSetuid)); err != nil {
		t.Fatal(err)
	}
	packed := mustPackBash(t)
	tests := []struct {
		name, arguments, want string
		code                  int
	}{
		{"no output", "/bin/true", "an output file", 2},
		{"script", dir + "/script -o x", "is a script", 1},
		{"not executable", dir + "/plain -o x", "permission", 1},
		{"not there", dir + "/none -o x", "no such file", 1},
		{"packed", packed + " -o x", "packed already", 1},
		{"setuid", "setuid -o x", "set-user-id", 1},
		{"tunlet", "/bin/true -o x --tunlet none", "no tunlet", 2},
		{"mode", "/bin/true -o x --mode none", "unknown mode", 2},
		{"place", "/bin/true -o x --place none", "unknown place", 2},
		{"directory", "/bin/true -o " + dir, "not a regular file", 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := shellIn(t, dir, "$ATTUNE_BINARY pack "+tt.arguments, "")
			if got.code != tt.code || !strings.Contains(got.stderr, tt.want) {
				t.Errorf("%+v; want code %d, %q", got, tt.code, tt.want)
			}
			if _, err := os.Stat(filepath.Join(dir, "x")); err == nil {
				t.Error("a file was made")
			}
		})
	}
}

// A program whose library lies beside it, and that looks where it is itself.
func TestProgramsThatNeedTheirPlace(t *testing.T) {
	emptyPlaces(t)
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("beside.c", "int beside(void) { return 42; }\n")
	write("place.c", `#include <libgen.h>
#include <stdio.h>
#include <unistd.h>
int beside(void);
int main(void) {
    char path[4096] = "";
    readlink("/proc/self/exe", path, sizeof(path) - 1);
    printf("%d %s\n", beside(), dirname(path));
    return 0;
}
`)
	got := shellIn(t, dir, `gcc -shared -fPIC -o libbeside.so beside.c && gcc -o place place.c -L. -lbeside -Wl,-rpath,'$ORIGIN' &&
$ATTUNE_BINARY pack ./place -o place.tuned --quiet >/dev/null && ./place.tuned && ATTUNE=off ./place.tuned && ls -A`, "")
	want := strings.Repeat("42 "+dir+"\n", 2) + "beside.c\nlibbeside.so\nplace\nplace.c\nplace.tuned\n"
	if got.code != 0 || got.stdout != want {
		t.Errorf("%+v, want %q", got, want)
	}
}

func TestStaticProgramsRun(t *testing.T) {
	emptyPlaces(t)
	static := targets.Build(t, filepath.Join("testdata", "static.c"), "-static")
	got := shell(t, mustPack(t, static, "--quiet")+" 5", "")
	if got.code != 5 || got.stdout != "static\n" || got.stderr != "" {
		t.Errorf("%+v", got)
	}
}
