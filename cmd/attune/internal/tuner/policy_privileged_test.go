// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package tuner

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/cmd/attune/internal/permission"
	"github.com/attune-hpc/attune/internal/testing/files"
)

// TestPolicyIsReadBesideTheProgram: a directory service that is slow does not hold up the start.
func TestPolicyIsReadBesideTheProgram(t *testing.T) {
	dir := t.TempDir()
	question, rules := filepath.Join(dir, "question"), filepath.Join(dir, "policy.yaml")
	if err := unix.Mkfifo(question, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		filepath.Join(dir, "getent"): "#!/bin/sh\n[ $1 = group ] || exit 2\nread answer <" + question + "\necho far:*:77777:\n",
		rules:                        "rules: [{deny: [set], users: ['@far']}]\n",
	} {
		files.Write(t, path, text, 0o700)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv(permission.PolicyVariable, rules)
	policy := sitePolicy(slog.New(slog.DiscardHandler))
	answer, err := os.OpenFile(question, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Close()
	if _, err := answer.WriteString("now\n"); err != nil {
		t.Fatal(err)
	}
	if trouble := policy().Trouble(); trouble != "" {
		t.Errorf("it was asked before the program could start: %s", trouble)
	}
}
