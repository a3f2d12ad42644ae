// SPDX-License-Identifier: Apache-2.0

package nfpm

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/files"
)

// TestVersionsSort: what is built later has the later version, for dpkg.
func TestVersionsSort(t *testing.T) {
	dir := t.TempDir()
	script := files.Read(t, "../../scripts/version")
	if err := os.Mkdir(filepath.Join(dir, "scripts"), 0o755); err != nil {
		t.Fatal(err)
	}
	files.Write(t, filepath.Join(dir, "scripts/version"), script, 0o755)
	day := 0
	run := func(name string, args ...string) string {
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		date := "2026-01-0" + string(rune('1'+day)) + "T00:00:00Z"
		cmd.Env = append(os.Environ(), "GIT_AUTHOR_DATE="+date, "GIT_COMMITTER_DATE="+date, "GIT_CONFIG_GLOBAL=/dev/null",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@localhost", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@localhost")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v: %s", name, args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	commit := func() {
		day++
		run("git", "add", "--all")
		run("git", "commit", "--quiet", "--allow-empty", "--message=m")
	}
	if got := run("scripts/version"); got != "0~unknown" {
		t.Fatalf("without git: %s", got)
	}
	last := "0~1" // before all others
	run("git", "init", "--quiet")
	for _, step := range []struct {
		name string
		do   func()
		want string
	}{
		{"first", commit, `0~20260102000000\.[0-9a-f]{8}`},
		{"second", commit, `0~20260103000000\.[0-9a-f]{8}`},
		{"candidate", func() { run("git", "tag", "v1.2.0-rc1") }, `1\.2\.0~rc1`},
		{"after it", commit, `1\.2\.0~rc1\+1\.20260104000000\.[0-9a-f]{8}`},
		{"release", func() { run("git", "tag", "v1.2.0") }, `1\.2\.0`},
		{"after that", commit, `1\.2\.0\+1\.20260105000000\.[0-9a-f]{8}`},
		{"changed", func() { run("sh", "-c", "echo >>scripts/version") }, `1\.2\.0\+1\.20260105000000\.[0-9a-f]{8}\+dirty`},
		{"next release", func() { run("git", "checkout", "."); commit(); run("git", "tag", "v1.2.1") }, `1\.2\.1`},
	} {
		step.do()
		got := run("scripts/version")
		if !regexp.MustCompile("^" + step.want + "$").MatchString(got) {
			t.Errorf("%s: %s, want %s", step.name, got, step.want)
		}
		if err := exec.Command("dpkg", "--compare-versions", last, "lt", got).Run(); err != nil {
			t.Errorf("%s: %s is not after %s", step.name, got, last)
		}
		last = got
	}
}
