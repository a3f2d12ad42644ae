// SPDX-License-Identifier: Apache-2.0

package unixmsg_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/pending"
	"github.com/attune-hpc/attune/internal/unixmsg"
)

// What came before the deadline is read after it, too.
func TestReadAfterTheDeadline(t *testing.T) {
	from, to := mustPair(t)
	if err := to.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := unixmsg.Read(to, 8, 0); !errors.Is(err, os.ErrDeadlineExceeded) || pending.Input(to) {
		t.Errorf("nothing was sent: error %v, pending %v", err, pending.Input(to))
	}
	if _, err := from.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	message, _, err := unixmsg.Read(to, 8, 0)
	if err != nil || string(message) != "hello" {
		t.Errorf("read %q, error %v", message, err)
	}
}
