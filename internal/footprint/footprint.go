// SPDX-License-Identifier: Apache-2.0

package footprint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Question is what is to be measured.
type Question struct {
	// Directories are absolute paths.
	Directories []string
	// Most is how long measuring may take.
	Most time.Duration
}

// Footprint is what lies in directories.
type Footprint struct {
	// Files is all that is no directory: regular files, symbolic links, sockets and others, each
	// once, however many hard links it has.
	Files uint64
	// Bytes is what files and directories take of the disk: of sparse files what was
	// written. What was removed and is still open is not in it.
	Bytes uint64
	// Missed says why there is more than that; empty: there is not.
	Missed string
}

const (
	// batch is how many names of a directory are read at one time.
	batch = 1024
	// deepest is how many directories may be below each other: each has a descriptor.
	deepest = 200
	// blockBytes is the unit of stat(2).
	blockBytes = 512
)

// Measure measures directories and what is below them, without what other file systems are
// mounted there. What
// comes and goes meanwhile may be in it or not. It fails if one of the directories cannot
// be opened.
func Measure(ctx context.Context, q Question) (Footprint, error) {
	w := walk{ctx: ctx, until: time.Now().Add(q.Most), seen: make(map[inode]struct{})}
	for _, path := range q.Directories {
		if err := w.begin(path); err != nil {
			return w.Footprint, fmt.Errorf("%s: %w", path, err)
		}
	}
	return w.Footprint, nil
}

// inode is a file, whatever its names.
type inode struct {
	major, minor uint32
	number       uint64
}

// walk is under way through directories.
type walk struct {
	Footprint

	ctx   context.Context
	until time.Time
	seen  map[inode]struct{} // directories, and files with several names
	mount uint64             // that the directory lies on that was begun with
}

func (w *walk) begin(path string) error {
	dir, err := os.OpenFile(path, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return errors.Unwrap(err) // the path is named already
	}
	defer dir.Close()
	var stat unix.Statx_t
	if err := unix.Statx(int(dir.Fd()), "", unix.AT_EMPTY_PATH|statFlags, statMask, &stat); err != nil {
		return err
	}
	w.mount = stat.Mnt_id
	if w.count(&stat) {
		w.names(dir, 0)
	}
	return nil
}

const (
	statFlags = unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT | unix.AT_STATX_DONT_SYNC
	// Devices do not tell mounts apart: files of overlayfs have others than their directory.
	statMask = unix.STATX_TYPE | unix.STATX_NLINK | unix.STATX_INO | unix.STATX_BLOCKS | unix.STATX_MNT_ID
)

// count counts a file or directory, unless it was counted before.
func (w *walk) count(stat *unix.Statx_t) (first bool) {
	directory := stat.Mode&unix.S_IFMT == unix.S_IFDIR
	if directory || stat.Nlink > 1 {
		is := inode{stat.Dev_major, stat.Dev_minor, stat.Ino}
		if _, before := w.seen[is]; before {
			return false
		}
		w.seen[is] = struct{}{}
	}
	if !directory {
		w.Files++
	}
	w.Bytes += stat.Blocks * blockBytes
	return true
}

// names goes through the names of a directory.
func (w *walk) names(dir *os.File, depth int) {
	for !w.late() {
		names, err := dir.Readdirnames(batch)
		for _, name := range names {
			w.entry(dir, name, depth)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				w.miss(err)
			}
			return
		}
	}
}

// entry looks at one name in a directory.
func (w *walk) entry(dir *os.File, name string, depth int) {
	var stat unix.Statx_t
	if err := unix.Statx(int(dir.Fd()), name, statFlags, statMask, &stat); err != nil {
		w.miss(err)
		return
	}
	if stat.Mnt_id != w.mount || !w.count(&stat) || stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		return
	}
	if depth == deepest {
		w.miss(fmt.Errorf("more than %d directories are below each other", deepest))
		return
	}
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		w.miss(err)
		return
	}
	below := os.NewFile(uintptr(fd), name)
	defer below.Close()
	w.names(below, depth+1)
}

// late says whether there is no more time.
func (w *walk) late() bool {
	if w.ctx.Err() == nil && time.Now().Before(w.until) {
		return false
	}
	w.miss(errors.New("there is more than can be looked through in time"))
	return true
}

// miss says why something is not in the footprint. What has gone meanwhile is none.
func (w *walk) miss(err error) {
	if w.Missed == "" && !errors.Is(err, fs.ErrNotExist) {
		w.Missed = err.Error()
	}
}
