// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/testing/files"
)

func TestPrecedence(t *testing.T) {
	tests := []struct {
		name  string
		file  string
		drop  string
		env   string
		flag  string
		wants string
	}{
		{name: "default", wants: "/var/lib/attune/audit.jsonl"},
		{name: "file", file: "/file", wants: "/file"},
		{name: "drop-in over file", file: "/file", drop: "/drop", wants: "/drop"},
		{name: "environment over drop-in", file: "/file", drop: "/drop", env: "/env", wants: "/env"},
		{name: "flag over environment", file: "/file", drop: "/drop", env: "/env", flag: "/flag", wants: "/flag"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "attuned.yaml")
			mustWrite(t, file, auditLine(test.file))
			if test.drop != "" {
				mustWrite(t, filepath.Join(file+".d", "10.yaml"), auditLine(test.drop))
			}
			if test.env != "" {
				t.Setenv("ATTUNED_AUDIT_LOG", test.env)
			}
			args := []string{"--config", file}
			if test.flag != "" {
				args = append(args, "--audit-log", test.flag)
			}
			s, err := load(args, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			if s.audit != test.wants {
				t.Errorf("audit log is %s, want %s", s.audit, test.wants)
			}
		})
	}
}

func auditLine(path string) string {
	if path == "" {
		return ""
	}
	return "audit-log: " + path + "\n"
}

func mustWrite(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	files.Write(t, path, content, 0o600)
}

func TestBadConfiguration(t *testing.T) {
	dir := t.TempDir()
	mustWrite(t, filepath.Join(dir, "typo.yaml"), "nodename: n1\n")
	mustWrite(t, filepath.Join(dir, "broken.yaml"), "a: [\n")
	mustWrite(t, filepath.Join(dir, "two.yaml"), "budget: 2\n---\nfind: poll\n")
	mustWrite(t, filepath.Join(dir, "batch.yaml"), "batch: [{name: own}]\n")
	mustWrite(t, filepath.Join(dir, "unit.yaml"), "poll-interval: 5\n")
	mustWrite(t, filepath.Join(dir, "word.yaml"), "budget: two\n")
	mustWrite(t, filepath.Join(dir, "open.yaml"), "budget: 2\n")
	mustWrite(t, filepath.Join(dir, "policy.yaml"), "service: [{mode: tun}]\n")
	if err := os.Chmod(filepath.Join(dir, "open.yaml"), 0o666); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		args  []string
		wants string
	}{
		{"registry", []string{"--registry", "somewhere"}, "tls://HOST:PORT"},
		{"no certificate", []string{"--registry", "tls://host:4222", "--tls-ca", filepath.Join(dir, "ca.pem")}, "ca.pem"},
		{"nothing to renew", []string{"--tls-issuer", "host:7118", "--tls-cert", filepath.Join(dir, "n.crt"), "--tls-key", filepath.Join(dir, "n.key")}, "n.key"},
		{"renewed by nobody", []string{"--tls-issuer", "host"}, "want HOST:PORT"},
		{"way to find", []string{"--find", "guess"}, "neither watch nor poll"},
		{"interval", []string{"--poll-interval", "0"}, "write a time, for example 10s"},
		{"interval without unit", []string{"--config", filepath.Join(dir, "unit.yaml")}, "write a time, for example 10s"},
		{"budget in words", []string{"--config", filepath.Join(dir, "word.yaml")}, "write a number"},
		{"file of everybody's", []string{"--config", filepath.Join(dir, "open.yaml")}, "chmod go-w"},
		{"policy", []string{"--policy", filepath.Join(dir, "policy.yaml")}, "policy.yaml"}, // it has to be root's, too
		{"budget beyond all", []string{"--budget", "101"}, "up to 100"},
		{"no budget", []string{"--budget", "0"}, "above 0"},
		{"no number as budget", []string{"--budget", "nan"}, "above 0"},
		{"relative directory", []string{"--run-dir", "run"}, "must be absolute"},
		{"log format", []string{"--log-format", "xml"}, "neither text nor json"},
		{"batch system", []string{"--config", filepath.Join(dir, "batch.yaml")}, "needs a name, and daemons"},
		{"unknown key", []string{"--config", filepath.Join(dir, "typo.yaml")}, "unknown key"},
		{"broken file", []string{"--config", filepath.Join(dir, "broken.yaml")}, "broken.yaml"},
		{"second document", []string{"--config", filepath.Join(dir, "two.yaml")}, "two.yaml: line 2: a second document"},
		{"missing file", []string{"--config", filepath.Join(dir, "missing.yaml")}, "missing.yaml"},
		{"level", []string{"--log-level", "loud"}, "none of debug, info, warn, error"},
		{"argument", []string{"./solver"}, "attune run"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var stderr strings.Builder
			if code := run(append(test.args, "--check-config"), io.Discard, &stderr); code != exitcode.Usage {
				t.Errorf("exit code %d, want %d", code, exitcode.Usage)
			}
			if !strings.Contains(stderr.String(), test.wants) {
				t.Errorf("message %q lacks %q", stderr.String(), test.wants)
			}
		})
	}
}

func TestLogLevel(t *testing.T) {
	s, err := load([]string{"--log-level", "debug"}, io.Discard)
	if err != nil || s.level != slog.LevelDebug {
		t.Errorf("level %v, %v", s.level, err)
	}
}
