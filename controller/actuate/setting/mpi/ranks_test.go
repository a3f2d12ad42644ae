// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/internal/procid"
)

// Ranks may have different values of a variable of local scope: each gets its own back, also
// where a controller that was killed had changed some of them only.
func TestOwnValuesBack(t *testing.T) {
	identity, err := procid.Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	process := access.ProcessOf(identity)
	defer process.Close()
	having := func(values ...int64) *ranks {
		g := &ranks{name: "v", text: "7", begin: func() error { return nil }}
		for _, value := range values {
			g.members = append(g.members, &member{process: process, facts: mpiFacts{old: value, scope: scopeLocal, size: 8}})
		}
		return g
	}
	given := func(g *ranks) (values []int64) {
		for _, m := range g.members {
			values = append(values, m.value)
		}
		return values
	}
	made := having(1, 3)
	if err := made.decide(); err != nil || !slices.Equal(given(made), []int64{7, 7}) {
		t.Fatalf("%v, %v", given(made), err)
	}
	p := made.plan()
	if p.Told.Old != "1 to 3" {
		t.Errorf("it was %s", p.Told.Old)
	}
	for _, row := range []struct {
		name string
		now  []int64
		want error
	}{
		{"all changed", []int64{7, 7}, nil},
		{"the first alone", []int64{7, 3}, nil},
		{"one by others", []int64{7, 1}, access.ErrChangedByOthers},
	} {
		back := having(row.now...)
		back.undo = p.Undo[0].(*changedRanks)
		if err := back.decide(); !errors.Is(err, row.want) || err == nil && !slices.Equal(given(back), []int64{1, 3}) {
			t.Errorf("%s: given back %v, %v", row.name, given(back), err)
		}
	}
}
