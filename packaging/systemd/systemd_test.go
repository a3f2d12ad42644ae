// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/files"
)

// TestExposure holds the units to what they may expose at most, as systemd counts
// it. attuned has to be what it looks into: see docs/design/0056.
func TestExposure(t *testing.T) {
	for _, tt := range []struct {
		name, unit string
		most       float64
	}{
		{"attuned", Attuned, 3.9},
		{"attuned, narrow", Attuned + Narrow, 3.0},
		{"Analyzer", Analyzer, 1.5},
		{"issuing service", Issuer, 1.5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "attune.service")
			files.Write(t, file, tt.unit, 0o600)
			out, err := exec.Command("systemd-analyze", "security", "--offline=yes", "--no-pager", file).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			level := regexp.MustCompile(`exposure level for \S+ ([0-9.]+)`).FindSubmatch(out)
			if level == nil {
				t.Fatalf("no figure: %s", out)
			}
			if got, err := strconv.ParseFloat(string(level[1]), 64); err != nil || got > tt.most {
				t.Errorf("%v, %v, want at most %v\n%s", got, err, tt.most, out)
			}
		})
	}
}

// TestTriesAgain: no unit ends as failed because what keeps its service from starting took
// longer than a few attempts, but for settings that are wrong.
func TestTriesAgain(t *testing.T) {
	for name, text := range map[string]string{"attuned": Attuned, "attune-analyzer": Analyzer, "attune-ca": Issuer} {
		for _, line := range []string{"Restart=always", "StartLimitIntervalSec=0", "RestartPreventExitStatus=2", "Environment=GOTRACEBACK=crash"} {
			if !strings.Contains(text, "\n"+line+"\n") {
				t.Errorf("%s is without %s", name, line)
			}
		}
		if strings.Contains(text, "\nExecStartPre=") {
			t.Errorf("%s has an ExecStartPre=, whose exit status RestartPreventExitStatus= does not heed", name)
		}
	}
}

// TestOutOfMemory: where the kernel ends one process of a service for want of memory, systemd leaves
// the others alone: by itself it would stop the service.
func TestOutOfMemory(t *testing.T) {
	for name, text := range map[string]string{"attuned": Attuned, "attune-analyzer": Analyzer} {
		if !strings.Contains(text, "\nOOMPolicy=continue\n") {
			t.Errorf("%s is stopped with its sessions when one of its processes runs out of memory", name)
		}
	}
}

// TestUnits: systemd understands every line.
func TestUnits(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"attuned": Attuned, "attune-analyzer": Analyzer, "attune-ca": Issuer, "narrow": Attuned + Narrow} {
		// The programs are not installed here.
		text = regexp.MustCompile(`/usr/bin/attuned?`).ReplaceAllString(text, "/bin/true")
		file := filepath.Join(dir, name+".service")
		files.Write(t, file, text, 0o600)
		if out, err := exec.Command("systemd-analyze", "verify", "--man=no", file).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}

// mustMakeUsers makes a directory that is the root of a system with the services' users.
func mustMakeUsers(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	for _, dir := range []string{"etc", "run", "var/lib", "var/cache"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	users := mustWrite(t, root, "users.conf", Users)
	if out, err := exec.Command("systemd-sysusers", "--root", root, users).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return root
}

func mustWrite(t *testing.T, root, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(root, name)
	files.Write(t, path, text, 0o600)
	return path
}

func TestUsers(t *testing.T) {
	root := mustMakeUsers(t)
	passwd, err := os.ReadFile(filepath.Join(root, "etc/passwd"))
	for _, user := range []string{"attune", "attune-ca"} {
		if err != nil || !regexp.MustCompile(`(?m)^`+user+`:x:[0-9]{1,3}:`).Match(passwd) {
			t.Errorf("%s: %v: %s", user, err, passwd)
		}
	}
}

func TestDirectories(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give directories away")
	}
	root := mustMakeUsers(t)
	attuned, analyzer := mustWrite(t, root, "attuned.conf", AttunedDirectories), mustWrite(t, root, "analyzer.conf", AnalyzerDirectories)
	// Both on one machine: what they both name they agree on, or systemd says so.
	if out, err := exec.Command("systemd-tmpfiles", "--root", root, "--create", attuned, analyzer).CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("%v: %s", err, out)
	}
	for dir, mode := range map[string]os.FileMode{
		"run/attune": 0o755, "run/attune/analyzer": 0o755, "var/lib/attune": 0o711, "var/lib/attune/analyzer": 0o700, "etc/attune/pki": 0o755,
		"var/lib/attune/pki": 0o755, "var/lib/attune/analyzer/pki": 0o700, "etc/attune/issuer": 0o755,
	} {
		if info, err := os.Stat(filepath.Join(root, dir)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v, want mode %o", dir, info, err, mode)
		}
	}
}
