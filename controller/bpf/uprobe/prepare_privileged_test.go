// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package uprobe

import (
	"errors"
	"testing"
)

// TestPrepare: what the first point needs can be there before it, and once is enough.
func TestPrepare(t *testing.T) {
	u, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := u.Prepare(); err != nil {
			t.Fatal(err)
		}
	}
	if u.programs == nil || u.prices == nil && u.whyUnpriced == nil {
		t.Error("nothing was prepared")
	}
	if err := u.Close(); err != nil {
		t.Error(err)
	}
	if err := u.Prepare(); !errors.Is(err, ErrClosed) {
		t.Errorf("%v, want %v", err, ErrClosed)
	}
}
