// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

func TestPackedProgramSeesNoDifference(t *testing.T) {
	list := emptyPlaces(t)
	packed := mustPackBash(t)
	t.Setenv("REAPER", targets.BuildText(t, "reaper", `
		#include <sys/prctl.h>
		#include <unistd.h>
		int main(int argc, char **argv) {
			return argc < 2 || prctl(PR_SET_CHILD_SUBREAPER, 1) || execv(argv[1], argv + 1);
		}`))
	const visible = `grep -vE '^(ATTUNE|ATTUNE_JOB|ATTUNE_SOCKET|ATTUNE_FILTERS|LD_PRELOAD|ASAN_OPTIONS|_|PWD|XDG_.*)='`
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
		{"size of files", `ulimit -f 30000; $RUN -c 'sleep 0.1; /bin/echo out; exit 3'`},
		{"size of its own files", `ulimit -S -f 30000; $RUN -c 'ulimit -f; sleep 0.1; /bin/echo out; exit 3'`},
		{"signal state", `trap '' HUP QUIT USR1; $RUN -c 'grep -E "^Sig(Ign|Blk)" /proc/$$/status'`},
		{"environment", `env -i A=1 B= PATH="$PATH" HOME=/x TMPDIR="$TMPDIR" ATTUNE="$ATTUNE" $RUN -c env | ` + visible},
		{"umask and directory", `umask 027; mkdir d; cd d; $RUN -c 'umask; basename $PWD'`},
		{"process group", `$RUN -c 'read -r a b c d pgrp sid rest </proc/self/stat; echo $((pgrp == '$$')) $((sid == '$$'))'`},
		{"children", `$RUN -c 'for i in 1 2 3; do sh -c "exit $i"; echo $?; done; wait; echo $?'`},
		{"children of a reaper", `$REAPER $RUN -c 'sleep 0.2 & wait $!; read -r c </proc/$$/task/$$/children; echo "[$c]"'`},
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
	t.Cleanup(func() {
		if left := list(); t.Failed() {
			t.Logf("left: %q", left)
		}
	})
	patience.Until(t, "an empty folder", func() bool { return len(list()) == 0 })
}

// TestShortPackedProgram: one that has ended before its controller is up is in the
// report, as far as the kernel tells how it ended.
func TestShortPackedProgram(t *testing.T) {
	list := emptyPlaces(t)
	dir := t.TempDir()
	packed := mustPack(t, "/bin/bash", "--quiet", "--report", filepath.Join(dir, "r.json"))
	got := shell(t, "$RUN -c 'exit 7' & wait $!; e=$?; echo $!; exit $e", packed)
	if got.code != 7 {
		t.Errorf("%+v, want code 7", got)
	}
	patience.Until(t, "the end of the controller", func() bool { return len(list()) == 0 })
	r := readReport(t, dir)
	if len(r.Processes) != 1 || fmt.Sprintln(r.Processes[0].PID) != got.stdout || r.Processes[0].Exe == "" {
		t.Fatalf("processes %+v, want %s", r.Processes, got.stdout)
	}
	exit := r.Processes[0].Exit
	if exit != nil && (exit.Code == nil || *exit.Code != 7 || r.Exit.Code == nil || *r.Exit.Code != 7) {
		t.Errorf("exit %+v, of all %+v; want code 7", exit, r.Exit)
	}
}

// TestPackedFileWithPrivileges: a packed file that somebody made set-user-id.
func TestPackedFileWithPrivileges(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	emptyPlaces(t)
	packed := mustPack(t, "/bin/true", "--quiet")
	const nobody = 65534
	if err := errors.Join(os.Chown(packed, nobody, nobody), os.Chmod(packed, 0o755|os.ModeSetuid)); err != nil {
		t.Fatal(err)
	}
	got := shell(t, packed, "")
	if got.code != 126 || !strings.Contains(got.stderr, "cannot be set-user-id") {
		t.Errorf("%+v", got)
	}
}

// A program whose library lies beside it, and that looks where it is itself.
func TestProgramsThatNeedTheirPlace(t *testing.T) {
	emptyPlaces(t)
	dir := t.TempDir()
	write := func(name, text string) {
		files.Write(t, filepath.Join(dir, name), text, 0o644)
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
