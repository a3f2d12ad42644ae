// SPDX-License-Identifier: Apache-2.0

package offswitch_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/offswitch"
)

func TestOffAndOn(t *testing.T) {
	s := offswitch.Switch(filepath.Join(t.TempDir(), "attune", "off"))
	if reason, off := s.Off(); off {
		t.Fatalf("off before anybody switched it: %q", reason)
	}
	for _, why := range []string{"the filesystem is slow", "the network, too"} {
		if err := s.TurnOff(why); err != nil {
			t.Fatal(err)
		}
		if reason, off := s.Off(); !off || reason != why {
			t.Errorf("%q, %v, want off because of %q", reason, off, why)
		}
	}
	for _, want := range []bool{true, false} {
		if was, err := s.TurnOn(); was != want || err != nil {
			t.Errorf("switched on: it was off: %v, %v; want %v", was, err, want)
		}
	}
	if _, off := s.Off(); off {
		t.Error("still off")
	}
	if left, err := os.ReadDir(filepath.Dir(string(s))); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Whatever stands there switches off; what it says is cleaned and bounded.
func TestReasons(t *testing.T) {
	const none = "no reason is given"
	write := func(text string) func(string) error {
		return func(path string) error { return os.WriteFile(path, []byte(text), 0o600) }
	}
	for _, tt := range []struct {
		name string
		make func(path string) error
		want string
	}{
		{"empty", write(""), none},
		{"one line of several", write("maintenance\nuntil ten\n"), "maintenance"},
		{"no end of line", write("maintenance"), "maintenance"},
		{"terminal codes and bytes", write("a\x1b[31m\tb\xff"), "a?[31m?b?"},
		{"very long", write(strings.Repeat("x", 10_000)), strings.Repeat("x", 256)},
		{"a directory", func(path string) error { return os.Mkdir(path, 0o755) }, none},
		{"a pipe that nobody writes to", func(path string) error { return unix.Mkfifo(path, 0o644) }, none},
		{"a link to nothing", func(path string) error { return os.Symlink("nowhere", path) }, none},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "off")
			if err := tt.make(path); err != nil {
				t.Fatal(err)
			}
			if reason, off := offswitch.Switch(path).Off(); !off || reason != tt.want {
				t.Errorf("%q, %v; want off, %q", reason, off, tt.want)
			}
		})
	}
}

func TestAnyOfSeveral(t *testing.T) {
	dir := t.TempDir()
	first, second := offswitch.Switch(filepath.Join(dir, "first")), offswitch.Switch(filepath.Join(dir, "second"))
	look := offswitch.Any(first, second)
	if _, off := look(); off {
		t.Error("off without a file")
	}
	if err := second.TurnOff("why"); err != nil {
		t.Fatal(err)
	}
	if reason, off := look(); !off || !strings.Contains(reason, "why") || !strings.Contains(reason, string(second)) {
		t.Errorf("%q, %v, want the reason and the file", reason, off)
	}
}

func TestWatchTellsChangesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second-time.Millisecond)
		defer cancel()
		start := time.Now()
		look := func() (string, bool) { // off from the third to the fifth second
			at := time.Since(start)
			return "why", at >= 3*time.Second && at < 5*time.Second
		}
		var told []time.Duration
		offswitch.Watch(ctx, time.Second, false, look, func(_ string, off bool) {
			if off == (len(told) == 0) {
				told = append(told, time.Since(start))
			}
		})
		if len(told) != 2 || told[0].Truncate(time.Second) != 3*time.Second || told[1].Truncate(time.Second) != 5*time.Second {
			t.Errorf("told at %v, want once in the second after 3 s and once in that after 5 s", told)
		}
	})
}
