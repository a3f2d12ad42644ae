// SPDX-License-Identifier: Apache-2.0

package procid_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/files"
)

func TestParseStat(t *testing.T) {
	plain := procid.Stat{
		PID: 10635, Comm: "cat", State: 'R', ParentPID: 10621, ProcessGroup: 10621, Session: 7434,
		MinorFaults: 100, Threads: 1, StartTicks: 148178, VirtualBytes: 3133440, ResidentPages: 412,
		LastCPU: 1, HeapStart: 93974845865984,
		Image: procid.Image{
			Code: 93974655598592, Stack: 140722106903088,
			Arguments: 140722106911396, Environment: 140722106911437,
		},
	}
	kernel := procid.Stat{PID: 2, Comm: "kthreadd", State: 'S', Kernel: true, UserTicks: 1, Threads: 1, StartTicks: 24}
	odd, thread, zombie := plain, plain, plain
	odd.Comm = "a) R (b\n c"
	thread.Comm, thread.Threads, thread.UserTicks, thread.SystemTicks, thread.MajorFaults = "lmp", 9, 812, 33, 4
	zombie.State, zombie.Image, zombie.VirtualBytes, zombie.ResidentPages, zombie.HeapStart = 'Z', procid.Image{}, 0, 0, 0
	zombie.ExitCode = 256
	ending := zombie
	ending.State = 'D'
	tests := []struct {
		fixture string
		want    procid.Stat
	}{
		{"plain", plain},
		{"odd-name", odd},
		{"threads", thread},
		{"zombie", zombie},
		{"ending", ending},
		{"kernel", kernel},
	}
	for _, test := range tests {
		t.Run(test.fixture, func(t *testing.T) {
			data := files.Read(t, filepath.Join("testdata", "stat", test.fixture))
			got, err := procid.ParseStat(data)
			if err != nil {
				t.Fatal(err)
			}
			if state, err := procid.ParseState(data); err != nil || state != test.want.State {
				t.Errorf("state %c, %v", state, err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("stat (-want +got):\n%s", diff)
			}
		})
	}
}

func TestZombie(t *testing.T) {
	tests := []struct {
		name               string
		stat               procid.Stat
		zombie, leaderless bool
	}{
		{"running", procid.Stat{State: 'R', Threads: 1}, false, false},
		{"zombie", procid.Stat{State: 'Z', Threads: 1}, true, false},
		{"being reaped", procid.Stat{State: 'X'}, true, false},
		{"first thread ended", procid.Stat{State: 'Z', Threads: 2}, false, true},
		{"first thread is ending", procid.Stat{State: 'R', Threads: 2}, false, true},
		{"several threads", procid.Stat{State: 'R', Threads: 2, VirtualBytes: 1}, false, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.stat.Zombie() != test.zombie || test.stat.Leaderless() != test.leaderless {
				t.Errorf("zombie %v, leaderless %v", test.stat.Zombie(), test.stat.Leaderless())
			}
		})
	}
}

func TestKilled(t *testing.T) {
	for signals, killed := range map[string]bool{"0": false, "256": true, "257": true, "2147483391": false} {
		got, err := procid.ParseStat([]byte("12 (cat) R 1" + strings.Repeat(" 0", 26) + " " + signals))
		if err != nil || got.Killed != killed {
			t.Errorf("signals %s wait: killed %v, %v", signals, got.Killed, err)
		}
	}
}

func TestParseStatRefuses(t *testing.T) {
	tests := []struct{ name, data string }{
		{"empty", ""},
		{"no name", "12 R 1 1 1"},
		{"no pid", "(cat) R 1 1 1"},
		{"brackets in reverse", "12 )cat( R"},
		{"short", "12 (cat) R 1 1 1 0"},
		{"long state", "12 (cat) RR 1"},
		{"word for signals", "12 (cat) R 1" + strings.Repeat(" 0", 26) + " x"},
		{"word for a number", "12 (cat) R x 1 1"},
		{"counter too large", "12 (cat) R 1 1 1 0 -1 0 18446744073709551616 0"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, err := procid.ParseStat([]byte(test.data)); !errors.Is(err, procid.ErrMalformed) {
				t.Errorf("error %v, want ErrMalformed", err)
			}
		})
	}
}

func FuzzParseStat(f *testing.F) {
	names, err := filepath.Glob("testdata/stat/*")
	if err != nil || len(names) == 0 {
		f.Fatal("no fixtures")
	}
	for _, name := range names {
		data := files.Read(f, name)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		stat, err := procid.ParseStat(data)
		if state, stateErr := procid.ParseState(data); err == nil && (stateErr != nil || state != stat.State) {
			t.Errorf("state %c, %v of %+v", state, stateErr, stat)
		}
		if err == nil && (stat.PID < 0 || stat.State == 0) {
			t.Errorf("accepted %q as %+v", data, stat)
		}
	})
}

func BenchmarkParseStat(b *testing.B) {
	data := files.Read(b, "testdata/stat/threads")
	for b.Loop() {
		if _, err := procid.ParseStat(data); err != nil {
			b.Fatal(err)
		}
	}
}
