// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/internal/testing/files"
)

func TestCollectorKeepsWarningsOnce(t *testing.T) {
	var c Collector
	log, done, err := Open(Options{Collect: &c})
	if err != nil {
		t.Fatal(err)
	}
	log.Info("not kept")
	log.With("component", "gate").Warn("refuse", "pid", 7)
	log.With("component", "track").Warn("refuse", "pid", 7)
	log.Error("load", "error", errors.New("no BPF"))
	if err := done(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"refuse pid=7", "load: no BPF"}, c.Lines()); diff != "" {
		t.Error(diff)
	}
}

func TestCollectorIsBounded(t *testing.T) {
	var c Collector
	log := slog.New(&c)
	for i := range collected + 3 {
		log.Warn(fmt.Sprint("line ", i))
	}
	lines := c.Lines()
	if got := lines[len(lines)-1]; len(lines) != collected+1 || !strings.HasPrefix(got, "3 more") {
		t.Errorf("%d lines, last %q", len(lines), got)
	}
}

func TestFileGetsItsLevel(t *testing.T) {
	tests := []struct {
		level string
		want  int
	}{{"debug", 3}, {"info", 2}, {"error", 0}}
	for _, tt := range tests {
		t.Run(tt.level, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "log")
			level, err := ParseLevel(tt.level)
			if err != nil {
				t.Fatal(err)
			}
			log, done, err := Open(Options{File: file, Level: level})
			if err != nil {
				t.Fatal(err)
			}
			log.Debug("a")
			log.Info("b")
			log.Warn("c")
			if err := done(); err != nil {
				t.Fatal(err)
			}
			text := files.Read(t, file)
			if got := strings.Count(string(text), "\n"); got != tt.want {
				t.Errorf("%d lines, want %d:\n%s", got, tt.want, text)
			}
		})
	}
}

func TestBadInput(t *testing.T) {
	if _, err := ParseLevel("loud"); err == nil || !strings.Contains(err.Error(), "debug, info") {
		t.Errorf("ParseLevel(loud): %v does not name the levels", err)
	}
	if _, _, err := Open(Options{File: t.TempDir()}); err == nil {
		t.Error("a directory was opened as log file")
	}
}
