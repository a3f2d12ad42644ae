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
	"strings"
	"sync"

	"github.com/attune-hpc/attune/analyzer/report"
)

// errNoReport is returned where no report is kept.
var errNoReport = errors.New("no report of it is kept here")

// reportSuffix ends the names of reports.
const reportSuffix = ".json"

// reports keeps the reports of sessions that have ended, a file each.
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

func (r *reports) path(id string) string { return filepath.Join(r.dir, id+reportSuffix) }

// put keeps a report, and deletes the oldest ones of those that are too many.
func (r *reports) put(id string, of *report.Report) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := of.WriteJSON(r.path(id)); err != nil {
		return fmt.Errorf("keep the report: %w", err)
	}
	r.prune()
	return nil
}

// get returns a report, JSON. The error is errNoReport if there is none.
func (r *reports) get(id string) ([]byte, error) {
	data, err := os.ReadFile(r.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoReport
	}
	return data, err
}

// prune deletes the oldest reports. The caller holds mu.
func (r *reports) prune() {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		r.log.Warn("old reports are not deleted", "error", err)
		return
	}
	var kept []fs.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil && strings.HasSuffix(e.Name(), reportSuffix) {
			kept = append(kept, info)
		}
	}
	if len(kept) <= r.most {
		return
	}
	slices.SortFunc(kept, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, old := range kept[:len(kept)-r.most] {
		if err := os.Remove(filepath.Join(r.dir, old.Name())); err != nil {
			r.log.Warn("old report is not deleted", "error", err)
		}
	}
}
