// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/internal/testing/files"
)

func mustRead(t testing.TB, name string) []byte {
	t.Helper()
	return files.Read(t, filepath.Join("testdata", "status", name))
}

func TestParseStatus(t *testing.T) {
	tests := []struct {
		name string
		want status
	}{
		{"plain", status{17, 4, cpuMask{3}, anonymous{1_024_000, true}}},
		{"many-cpus", status{1<<64 - 1, 4, cpuMask{0xff, 0, 0xffffffff}, anonymous{}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got status
			if err := parseStatus(mustRead(t, test.name), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(status{}, anonymous{})); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseStatusRefuses(t *testing.T) {
	tests := []struct{ name, data string }{
		{"empty", ""},
		{"no switches", "Cpus_allowed:\t3\n"},
		{"mask of letters", "Cpus_allowed:\txyz\n"},
		{"group too long", "Cpus_allowed:\t123456789\n"},
		{"empty group", "Cpus_allowed:\tff,,ff\n"},
		{"twice the same", "voluntary_ctxt_switches:\t1\nvoluntary_ctxt_switches:\t1\nnonvoluntary_ctxt_switches:\t1\n"},
		{"no number", "voluntary_ctxt_switches:\t\n"},
		{"no bytes", "RssAnon:\t kB\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if err := parseStatus([]byte(test.data), &status{}); !errors.Is(err, errMalformed) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func FuzzParseStatus(f *testing.F) {
	f.Add(mustRead(f, "plain"))
	f.Add(mustRead(f, "many-cpus"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s status
		if err := parseStatus(data, &s); err == nil && (len(s.cpus) == 0 || len(s.cpus) > maxMaskGroups) {
			t.Errorf("accepted a mask of %d groups", len(s.cpus))
		}
	})
}

func TestMaskAsList(t *testing.T) {
	tests := []struct {
		mask cpuMask
		want string
	}{
		{nil, ""},
		{cpuMask{0}, ""},
		{cpuMask{1}, "0"},
		{cpuMask{0x10f}, "0-3,8"},
		{cpuMask{1, 1 << 31}, "31-32"},
		{cpuMask{0x80000000, 0xffffffff}, "0-31,63"},
	}
	for _, test := range tests {
		if got := test.mask.list(); got != test.want {
			t.Errorf("%x is %q, want %q", test.mask, got, test.want)
		}
	}
}

func TestParseTransfers(t *testing.T) {
	tests := []struct {
		name, data string
		want       [4]uint64
		ok         bool
	}{
		{"plain", "rchar: 10\nwchar: 20\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\ncancelled_write_bytes: 0\n", [4]uint64{10, 20, 3, 4}, true},
		{"greatest", "rchar: 18446744073709551615\nwchar: 0\nsyscr: 0\nsyscw: 0\n", [4]uint64{1<<64 - 1}, true},
		{"no calls", "rchar: 10\nwchar: 20\n", [4]uint64{}, false},
		{"no number", "rchar: 10\nwchar: 20\nsyscr: x\nsyscw: 4\n", [4]uint64{}, false},
		{"empty", "", [4]uint64{}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			readings, err := parseTransfers([]byte(test.data))
			var got [4]uint64
			for i := 0; i < len(got) && err == nil; i++ {
				got[i] = readings[i].Value
			}
			if (err == nil) != test.ok || got != test.want || err != nil && !errors.Is(err, errMalformed) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func FuzzParseTransfers(f *testing.F) {
	f.Add([]byte("rchar: 10\nwchar: 20\nsyscr: 3\nsyscw: 4\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := parseTransfers(data); err != nil && !errors.Is(err, errMalformed) {
			t.Error(err)
		}
	})
}
