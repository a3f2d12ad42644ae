// SPDX-License-Identifier: Apache-2.0

package archived

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/archive"
)

// TestSendTogether: of commands that send what waits at the same time none fails because
// another one was faster, and each account is there once.
func TestSendTogether(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	const url, tasks, commands = "postgres://server/archive", 600, 6
	var waiting []*archive.Task
	for i := range tasks {
		task := &archive.Task{Schema: archive.SchemaID, Source: "attune", Account: account.Account{
			Schema: account.SchemaID, Command: []string{fmt.Sprintf("/bin/task%d", i)}, Exit: account.Exit{Type: account.ExitNormal, Code: new(0)},
		}}
		task.Account.Start = time.Unix(1_800_000_000, 0).UTC()
		task.Account.End = task.Account.Start.Add(time.Second)
		waiting = append(waiting, task)
	}
	path, err := waitingFile(url)
	if err != nil {
		t.Fatal(err)
	}
	from, to := mustOpen(t, path), mustOpen(t, filepath.Join(t.TempDir(), File))
	if _, err := from.Add(t.Context(), waiting...); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range commands {
		group.Go(func() {
			if err := send(t.Context(), to, url); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if all, err := to.List(t.Context(), archive.Filter{Limit: 2 * tasks}); err != nil || len(all) != tasks {
		t.Errorf("%d accounts, want %d: %v", len(all), tasks, err)
	}
}

func mustOpen(t *testing.T, path string) *archive.Store {
	t.Helper()
	s, err := archive.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // of a folder that goes
	return s
}
