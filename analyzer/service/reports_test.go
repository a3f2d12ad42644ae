// SPDX-License-Identifier: Apache-2.0

package service

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

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

// However many sessions change nothing, the report of one that did is kept, with its
// record; of those that did, the one goes that nobody has looked at.
func TestReportsThatMatter(t *testing.T) {
	const most = 3
	r, err := openReports(t.TempDir(), most, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	record := func(id string) *attunev1.SessionRecord {
		return &attunev1.SessionRecord{Id: id, Kept: 1, User: &attunev1.Principal{Uid: annUID, Role: attunev1.Role_ROLE_USER}}
	}
	put := func(id string, changes ...report.Change) {
		t.Helper()
		if err := r.put(record(id), &report.Report{Changes: changes}); err != nil {
			t.Fatal(err)
		}
		r.used[r.path(record(id))] = time.Now().Add(-time.Hour)
	}
	has := func(id string) bool {
		_, err := os.Stat(r.path(record(id)))
		return err == nil
	}
	put("tuned.1", report.Change{})
	for n := range 3 * most {
		put(fmt.Sprintf("short.%d", n))
	}
	if text, err := r.get(record("tuned.1")); err != nil || len(text) == 0 { // and so it is looked at
		t.Fatalf("after many short ones: %v", err)
	}
	for n := range most {
		put(fmt.Sprintf("more.%d", n), report.Change{})
	}
	if !has("tuned.1") || has("more.0") && has("more.1") && has("more.2") {
		t.Error("what was looked at has gone, or nothing has")
	}
	again, err := openReports(r.dir, most, r.log) // as the next start does
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*reports{r, again} {
		records := r.records()
		tuned := func(s *attunev1.SessionRecord) bool { return s.GetId() == "tuned.1" && s.GetKept() == 1 }
		if len(records) != most || !slices.ContainsFunc(records, tuned) {
			t.Errorf("records %v", records)
		}
	}
}

// TestReportWithoutItsRecord: a report is not lost because the record beside it cannot be
// written, and still counts as of a session that changed something.
func TestReportWithoutItsRecord(t *testing.T) {
	r, err := openReports(t.TempDir(), 1, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	tuned := &attunev1.SessionRecord{Id: "tuned.1"}
	path := recordOf(r.path(tuned))
	if err := os.MkdirAll(path, 0o700); err != nil { // no file can be put there
		t.Fatal(err)
	}
	if err := r.put(tuned, &report.Report{Changes: []report.Change{{}}}); err != nil {
		t.Errorf("the report counts as lost: %v", err)
	}
	for n := range 2 {
		if err := r.put(&attunev1.SessionRecord{Id: fmt.Sprintf("short.%d", n)}, &report.Report{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.get(tuned); err != nil {
		t.Error(err)
	}
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(files) != 3 { // two reports and the directory
		t.Errorf("there are %v, %v", files, err)
	}
}

// TestReportsOfBefore: those of an earlier start count, as long ago as they were looked at, and
// one that somebody else has deleted is no obstacle.
func TestReportsOfBefore(t *testing.T) {
	const most = 3
	record := func(n int) *attunev1.SessionRecord {
		return &attunev1.SessionRecord{Id: fmt.Sprintf("short.%d", n), User: &attunev1.Principal{Uid: annUID, Role: attunev1.Role_ROLE_USER}}
	}
	dir := t.TempDir()
	open := func() *reports {
		r, err := openReports(dir, most, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := open()
	put := func(n int) {
		t.Helper()
		if err := r.put(record(n), &report.Report{}); err != nil {
			t.Fatal(err)
		}
	}
	for n := range most {
		put(n)
		old := time.Now().Add(time.Duration(n-most) * time.Hour)
		if err := os.Chtimes(r.path(record(n)), old, old); err != nil {
			t.Fatal(err)
		}
	}
	r = open()
	if err := os.Remove(r.path(record(0))); err != nil {
		t.Fatal(err)
	}
	if _, err := r.get(record(1)); err != nil {
		t.Fatal(err)
	}
	put(3)
	put(4)
	var left []int
	for n := range 5 {
		if _, err := os.Stat(r.path(record(n))); err == nil {
			left = append(left, n)
		}
	}
	if want := []int{1, 3, 4}; !slices.Equal(left, want) || len(r.used) != most {
		t.Errorf("%v are left of %d that are known, want %v", left, len(r.used), want)
	}
}
