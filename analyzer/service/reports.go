// SPDX-License-Identifier: Apache-2.0

package service

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/quota"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// errNoReport is returned where no report is kept.
var errNoReport = errors.New("no report of it is kept here")

// reportSuffix ends the names of reports.
const reportSuffix = ".json"

// reports keeps the reports of sessions that have ended, a file each, in a folder for
// each user.
type reports struct {
	dir  string
	most int
	log  *slog.Logger
	mu   sync.Mutex // one change at a time
}

// openReports makes the directory, which others may not read: reports name the
// command lines of all users.
func openReports(dir string, most int, log *slog.Logger) (*reports, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("directory of reports: %w", err)
	}
	return &reports{dir: dir, most: most, log: log}, nil
}

// path is where a session's report is.
func (r *reports) path(of *attunev1.SessionRecord) string {
	owner := "nobody"
	if of.GetUser() != nil {
		owner = strconv.FormatUint(uint64(of.GetUser().GetUid()), 10)
	}
	return filepath.Join(r.dir, owner, of.GetId()+reportSuffix)
}

// put keeps a report. If that is one too many, the oldest of the user who has most goes.
func (r *reports) put(of *attunev1.SessionRecord, text *report.Report) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	path := r.path(of)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("keep the report: %w", err)
	}
	if err := text.WriteJSON(path); err != nil {
		return fmt.Errorf("keep the report: %w", err)
	}
	if err := r.prune(); err != nil {
		r.log.Warn("old reports are not deleted", "error", err)
	}
	return nil
}

// get returns a report, JSON. The error is errNoReport if there is none.
func (r *reports) get(of *attunev1.SessionRecord) ([]byte, error) {
	data, err := os.ReadFile(r.path(of))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoReport
	}
	return data, err
}

// kept is a file with a report.
type kept struct {
	path string
	at   time.Time
}

// prune deletes what is too much. The caller holds mu.
func (r *reports) prune() error {
	paths, err := filepath.Glob(filepath.Join(r.dir, "*", "*"+reportSuffix))
	if err != nil || len(paths) <= r.most {
		return err
	}
	var all []kept
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		all = append(all, kept{path, info.ModTime()})
	}
	slices.SortFunc(all, func(a, b kept) int { return a.at.Compare(b.at) })
	for len(all) > r.most {
		i := quota.Surplus(all, func(k kept) string { return filepath.Dir(k.path) })
		if err := os.Remove(all[i].path); err != nil {
			return err
		}
		all = slices.Delete(all, i, i+1)
	}
	return nil
}
