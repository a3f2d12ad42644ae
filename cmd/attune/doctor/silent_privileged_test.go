// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/asuser"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/silentfs"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestSilentArguments: a process with the name of the service whose arguments never answer holds up
// nobody who looks for the service.
func TestSilentArguments(t *testing.T) {
	const user = 65534
	served := silentfs.Mount(t, user, make([]byte, 1<<20))
	dir := asuser.Folder(t)
	link := filepath.Join(dir, nodeService)
	if err := os.Symlink(targets.Program(t, "unread"), link); err != nil {
		t.Fatal(err)
	}
	silent := served.Unread(t, user, link)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d, err := diagnoseServices()
		if err != nil || strings.Contains(fmt.Sprint(d), fmt.Sprint(nodeService, " ", silent.Pid, ":")) {
			t.Errorf("%+v, %v", d, err)
		}
	}()
	patience.Closed(t, "the diagnosis", ended)
}
