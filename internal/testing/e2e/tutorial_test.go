// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// typeIn runs commands in a directory as a reader would, whose own tunlets are
// in that directory too, and returns all that they say.
func typeIn(t *testing.T, dir, commands string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*verdictLimit) // it compiles, too
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-e", "-o", "pipefail")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(commands)
	cmd.Env = append(os.Environ(), "PATH="+mustAbs(t, "../../../bin")+":"+os.Getenv("PATH"), "XDG_DATA_HOME="+filepath.Join(dir, "data"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
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

// untilKept has the program, which is run for 10 s by a line of the commands, run until
// its change is kept: that is how long a reader's machine has for it.
func untilKept(t *testing.T, commands, program string) string {
	t.Helper()
	line := " -- " + program + " 10"
	before, after, found := strings.Cut(commands, line)
	if !found || strings.Contains(after, line) {
		t.Fatalf("want%s once in:\n%s", line, commands)
	}
	rest, after, _ := strings.Cut(after, "\n")
	return before + " --timeline timeline -- " + program + " " + lasting + rest + ` & tuned=$!
until grep -qs '"kind":"kept"' timeline; do kill -0 $tuned; sleep 0.05; done
kill $tuned
wait $tuned || true
` + after
}

// Whoever types what the tutorial says gets what it says.
func TestTutorial(t *testing.T) {
	said := typeIn(t, ownDir(t), untilKept(t, commandsOf(t, "../../../docs/tutorial/first-tunlet.md"), "./feed"))
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
