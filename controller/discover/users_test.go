// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/testing/patience"
)

// A directory of users that does not answer is waited for once, whatever the
// number of names, and each name is asked for once.
func TestUsersAreWaitedForOnce(t *testing.T) {
	dir := t.TempDir()
	asked := filepath.Join(dir, "asked")
	mustWrite(t, filepath.Join(dir, "getent"), "#!/bin/sh\necho \"$3\" >>"+asked+"\nexec /bin/sleep 1000\n")
	t.Setenv("PATH", dir)
	ctx, cancel := context.WithCancel(patience.Context(t))
	defer cancel()
	go func() { // ends with ctx
		for ctx.Err() == nil {
			if text, _ := os.ReadFile(asked); len(text) > 0 {
				cancel() // the directory has had its time
			}
			time.Sleep(time.Millisecond)
		}
	}()
	u := newDirectory(ctx)
	for _, name := range []string{"attune-t-one", "attune-t-one", "attune-t-two", "attune-t-one"} {
		if uid, err := u.id(name); err == nil {
			t.Errorf("%s is %d", name, uid)
		}
	}
	if text, err := os.ReadFile(asked); err != nil || string(text) != "attune-t-one\n" {
		t.Errorf("asked for %q, %v: want the first name, once", text, err)
	}
	if uid, err := u.id("root"); err != nil || uid != 0 {
		t.Errorf("root is %d, %v: the files answer in any case", uid, err)
	}
}
