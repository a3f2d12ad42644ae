// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/sqlfile"
)

var (
	// ErrFull means that there is no room on the disk.
	ErrFull = errors.New("there is no room on the disk")
	// ErrBroken means that the file is no archive, or damaged.
	ErrBroken = errors.New("it is damaged, or no archive")
	// ErrBusy means that another process was writing for all the time that was waited.
	ErrBusy = errors.New("another process has been writing to it all the while")
	// ErrAway means that the server of the archive does not answer.
	ErrAway = errors.New("the server does not answer")
	// ErrUnreadable means that the document of a task is damaged, or larger than may be read.
	ErrUnreadable = errors.New("its account cannot be read")
	// ErrUnknown means that there is no such task or category.
	ErrUnknown = errors.New("not in the archive")
	// ErrAmbiguous means that several tasks have an id with that beginning.
	ErrAmbiguous = errors.New("several have an id that begins so")
)

// SQLite's codes, in the lowest byte of its extended ones.
const (
	sqliteReadOnly = 8
	sqliteInOut    = 10
	sqliteCorrupt  = 11
	sqliteFull     = 13
	sqliteCantOpen = 14
	sqliteNotADB   = 26
)

// explain says what an error of SQLite means, and what to do.
func (s *file) explain(err error) error {
	if err == nil {
		return nil
	}
	code, ok := sqlfile.Code(err)
	if !ok {
		remedy := ""
		if errors.Is(err, sqlfile.ErrNewer) {
			remedy = "; use that version, or move the file away"
		}
		return fmt.Errorf("archive %s: %w%s", s.path, err, remedy)
	}
	if code == sqliteInOut && noRoom(s.path) { // for the log beside the file
		code = sqliteFull
	}
	switch code {
	case sqlfile.Busy:
		return fmt.Errorf("archive %s: %w; try again", s.path, ErrBusy)
	case sqliteFull:
		return fmt.Errorf("archive %s: %w: nothing was changed; make room, and try again", s.path, ErrFull)
	case sqliteCorrupt, sqliteNotADB:
		return fmt.Errorf("archive %s: %w: %w; move it away, and the next task begins a new one (attune archive import brings exports back)",
			s.path, ErrBroken, err)
	case sqliteReadOnly, sqliteCantOpen, sqliteInOut:
		return fmt.Errorf("archive %s: %w; look at the rights, the quota and the file system of that file", s.path, err)
	}
	return fmt.Errorf("archive %s: %w", s.path, err)
}

// noRoom says whether nothing is left where a file is.
func noRoom(path string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(path, &fs) == nil && fs.Bavail == 0
}
