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
	pid, end := startCat(t)
	end()
	if id, err := procid.InnerID(pid, pid); !errors.Is(err, procid.ErrGone) {
		t.Errorf("of an ended process: %d, %v", id, err)
	}
}
