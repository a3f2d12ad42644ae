// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/files"
)

// TestRecordAndReplay records a program and drives a tunlet with that, as their
// users do.
func TestRecordAndReplay(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "run.rec")
	got := shell(t, "$ATTUNE_BINARY run --quiet --record "+file+" -- sh -c 'sleep 0.3; exit 4'", "")
	if got.code != 4 || got.stderr != "" {
		t.Fatalf("%+v", got)
	}
	replay := "$ATTUNE_BINARY tunlet run --replay " + file
	first, second := shell(t, replay+" malloc", ""), shell(t, replay+" malloc", "")
	if first.code != 0 || first.stdout != second.stdout || !strings.HasPrefix(first.stdout, "# tunlet malloc 1\n") ||
		!strings.HasSuffix(first.stdout, "it was not started\n") {
		t.Fatalf("%+v, the second time %+v", first, second)
	}
	expect := filepath.Join(dir, "run.expect")
	write := func(name, content string) {
		files.Write(t, name, content, 0o600)
	}
	write(expect, first.stdout)
	if got := shell(t, replay+" --expect "+expect+" malloc", ""); got.code != 0 || got.stdout+got.stderr != "" {
		t.Errorf("as expected: %+v", got)
	}
	write(expect, "# tunlet malloc 0\n")
	got = shell(t, replay+" --expect "+expect+" malloc", "")
	if got.code != 1 || !strings.Contains(got.stdout, "-# tunlet malloc 0\n+# tunlet malloc 1\n") || !strings.Contains(got.stderr, "otherwise than expected") {
		t.Errorf("otherwise than expected: %+v", got)
	}
	if got := shell(t, "$ATTUNE_BINARY report "+file, ""); got.code != 0 || !strings.HasPrefix(got.stdout, "attune: sh ran ") || !strings.Contains(got.stdout, "exit code 4") {
		t.Errorf("report: %+v", got)
	}
	whole := files.Read(t, file)
	write(file, string(whole[:len(whole)-12]))
	if got := shell(t, replay+" malloc", ""); got.code != 1 || got.stdout != "" && !strings.HasPrefix(got.stdout, "# tunlet") || !strings.Contains(got.stderr, "--partial uses what there is") {
		t.Errorf("cut off: %+v", got)
	}
	if got := shell(t, "$ATTUNE_BINARY report "+file, ""); got.code != 1 || got.stdout == "" || !strings.Contains(got.stderr, "cut off") {
		t.Errorf("report, cut off: %+v", got)
	}
	if got := shell(t, replay+" --partial malloc", ""); got.code != 0 || !strings.Contains(got.stdout, "the recording ends early: the recording is cut off") {
		t.Errorf("cut off, --partial: %+v", got)
	}
}

func TestBadReplay(t *testing.T) {
	dir := t.TempDir()
	text, earlier := filepath.Join(dir, "text"), filepath.Join(dir, "earlier")
	for file, content := range map[string]string{text: "storm\n", earlier: "\x93attune\n\x01\x00\x00\x00"} {
		files.Write(t, file, content, 0o600)
	}
	for _, tt := range []struct {
		name, arguments, says string
		code                  int
	}{
		{"no recording", "malloc", "--replay FILE", 2},
		{"no tunlet", "--replay " + text, "name of one tunlet", 2},
		{"unknown tunlet", "--replay " + text + " maloc", "there are: ", 2},
		{"no such file", "--replay /nonexistent malloc", "name a recording", 2},
		{"no such expectation", "--replay " + text + " --expect /nonexistent malloc", "--expect", 2},
		{"not a recording", "--replay " + text + " malloc", "not a recording of attune; attune run --record FILE makes one", 1},
		{"an earlier format", "--replay " + earlier + " malloc", "it has format 1, this attune reads 2; use the attune that made it, or record again", 1},
		{"no option", "--replay " + text + " --option fast malloc", "NAME=VALUE", 2},
		{"unknown option", "--replay " + text + " --option fast=1 malloc", "fast", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := shell(t, "$ATTUNE_BINARY tunlet run "+tt.arguments, ""); got.code != tt.code || !strings.Contains(got.stderr, tt.says) {
				t.Errorf("%+v, want code %d and %q", got, tt.code, tt.says)
			}
		})
	}
	if got := shell(t, "$ATTUNE_BINARY report "+earlier, ""); got.code != 1 || !strings.Contains(got.stderr, earlier) || !strings.Contains(got.stderr, "use the attune that made it") {
		t.Errorf("report of an earlier format: %+v", got)
	}
}

// A recording that cannot be made is refused before the program starts.
func TestRecordNowhere(t *testing.T) {
	got := shell(t, "$ATTUNE_BINARY run --record /nonexistent/x -- echo started", "")
	if got.code != 2 || got.stdout != "" || !strings.Contains(got.stderr, "--record") {
		t.Errorf("%+v", got)
	}
}

// A full disk ends the recording, not the run.
func TestRecordOnFullDisk(t *testing.T) {
	got := shell(t, "$ATTUNE_BINARY run --record /dev/full -- echo started", "")
	if got.code != 0 || got.stdout != "started\n" || !strings.Contains(got.stderr, "the recording ends early") {
		t.Errorf("%+v", got)
	}
}
