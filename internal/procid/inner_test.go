// SPDX-License-Identifier: Apache-2.0

package procid_test

import (
	"errors"
	"os"
	"testing"

	"github.com/attune-hpc/attune/internal/procid"
)

func TestInnerID(t *testing.T) {
	if id, err := procid.InnerID(os.Getpid(), os.Getpid()); err != nil || id != os.Getpid() {
		t.Errorf("own id %d, %v", id, err)
	}
	if nested, err := procid.Nested(os.Getpid()); err != nil || nested {
		t.Errorf("nested in its own namespace: %t, %v", nested, err)
	}
	pid, end := startCat(t)
	end()
	if id, err := procid.InnerID(pid, pid); !errors.Is(err, procid.ErrGone) {
		t.Errorf("of an ended process: %d, %v", id, err)
	}
	if _, err := procid.Nested(pid); !errors.Is(err, procid.ErrGone) {
		t.Errorf("of an ended process: %v", err)
	}
}

func TestParseInnerID(t *testing.T) {
	for name, test := range map[string]struct {
		status string
		want   int
		fails  bool
	}{
		"same namespace": {"Name:\tx\nNSpid:\t77\n", 77, false},
		"container":      {"Name:\tx\nPid:\t4711\nNSpid:\t4711\t12\t3\nNSpgid:\t1\n", 3, false},
		"none":           {"Name:\tNSpid\nPid:\t1\n", 0, true},
		"no number":      {"NSpid:\tx\n", 0, true},
	} {
		got, err := procid.ParseInnerID([]byte(test.status))
		if got != test.want || (err != nil) != test.fails {
			t.Errorf("%s: %d, %v", name, got, err)
		}
	}
}
