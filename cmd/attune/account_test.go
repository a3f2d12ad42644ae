// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/account"
)

// TestAccountedProgramSeesNoDifference: with root, where there is, and as without.
func TestAccountedProgramSeesNoDifference(t *testing.T) {
	for _, flags := range []string{"", "--without-root --no-cgroup "} {
		t.Run(flags, func(t *testing.T) {
			seesNoDifference(t, filepath.Join(bin, "attune")+" account --quiet "+flags+"--")
		})
	}
}

// TestAccount: the document is of the program, which has its output for itself.
func TestAccount(t *testing.T) {
	dir := t.TempDir()
	got := shellIn(t, dir, `$ATTUNE_BINARY account --json a.json --series s.jsonl --every 10ms -- sh -c 'echo out; sleep 0.1; exit 3'`, "")
	if got.stdout != "out\n" || got.code != 3 || !strings.HasPrefix(got.stderr, "attune: ended with exit code 3 after ") {
		t.Errorf("%+v", got)
	}
	text, err := os.ReadFile(filepath.Join(dir, "a.json"))
	if err != nil {
		t.Fatal(err)
	}
	var a account.Account
	if err := json.Unmarshal(text, &a); err != nil {
		t.Fatal(err)
	}
	if a.Schema != account.SchemaID || a.Command[0] != "sh" || a.Directory != dir || *a.Exit.Code != 3 || a.WallSeconds < 0.1 || *a.CPUSeconds <= 0 {
		t.Errorf("%s", text)
	}
	if series, err := os.ReadFile(filepath.Join(dir, "s.jsonl")); err != nil || !strings.HasPrefix(string(series), `{"seconds":`) {
		t.Errorf("series %q, %v", series, err)
	}
}

func TestAccountRefuses(t *testing.T) {
	for _, tt := range []struct{ name, script, says string }{
		{"no program", `$ATTUNE_BINARY account --json x`, "no program to run"},
		{"no directory", `$ATTUNE_BINARY account --json no/such/a.json -- echo out`, "no/such/a.json"},
		{"no such limit", `$ATTUNE_BINARY account --limit colour=3 -- echo out`, "cannot be limited"},
		{"too often", `$ATTUNE_BINARY account --every 1ms -- echo out`, "less than 10ms"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := shell(t, tt.script, ""); got.code != 2 || got.stdout != "" || !strings.Contains(got.stderr, tt.says) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestAccountLimit: a code of its own says that a limit ended the program.
func TestAccountLimit(t *testing.T) {
	got := shell(t, `$ATTUNE_BINARY account --limit wall=0.2 --grace 0s -- sh -c 'trap "" TERM; sleep 1000; exit 0'`, "")
	if got.code != 124 || !strings.Contains(got.stderr, "wall_seconds: 0.") {
		t.Errorf("%+v", got)
	}
}
