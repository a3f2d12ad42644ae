// SPDX-License-Identifier: Apache-2.0

package service

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/outfile"
	"github.com/attune-hpc/attune/internal/quota"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// errNoReport is returned where no report is kept.
var errNoReport = errors.New("no report of it is kept here")

// reportSuffix ends the names of reports, recordSuffix those of the records of sessions
// that changed something.
const (
	reportSuffix = ".json"
	recordSuffix = ".session"
)

// reports keeps the reports of sessions that have ended, a file each, in a folder for
// each user. Beside the report of a session that changed something lies its record: the
// registry keeps that of each session for some days, and few matter for longer. Those
// and the other sessions' reports are counted apart, so that jobs in which nothing was
// to be done, of which there are thousands, never push out one in which something was.
type reports struct {
	dir  string
	most int // of each kind
	log  *slog.Logger

	mu sync.Mutex // one change at a time, and guards what follows
	// used is when each report was written, or last looked at, by its path.
	used map[string]time.Time
	// changed are the records that lie beside reports, by their paths: whoever names a
	// session that is not there must not have the disk read.
	changed map[string]*attunev1.SessionRecord
}

// openReports makes the directory, which others may not read: reports name the
// command lines of all users.
func openReports(dir string, most int, log *slog.Logger) (*reports, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("directory of reports: %w", err)
	}
	r := &reports{dir: dir, most: most, log: log, used: make(map[string]time.Time), changed: make(map[string]*attunev1.SessionRecord)}
	if err := r.list(); err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*"+recordSuffix))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		record, err := readRecord(path)
		if err != nil {
			log.Warn("record of a session is not read", "path", path, "error", err)
			continue
		}
		r.changed[path] = record
	}
	return r, nil
}

// list finds the reports of before.
func (r *reports) list() error {
	paths, err := filepath.Glob(filepath.Join(r.dir, "*", "*"+reportSuffix))
	if err != nil {
		return err
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			r.log.Warn("report of a session is not looked at", "path", path, "error", err)
			continue
		}
		r.used[path] = info.ModTime()
	}
	return nil
}

// path is where a session's report is.
func (r *reports) path(of *attunev1.SessionRecord) string {
	owner := "nobody"
	if of.GetUser() != nil {
		owner = strconv.FormatUint(uint64(of.GetUser().GetUid()), 10)
	}
	return filepath.Join(r.dir, owner, of.GetId()+reportSuffix)
}

// put keeps a report; after an error it is lost. If that is one too many of its kind, the
// one of the user who has most goes that was written, or last looked at, the longest ago.
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
	r.used[path] = time.Now()
	if len(text.Changes) > 0 {
		if err := writeRecord(recordOf(path), of); err != nil { // the report is there all the same
			r.log.Warn("record of a session is not kept: after the next start it counts as one that changed nothing", "session", of.GetId(), "error", err)
		}
		r.changed[recordOf(path)] = proto.CloneOf(of)
	}
	if err := r.prune(); err != nil {
		r.log.Warn("old reports are not deleted", "error", err)
	}
	return nil
}

// recordOf is where the record lies that belongs to a report.
func recordOf(path string) string { return strings.TrimSuffix(path, reportSuffix) + recordSuffix }

func writeRecord(path string, of *attunev1.SessionRecord) error {
	text, err := protojson.Marshal(of)
	if err != nil {
		return err
	}
	return outfile.PutDurably(path, text, 0o600)
}

func readRecord(path string) (*attunev1.SessionRecord, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	record := &attunev1.SessionRecord{}
	return record, protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(text, record)
}

// records returns the records of sessions that changed something, whose reports are
// kept. They are not to be changed.
func (r *reports) records() []*attunev1.SessionRecord {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.changed))
}

// get returns a report, JSON, which is kept for longer for having been looked at. The
// error is errNoReport if there is none.
func (r *reports) get(of *attunev1.SessionRecord) ([]byte, error) {
	path := r.path(of)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoReport
	}
	if err == nil {
		now := time.Now()
		r.mu.Lock()
		if _, kept := r.used[path]; kept { // else it has been deleted meanwhile
			r.used[path] = now
		}
		r.mu.Unlock()
		_ = os.Chtimes(path, now, now) // a report that cannot be touched was readable all the same
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
	if len(r.used) <= r.most {
		return nil
	}
	var plain, changed []kept
	for path, at := range r.used {
		list := &plain
		if r.changed[recordOf(path)] != nil {
			list = &changed
		}
		*list = append(*list, kept{path, at})
	}
	return errors.Join(r.removeSurplus(plain), r.removeSurplus(changed))
}

// removeSurplus deletes reports, with the records that belong to them, until there are
// no more than may be. The caller holds mu.
func (r *reports) removeSurplus(all []kept) error {
	slices.SortFunc(all, func(a, b kept) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.path, b.path)) })
	for len(all) > r.most {
		i := quota.Surplus(all, func(k kept) string { return filepath.Dir(k.path) })
		for _, path := range []string{all[i].path, recordOf(all[i].path)} {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		delete(r.used, all[i].path)
		delete(r.changed, recordOf(all[i].path))
		all = slices.Delete(all, i, i+1)
	}
	return nil
}
