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
		{name: "default", wants: "/run/attune/gate.sock"},
		{name: "file", file: "/file", wants: "/file"},
		{name: "drop-in over file", file: "/file", drop: "/drop", wants: "/drop"},
		{name: "environment over drop-in", file: "/file", drop: "/drop", env: "/env", wants: "/env"},
		{name: "flag over environment", file: "/file", drop: "/drop", env: "/env", flag: "/flag", wants: "/flag"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "attuned.yaml")
			mustWrite(t, file, "analyzer: unix:/a\njob: j\n"+gateLine(test.file))
			if test.drop != "" {
				mustWrite(t, filepath.Join(file+".d", "10.yaml"), gateLine(test.drop))
			}
			if test.env != "" {
				t.Setenv("ATTUNED_GATE", test.env)
			}
			args := []string{"--config", file}
			if test.flag != "" {
				args = append(args, "--gate", test.flag)
			}
			s, err := load(args, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			if s.gate != test.wants {
				t.Errorf("gate is %s, want %s", s.gate, test.wants)
			}
		})
	}
}

func gateLine(path string) string {
	if path == "" {
		return ""
	}
	return "gate: " + path + "\n"
}

func mustWrite(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestBadConfiguration(t *testing.T) {
	dir := t.TempDir()
	mustWrite(t, filepath.Join(dir, "typo.yaml"), "analyser: unix:/a\n")
	mustWrite(t, filepath.Join(dir, "broken.yaml"), "a: [\n")
	mustWrite(t, filepath.Join(dir, "batch.yaml"), "batch: [{name: own}]\n")
	tests := []struct {
		name  string
		args  []string
		wants string
	}{
		{"no analyzer", []string{"--job", "j"}, "give its address with --analyzer"},
		{"analyzer without job", []string{"--analyzer", "unix:/a"}, "found in its registry"},
		{"registry", []string{"--registry", "somewhere"}, "tls://HOST:PORT"},
		{"no certificate", []string{"--registry", "tls://host:4222", "--tls-ca", filepath.Join(dir, "ca.pem")}, "ca.pem"},
		{"way to find", []string{"--find", "guess"}, "neither watch nor poll"},
		{"interval", []string{"--poll-interval", "0"}, "give a time"},
		{"budget", []string{"--budget", "101"}, "0 to 100"},
		{"relative directory", []string{"--run-dir", "run"}, "must be absolute"},
		{"log format", []string{"--log-format", "xml"}, "neither text nor json"},
		{"batch system", []string{"--config", filepath.Join(dir, "batch.yaml")}, "needs a name, and daemons"},
		{"unknown key", []string{"--config", filepath.Join(dir, "typo.yaml")}, "unknown key"},
		{"broken file", []string{"--config", filepath.Join(dir, "broken.yaml")}, "broken.yaml"},
		{"missing file", []string{"--config", filepath.Join(dir, "missing.yaml")}, "missing.yaml"},
		{"level", []string{"--analyzer", "unix:/a", "--job", "j", "--log-level", "loud"}, "none of debug, info, warn, error"},
		{"analyzer on a network", []string{"--analyzer", "dns:node7:4000", "--job", "j"}, "must be a Unix socket"},
		{"argument", []string{"./solver"}, "attune run"},
		{"relative gate", []string{"--analyzer", "unix:/a", "--job", "j", "--gate", "g"}, "absolute"},
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
	s, err := load([]string{"--analyzer", "unix:/a", "--job", "j", "--log-level", "debug"}, io.Discard)
	if err != nil || s.level != slog.LevelDebug {
		t.Errorf("level %v, %v", s.level, err)
	}
}
