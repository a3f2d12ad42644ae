// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// commandsOf returns what a page tells its reader to type: its blocks of sh.
func commandsOf(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	typed := false
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.HasPrefix(line, "```"):
			typed = strings.TrimSpace(line) == "```sh"
		case typed:
			out.WriteString(line)
		}
	}
	return out.String()
}

// typeIn runs commands in a directory as a reader would, whose own tunlets are
// in that directory too, and returns all that they say.
func typeIn(t *testing.T, dir, commands string) string {
	t.Helper()
	bin, err := filepath.Abs("../../bin")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(commands)
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "XDG_DATA_HOME="+filepath.Join(dir, "data"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	return string(out)
}

// ownDir is a directory that nobody else may write to, so that tunlets in it are
// trusted.
func ownDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// patient gives a program longer than a reader would, for a busy machine.
func patient(commands string) string { return strings.ReplaceAll(commands, "./feed 10 ", "./feed 30 ") }

// Whoever types what the tutorial says gets what it says.
func TestTutorial(t *testing.T) {
	said := typeIn(t, ownDir(t), patient(commandsOf(t, "../../docs/tutorial/first-tunlet.md")))
	for _, want := range []string{
		"lines/s", "nothing to change", "made small-writes.tunlet.yaml", `there is no "rate.write_cals" here`, "as it should be",
		"ok    does the same in every session", "kept      small-writes: batch 1 → 64", "installed small-writes 1", "removed ",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("nothing is said of %q:\n%s", want, said)
		}
	}
	if strings.Contains(said, "FAIL") || strings.Count(said, "kept      small-writes") != 1 {
		t.Errorf("want one change that is kept, and no failure:\n%s", said)
	}
}

// A new tunlet in Go builds, passes its own tests and the suite, and finds what
// it is about.
func TestNewTunletInGo(t *testing.T) {
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	feed, _, _ := strings.Cut(commandsOf(t, "../../docs/tutorial/first-tunlet.md"), "./feed 2")
	said := typeIn(t, ownDir(t), "umask 022\n"+feed+`
attune tunlet new mine --sdk `+checkout+`
cd mine
go vet .
go test .
go build -o attune-tunlet-mine .
cd ..
attune tunlet test mine/attune-tunlet-mine
attune run --tunlet-dir mine -- `+patient("./feed 10 > /dev/null"))
	for _, want := range []string{"made mine", "ok    does the same in every session", "kept      mine: batch 1 → 64"} {
		if !strings.Contains(said, want) {
			t.Errorf("nothing is said of %q:\n%s", want, said)
		}
	}
}

// The example in Python passes the suite, and finds what it is about.
func TestTunletInPython(t *testing.T) {
	dir := ownDir(t)
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	feed, _, _ := strings.Cut(commandsOf(t, "../../docs/tutorial/first-tunlet.md"), "./feed 2")
	said := typeIn(t, dir, "umask 022\n"+feed+`
mkdir python
from=`+checkout+`/examples/python
cp $from/Makefile $from/*.py $from/attune-tunlet-* python
make -s -C python PROTO=`+checkout+`/proto
attune tunlet test python/attune-tunlet-small-writes
attune run --tunlet-dir python -- `+patient("./feed 10 > /dev/null"))
	for _, want := range []string{"ok    does the same in every session", "kept      small-writes: batch 1 → 64"} {
		if !strings.Contains(said, want) {
			t.Errorf("nothing is said of %q:\n%s", want, said)
		}
	}
	if strings.Contains(said, "FAIL") {
		t.Errorf("a part of the suite failed:\n%s", said)
	}
}
