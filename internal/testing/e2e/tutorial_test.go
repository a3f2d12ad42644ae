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

// untilKept has the program run until its change is kept instead of for 10 s, which
// a reader's machine has for it.
func untilKept(t *testing.T, commands string) string {
	t.Helper()
	const program = " -- ./feed 10 > /dev/null"
	before, after, found := strings.Cut(commands, program)
	if !found || strings.Contains(after, program) {
		t.Fatalf("want%s once in:\n%s", program, commands)
	}
	return before + " --timeline timeline -- ./feed " + lasting + ` > /dev/null & tuned=$!
until grep -qs '"kind":"kept"' timeline; do kill -0 $tuned; sleep 0.05; done
kill $tuned
wait $tuned || true
` + after
}

// Whoever types what the tutorial says gets what it says.
func TestTutorial(t *testing.T) {
	said := typeIn(t, ownDir(t), untilKept(t, commandsOf(t, "../../../docs/tutorial/first-tunlet.md")))
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
