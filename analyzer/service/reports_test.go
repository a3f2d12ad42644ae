// SPDX-License-Identifier: Apache-2.0

package service

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/attune-hpc/attune/analyzer/report"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestReportsOfAUser: however many sessions one user has, another's report is kept.
func TestReportsOfAUser(t *testing.T) {
	const most = 4
	r, err := openReports(t.TempDir(), most, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	record := func(id string, uid uint32) *attunev1.SessionRecord {
		return &attunev1.SessionRecord{Id: id, User: &attunev1.Principal{Uid: uid, Role: attunev1.Role_ROLE_USER}}
	}
	keep := func(of *attunev1.SessionRecord) {
		if err := r.put(of, &report.Report{}); err != nil {
			t.Fatal(err)
		}
	}
	hers := record("solver-abcd.slurm-1", annUID)
	keep(hers)
	for n := range 3 * most {
		keep(record(fmt.Sprintf("bomb-abcd.slurm-%d", n), bobUID))
	}
	if _, err := r.get(hers); err != nil {
		t.Errorf("ann's report: %v", err)
	}
	kept := 0
	for n := range 3 * most {
		if _, err := r.get(record(fmt.Sprintf("bomb-abcd.slurm-%d", n), bobUID)); err == nil {
			kept++
		} else if !errors.Is(err, errNoReport) {
			t.Error(err)
		}
	}
	if kept != most-1 {
		t.Errorf("%d of bob's are kept, want %d", kept, most-1)
	}
}
