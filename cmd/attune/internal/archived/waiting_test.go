// SPDX-License-Identifier: Apache-2.0

package archived

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/archive"
)

// TestSentByAnother: what another command sends between a look at what waits and its
// turn is nothing that this one fails of.
func TestSentByAnother(t *testing.T) {
	s, err := archive.Open(t.Context(), filepath.Join(t.TempDir(), File))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var waiting []*archive.Task
	for i := range 3 {
		task := &archive.Task{Schema: archive.SchemaID, Source: "attune", Account: account.Account{
			Schema: account.SchemaID, Command: []string{fmt.Sprintf("/bin/task%d", i)}, Exit: account.Exit{Type: account.ExitNormal, Code: new(0)},
		}}
		task.Account.Start = time.Unix(1_800_000_000, 0).UTC()
		task.Account.End = task.Account.Start.Add(time.Second)
		waiting = append(waiting, task)
	}
	if _, err := s.Add(t.Context(), waiting...); err != nil {
		t.Fatal(err)
	}
	list, err := s.List(t.Context(), archive.Filter{Limit: sentAtOnce})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(t.Context(), list[1].ID); err != nil {
		t.Fatal(err)
	}
	tasks, ids, err := read(t.Context(), s, list)
	if want := []string{list[0].ID, list[2].ID}; err != nil || len(tasks) != 2 || !slices.Equal(ids, want) {
		t.Errorf("%d tasks %q, want %q: %v", len(tasks), ids, want, err)
	}
}
