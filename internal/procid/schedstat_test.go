// SPDX-License-Identifier: Apache-2.0

package procid_test

import (
	"errors"
	"os/exec"
	"testing"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

func TestParseSchedstat(t *testing.T) {
	tests := []struct {
		name, data string
		want       procid.Schedstat
		ok         bool
	}{
		{"plain", "786038 12 1\n", procid.Schedstat{Run: 786038, Wait: 12}, true},
		{"zero", "0 0 0\n", procid.Schedstat{}, true},
		{"greatest", "18446744073709551615 0 0\n", procid.Schedstat{Run: 1<<64 - 1}, true},
		{"too large", "18446744073709551616 0 0\n", procid.Schedstat{}, false},
		{"one number", "12\n", procid.Schedstat{}, false},
		{"empty", "", procid.Schedstat{}, false},
		{"words", "a b c\n", procid.Schedstat{}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := procid.ParseSchedstat([]byte(test.data))
			if (err == nil) != test.ok || got != test.want || err != nil && !errors.Is(err, procid.ErrMalformed) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func FuzzParseSchedstat(f *testing.F) {
	f.Add([]byte("786038 12 1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := procid.ParseSchedstat(data); err != nil && !errors.Is(err, procid.ErrMalformed) {
			t.Error(err)
		}
	})
}

// TestRunnable: who computes is runnable, who sleeps is not, who has ended is gone.
func TestRunnable(t *testing.T) {
	for script, runnable := range map[string]bool{"while :; do :; done": true, "exec sleep 1000": false} {
		cmd := exec.Command("sh", "-c", script)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		patience.Until(t, script, func() bool {
			is, err := procid.Runnable(cmd.Process.Pid)
			return err == nil && is == runnable
		})
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
		if _, err := procid.Runnable(cmd.Process.Pid); !errors.Is(err, procid.ErrGone) {
			t.Errorf("of one that has ended: %v", err)
		}
	}
}
