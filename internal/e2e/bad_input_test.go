// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What cannot be started has the shell's exit codes and a message that names
// it.
func TestCannotStart(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tests := []struct {
		name    string
		command string
		code    int
	}{
		{"unknown command", "no-such-command-here", 127},
		{"unknown path", "/no/such/program", 127},
		{"not executable", write("plain", "#!/bin/sh\n", 0o644), 126},
		{"a folder", dir, 126},
		{"script without its interpreter", write("script", "#!/no/such/shell\n", 0o755), 127},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := run(t, "", attune, "run", "--", tt.command)
			if o.code != tt.code {
				t.Errorf("exit code %d, want %d; standard error:\n%s", o.code, tt.code, o.stderr)
			}
			if !strings.Contains(o.stderr, filepath.Base(tt.command)) {
				t.Errorf("standard error does not name the command:\n%s", o.stderr)
			}
		})
	}
}

// Attune's own trouble is told, and the program's exit code stays what it is.
func TestOwnTroubleHarmsNothing(t *testing.T) {
	bad := t.TempDir()
	crash := filepath.Join(bad, "attune-tunlet-crash")
	if err := os.WriteFile(crash, []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		flags []string
		said  string
	}{
		{"report on a full disk", []string{"--report", "/dev/full"}, "/dev/full"},
		{"timeline on a full disk", []string{"--timeline", "/dev/full"}, "/dev/full"},
		{"tunlet that crashes at start", []string{"--tunlet-dir", bad, "--tunlet", "crash"}, "crash"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			args := append([]string{attune, "run"}, tt.flags...)
			o := run(t, "", append(args, "--", "/bin/sh", "-c", "echo done; sleep 0.3; exit 5")...)
			if o.stdout != "done\n" || o.code != 5 {
				t.Errorf("got %q, exit code %d; want the program's own output and 5", o.stdout, o.code)
			}
			if !strings.Contains(o.stderr, tt.said) {
				t.Errorf("standard error does not mention %q:\n%s", tt.said, o.stderr)
			}
		})
	}
}

// A report tells how the program was killed.
func TestReportOfKilledProgram(t *testing.T) {
	_, d := runReported(t, nil, "/bin/sh", "-c", "kill -KILL $$")
	if d.Exit.Signal != "SIGKILL" || !d.Finished {
		t.Errorf("exit %+v, finished %v; want SIGKILL of a finished run", d.Exit, d.Finished)
	}
}
