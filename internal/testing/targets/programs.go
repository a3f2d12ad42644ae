// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"embed"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

//go:embed programs
var programs embed.FS

// Program builds one of this package's programs, by the name of its file
// without ".c".
func Program(tb testing.TB, name string, flags ...string) string {
	tb.Helper()
	folder := tb.TempDir()
	sources, err := fs.Sub(programs, "programs")
	if err != nil {
		tb.Fatal(err)
	}
	if err := os.CopyFS(folder, sources); err != nil {
		tb.Fatal(err)
	}
	return Build(tb, filepath.Join(folder, name+".c"), flags...)
}

// StartProgram builds and starts one of this package's programs.
func StartProgram(tb testing.TB, name string, arguments ...string) *Target {
	tb.Helper()
	return StartCommand(tb, exec.Command(Program(tb, name), arguments...))
}

// Status is what a program for a hard case ends with if all went right.
const Status = 7

// Right ends the test unless the program, one for a hard case, finds that all
// has gone as it should, and its threads go on.
func (t *Target) Right(tb testing.TB) {
	tb.Helper()
	if got := t.Ask(tb, "check"); got != "right" {
		tb.Fatalf("the program finds %q, want right", got)
	}
}

// Finish ends a program for a hard case, which must do so as it would by
// itself.
func (t *Target) Finish(tb testing.TB) {
	tb.Helper()
	if err := t.Say("end"); err != nil {
		tb.Fatal(err)
	}
	t.Finished(tb)
}

// Finished sees a program that was told to end to its end.
func (t *Target) Finished(tb testing.TB) {
	tb.Helper()
	t.Expect(tb, "end")
	if _ = t.Wait(); t.cmd.ProcessState.ExitCode() != Status {
		tb.Errorf("the program ended with %v, want status %d", t.cmd.ProcessState, Status)
	}
}
