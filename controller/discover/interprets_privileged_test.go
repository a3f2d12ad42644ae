// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package discover

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/attune-hpc/attune/internal/readers"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestInterpreterInContainer: what a script's first line asks for is looked up where its
// process would find it, with the process' root directory and PATH.
func TestInterpreterInContainer(t *testing.T) {
	root := t.TempDir()
	binaries, links := filepath.Join(root, "opt/bin"), filepath.Join(root, "opt/links")
	for _, directory := range []string{binaries, links} {
		if err := os.MkdirAll(directory, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	built := targets.BuildText(t, "runs", "#include <unistd.h>\nint main(void) { write(1, \"\\n\", 1); return (int)pause(); }\n", "-static")
	if err := os.Rename(built, filepath.Join(binaries, "attune-t-runs")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/opt/bin/attune-t-runs", filepath.Join(links, "attune-t-link")); err != nil {
		t.Fatal(err)
	}
	command := exec.Command("/opt/bin/attune-t-runs")
	command.Dir, command.Env = "/", []string{"PATH=/opt:/opt/links"}
	command.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	says, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	pid := mustStart(t, command)
	if _, err := says.Read(make([]byte, 1)); err != nil { // its root directory is another one since before it ran
		t.Fatal(err)
	}
	helpers := readers.New(readers.Options{})
	t.Cleanup(func() { _ = helpers.Close() })
	for line, want := range map[string]bool{
		"#!/opt/bin/attune-t-runs": true, "#!/opt/links/attune-t-link": true, "#!/usr/bin/env attune-t-link": true,
		"#!/usr/bin/env -S A=b attune-t-link -x": true, "#!/usr/bin/env /opt/bin/attune-t-runs": true,
		"#!/usr/bin/env attune-t-runs": false, "#!/bin/sh": false, "#!/usr/bin/env sh": false, "no script": false,
	} {
		mustWrite(t, filepath.Join(root, "script"), line+"\n")
		is, err := readInterprets().Ask(t.Context(), helpers, 0, interpretsQuestion{pid, "/script"})
		if err != nil || is != want {
			t.Errorf("%s: %v, %v, want %v", line, is, err, want)
		}
	}
}
