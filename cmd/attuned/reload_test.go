// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
)

// TestPolicyBesideWrongSettings: the policy is read again though the other settings cannot be used.
func TestPolicyBesideWrongSettings(t *testing.T) {
	path, config := filepath.Join(t.TempDir(), "policy.yaml"), filepath.Join(t.TempDir(), "attuned.yaml")
	mustWrite(t, config, "policy: "+path+"\n")
	args := []string{"--config", config}
	s, err := load(args, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	a := &service{settings: s, args: args, level: new(slog.LevelVar), log: slog.New(slog.NewTextHandler(&log, nil))}
	a.loadPolicy()
	mustWrite(t, config, "policy: "+path+"\nlog-levl: debug\n")
	mustWrite(t, path, "servce: []") // it denies everything, whoever has written it
	a.reload()
	if !strings.Contains(a.policy.Load().Trouble(), "nothing is touched") {
		t.Errorf("trouble %q: the policy that was there before stays in force", a.policy.Load().Trouble())
	}
	if !strings.Contains(log.String(), "log-levl") {
		t.Errorf("it logs:\n%s", log.String())
	}
}
