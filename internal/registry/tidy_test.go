// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"testing"

	"github.com/attune-hpc/attune/internal/registry"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// Marks of deletions go, and nothing else; young ones stay.
func TestTidy(t *testing.T) { eachServer(t, testTidy) }

func testTidy(t *testing.T, server *process) {
	c := mustOpen(t, server.URL)
	for _, id := range []string{"gone", "stays", "again"} {
		mustPut(t, c, id, "solver")
	}
	for _, id := range []string{"gone", "again"} {
		if err := c.DeleteRegistration(patience.Context(t), id); err != nil {
			t.Fatal(err)
		}
	}
	mustPut(t, c, "again", "solver")
	for _, row := range []struct {
		name string
		tidy func() error
		want int
	}{
		// Two registrations; marks of one, and of two owners that never were.
		{"at first", func() error { return nil }, 5},
		{"young marks", func() error { return c.TidyOrders(patience.Context(t), registry.MarksKept) }, 5},
		{"old marks", func() error { return c.TidyOrders(patience.Context(t), 0) }, 2},
	} {
		if err := row.tidy(); err != nil {
			t.Fatal(err)
		}
		if got, err := c.Orders(patience.Context(t)); err != nil || got != row.want {
			t.Errorf("%s: %d entries, %v; want %d", row.name, got, err, row.want)
		}
	}
	watch(t, c)("what was not deleted", has("stays", "again"))
}
