// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseSchedstat(t *testing.T) {
	tests := []struct {
		name, data string
		want       schedstat
		ok         bool
	}{
		{"plain", "786038 12 1\n", schedstat{786038, 12}, true},
		{"zero", "0 0 0\n", schedstat{}, true},
		{"greatest", "18446744073709551615 0 0\n", schedstat{run: 1<<64 - 1}, true},
		{"too large", "18446744073709551616 0 0\n", schedstat{}, false},
		{"one number", "12\n", schedstat{}, false},
		{"empty", "", schedstat{}, false},
		{"words", "a b c\n", schedstat{}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := parseSchedstat([]byte(test.data))
			if (err == nil) != test.ok || got != test.want || err != nil && !errors.Is(err, errMalformed) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func mustRead(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "status", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestParseStatus(t *testing.T) {
	tests := []struct {
		name string
		want status
	}{
		{"plain", status{17, 4, cpuMask{3}}},
		{"many-cpus", status{1<<64 - 1, 4, cpuMask{0xff, 0, 0xffffffff}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got status
			if err := parseStatus(mustRead(t, test.name), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(status{})); diff != "" {
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
		{"no number", "voluntary_ctxt_switches:\t\n"},
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

func FuzzParseSchedstat(f *testing.F) {
	f.Add([]byte("786038 12 1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := parseSchedstat(data); err != nil && !errors.Is(err, errMalformed) {
			t.Error(err)
		}
	})
}
