// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/attune-hpc/attune/internal/registry"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// A new client gets all of what is registered, however much that is: here more
// than is on its way at a time.
func TestManyRegistrations(t *testing.T) { eachServer(t, testMany) }

func testMany(t *testing.T, server *process) {
	many, writers := 1000, 32
	if targets.AllRounds() {
		many = 10_000
	}
	c := mustOpen(t, server.URL)
	arguments := strings.Repeat("x", 1000)
	var tasks sync.WaitGroup
	for w := range writers {
		tasks.Go(func() {
			for i := w; i < many; i += writers {
				r := &attunev1.Registration{Id: fmt.Sprint("r", i), Executable: "solver", Arguments: arguments}
				if err := c.PutRegistration(patience.Context(t), r); err != nil {
					t.Error(err)
				}
			}
		})
	}
	tasks.Wait()
	all := func(v registry.View) bool { return len(v.Registrations) == many }
	watch(t, mustOpen(t, server.URL))("all of them", all)
	if list, err := c.Registrations(patience.Context(t)); err != nil || len(list) != many {
		t.Errorf("%d registrations, %v; want %d", len(list), err, many)
	}
}
