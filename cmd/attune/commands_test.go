// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/attune-hpc/attune/cmd/attune/doctor"
	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/commands"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/testing/golden"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/pty"
)

func TestReferenceIsWhatTheCommandsSay(t *testing.T) {
	var b strings.Builder
	b.WriteString("<!-- SPDX-License-Identifier: Apache-2.0 -->\n# Command line\n\n" +
		"Made from the commands' own help by `go test ./cmd/attune -run Reference -update`.\n\n")
	if err := markdown(commands.New(&cli.Env{}), &b); err != nil {
		t.Fatal(err)
	}
	golden.File(t, "../../docs/reference/cli.md", []byte(b.String()))
}

// markdown writes a command and those below it into one document.
func markdown(cmd *cobra.Command, b *strings.Builder) error {
	if !cmd.IsAvailableCommand() && cmd.HasParent() {
		return nil
	}
	cmd.DisableAutoGenTag = true
	var one strings.Builder
	link := func(name string) string {
		return "#" + strings.ReplaceAll(strings.TrimSuffix(name, ".md"), "_", "-")
	}
	if err := doc.GenMarkdownCustom(cmd, &one, link); err != nil {
		return err
	}
	b.WriteString(strings.TrimRight(one.String(), "\n") + "\n\n")
	for _, child := range cmd.Commands() {
		if err := markdown(child, b); err != nil {
			return err
		}
	}
	return nil
}

func TestDoctor(t *testing.T) {
	got := shell(t, `$ATTUNE_BINARY doctor --json`, "")
	var d doctor.Diagnosis
	if err := json.Unmarshal([]byte(got.stdout), &d); err != nil || got.code != 0 {
		t.Fatalf("%v in %+v", err, got)
	}
	if len(d.Mechanisms) == 0 || !strings.HasPrefix(d.Summary, "attune run ") {
		t.Fatalf("incomplete: %+v", d)
	}
	text := shell(t, `$ATTUNE_BINARY doctor`, "")
	for _, m := range d.Mechanisms {
		if !strings.Contains(text.stdout, m.Name) {
			t.Errorf("the text lacks %s", m.Name)
		}
		if m.State != "available" && m.Reason == "" {
			t.Errorf("%s is %s without a reason", m.Name, m.State)
		}
	}
	if !strings.HasSuffix(text.stdout, "\n"+d.Summary+"\n") {
		t.Errorf("the text does not end with the summary: %s", text.stdout)
	}
}

// A tunlet that others could have written is shown, and why it is not used.
func TestTunletListTellsWhatIsNotUsed(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "attune-tunlet-open")
	if err := errors.Join(os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755), os.Chmod(path, 0o777)); err != nil {
		t.Fatal(err)
	}
	got := shell(t, "$ATTUNE_BINARY tunlet list --tunlet-dir "+dir, "")
	if got.code != 0 || !strings.Contains(got.stdout, path+"  not used: ") || !strings.Contains(got.stdout, "chmod go-w") {
		t.Errorf("%+v", got)
	}
}

func TestSmallCommands(t *testing.T) {
	tests := []struct{ name, args, want string }{
		{"version", "version", "attune "},
		{"version by flag", "--version", "attune "},
		{"help", "--help", "attune run -- ./my-program"},
		{"tunlet list", "tunlet list", "malloc  " + filepath.Join(bin, "attune-tunlet-malloc")},
		{"help of run", "run --help", "--report"},
		{"completion of modes", "__complete run --mode ''", "observe\nadvise\ntune\n"},
		{"completion of tunlets", "__complete run --tunlet ''", "malloc\n"},
		{"completion of shells", "__complete completion ''", "bash\nfish\n"},
		{"completion script", "completion bash", "__start_attune"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := shell(t, "$ATTUNE_BINARY "+tt.args, "")
			if got.code != 0 || !strings.Contains(got.stdout, tt.want) {
				t.Errorf("%+v, want %q", got, tt.want)
			}
		})
	}
}

// TestWrongCommandLines: they end with the code for that, and are answered with what to do.
func TestWrongCommandLines(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", filepath.Join(t.TempDir(), "none"))
	for args, want := range map[string]string{
		"nosuch":                                    "attune run -- nosuch",
		"help nosuch":                               "attune --help",
		"help run nosuch":                           "attune run --help",
		"completion":                                "attune completion [flags] SHELL",
		"completion nosuch":                         "bash, fish",
		"completion bash extra":                     "attune completion --help",
		"archive list --failed --succeeded":         "attune archive list --help",
		"archive query --failed --succeeded":        "attune archive query --help",
		"archive report --failed --succeeded":       "attune archive report --help",
		"archive export --failed --succeeded":       "attune archive export --help",
		"archive estimate --for slurm --json align": "attune archive estimate --help",
		"archive query --field nosuch":              "wall_seconds",
		"archive import --format nosuch file":       "kickstart",
	} {
		var out, errs strings.Builder
		code := execute(strings.Fields(args), &cli.Env{Stdout: &out, Stderr: &errs})
		if code != exitcode.Usage || out.Len() > 0 || !strings.Contains(errs.String(), want) {
			t.Errorf("attune %s: code %d, %q, %q; want code 2 and %q", args, code, &out, &errs, want)
		}
	}
	if _, err := os.Stat(os.Getenv("XDG_STATE_HOME")); err == nil {
		t.Error("an archive was made")
	}
}

// TestUnwrittenOutput: a command whose output cannot be written does not end as if it had been.
func TestUnwrittenOutput(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	for _, args := range []string{
		"archive import ../../internal/archive/imports/testdata/sacct.txt", // which the next ones need
		"archive estimate --for slurm align", "archive estimate align", "archive query", "policy explain root sh", "help", "version",
	} {
		var errs strings.Builder
		code := execute(strings.Fields(args), &cli.Env{Stdout: full, Stderr: &errs})
		if code != exitcode.Failure || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("attune %s: code %d, %q", args, code, &errs)
		}
	}
}

func TestWatchOnATerminal(t *testing.T) {
	tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	if err := tty.Resize(40, 120); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(bin, "attune"), "run", "--watch", "--", "sh", "-c", "read x; echo got $x")
	if err := tty.Start(cmd); err != nil {
		t.Fatal(err)
	}
	for _, step := range []string{"\x1b[1;34r", "attune tune", "process"} {
		if _, err := tty.Expect(step, patience.Limit); err != nil {
			t.Fatal(err)
		}
	}
	if err := tty.Type("word\n"); err != nil {
		t.Fatal(err)
	}
	for _, step := range []string{"got word", "\x1b[r", "sh ran"} {
		if _, err := tty.Expect(step, patience.Limit); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
