// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package main

import (
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/controller/policy"
	"github.com/attune-hpc/attune/internal/authn"
)

// TestBrokenPolicyOnReload: a policy that cannot be used replaces none that can, and nobody says that it does.
func TestBrokenPolicyOnReload(t *testing.T) {
	path, config := filepath.Join(t.TempDir(), "policy.yaml"), filepath.Join(t.TempDir(), "attuned.yaml")
	mustWrite(t, path, "service: [{mode: tune}]")
	mustWrite(t, config, "policy: "+path+"\n")
	args := []string{"--config", config}
	s, err := load(args, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	a := &service{settings: s, args: args, level: new(slog.LevelVar), log: slog.New(slog.NewTextHandler(&log, nil))}
	mode := func() string {
		mode, _ := a.policy.Load().Service(policy.Asking{Owner: authn.OfUser(7), UID: 7})
		return mode
	}
	a.loadPolicy()
	good := mode()
	mustWrite(t, path, "servce: [{mode: none}]")
	a.reload()
	if good != "tune" || mode() != good || !strings.Contains(a.policy.Load().Trouble(), "last good policy") {
		t.Errorf("mode %q, trouble %q; want %q and trouble", mode(), a.policy.Load().Trouble(), good)
	}
	if text := log.String(); strings.Contains(text, "reloaded") || strings.Count(text, "level=ERROR") != 1 {
		t.Errorf("it logs:\n%s", text)
	}
	mustWrite(t, path, "service: [{mode: observe}]")
	a.reload()
	if mode() != "observe" || a.policy.Load().Trouble() != "" || !strings.Contains(log.String(), "reloaded") {
		t.Errorf("mended: mode %q, trouble %q", mode(), a.policy.Load().Trouble())
	}
	fresh := &service{settings: s, args: args, level: new(slog.LevelVar), log: slog.New(slog.DiscardHandler)}
	mustWrite(t, path, "servce: []")
	if fresh.loadPolicy() || !strings.Contains(fresh.policy.Load().Trouble(), "nothing is touched") {
		t.Errorf("at the start: %q", fresh.policy.Load().Trouble())
	}
	if fresh.retryPolicy() {
		t.Error("a broken policy is taken for one that can be used")
	}
	mustWrite(t, path, "service: [{mode: tune}]")
	if !fresh.retryPolicy() || fresh.policy.Load().Trouble() != "" {
		t.Errorf("tried again: %q", fresh.policy.Load().Trouble())
	}
}
