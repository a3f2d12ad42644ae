// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestInterrupted: what is made beside its place until it is complete goes when the command is killed.
func TestInterrupted(t *testing.T) {
	from := t.TempDir()
	large, slow := filepath.Join(from, "large"), filepath.Join(from, "attune-tunlet-slow")
	if err := targets.WriteProgram(large, files.Read(t, "/bin/sleep")); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, 1<<31); err != nil { // takes longer to pack than to be interrupted
		t.Fatal(err)
	}
	files.Write(t, slow, "#!/bin/sh\nexec sleep 1000\n", 0o755)
	for name, row := range map[string]struct {
		making string
		args   func(to string) []string
	}{
		"pack":    {".out-*", func(to string) []string { return []string{"pack", large, "-o", filepath.Join(to, "out")} }},
		"install": {".install-*/attune-tunlet-slow", func(to string) []string { return []string{"tunlet", "install", "--dir", to, slow} }},
	} {
		t.Run(name, func(t *testing.T) {
			to := t.TempDir()
			left := func(pattern string) []string {
				found, err := filepath.Glob(filepath.Join(to, pattern))
				if err != nil {
					t.Fatal(err)
				}
				return found
			}
			cmd := exec.Command(filepath.Join(bin, "attune"), row.args(to)...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			patience.Until(t, "what is made", func() bool { return len(left(row.making)) > 0 })
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // killed
			if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGINT || len(left("*")) > 0 {
				t.Errorf("ended with %v, left are %v", cmd.ProcessState, left("*"))
			}
		})
	}
}
