// SPDX-License-Identifier: Apache-2.0

package rundir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLastingStateDir(t *testing.T) {
	home := t.TempDir()
	u := userWith(map[string]string{"XDG_STATE_HOME": home})
	dir, err := u.LastingStateDir()
	if err != nil || u.UID != 0 && dir != filepath.Join(home, "attune") {
		t.Errorf("%s, %v", dir, err)
	}
	// A journal that would go with the command is none.
	file := filepath.Join(home, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	u = userWith(map[string]string{"XDG_STATE_HOME": file, "HOME": "relative"})
	u.UID = 1 << 30 // nobody, and not root
	if dir, err := u.LastingStateDir(); err == nil || !strings.Contains(err.Error(), "XDG_STATE_HOME") {
		t.Errorf("%s, %v", dir, err)
	}
}
