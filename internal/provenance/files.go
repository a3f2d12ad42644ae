// SPDX-License-Identifier: Apache-2.0

package provenance

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/regular"
)

// held is a file that is looked at before and after the command.
type held struct {
	path   string   // as it was named, absolute
	name   string   // the same by a directory without symbolic links, as the kernel has it
	file   *os.File // nil: it could not be opened
	before unix.Stat_t
	err    error
}

// hold opens a file to be read, or a directory.
func hold(path string) *held {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	name := path
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		name = filepath.Join(dir, filepath.Base(path))
	}
	file, err := regular.OpenKind(path, unix.O_RDONLY, unix.S_IFREG, unix.S_IFDIR)
	return holdOpen(path, name, file, err)
}

// holdOpen holds a file that was opened, or says why it could not be.
func holdOpen(path, name string, file *os.File, err error) *held {
	h := &held{path: path, name: name, file: file, err: err}
	if err == nil {
		h.err = unix.Fstat(int(file.Fd()), &h.before)
	}
	return h
}

// close closes the file; it was only read.
func (h *held) close() {
	if h.file != nil {
		_ = h.file.Close()
	}
}

// describe reads the file. Input says that it is to be what it was when it was opened.
func (h *held) describe(ctx context.Context, input bool) account.DataFile {
	d := account.DataFile{Path: h.name}
	if h.err != nil {
		d.Missing = h.err.Error()
		return d
	}
	info, err := h.file.Stat()
	if err != nil {
		d.Missing = err.Error()
		return d
	}
	d.Bytes, d.Modified = uint64(info.Size()), info.ModTime()
	if info.IsDir() {
		d.Directory, d.Bytes = true, 0
	} else if d.SHA256, err = regular.Checksum(ctx, h.file); err != nil {
		d.Missing = err.Error()
	}
	d.Changed = input && h.changed()
	return d
}

// changed says whether the file was written to since it was opened, or another is in
// its place.
func (h *held) changed() bool {
	var now, there unix.Stat_t
	return unix.Fstat(int(h.file.Fd()), &now) != nil || unix.Stat(h.path, &there) != nil ||
		now.Mtim != h.before.Mtim || now.Size != h.before.Size || there.Ino != now.Ino || there.Dev != now.Dev
}

// systemDirs hold what belongs to the machine and not to the task.
var systemDirs = []string{"/bin/", "/dev/", "/etc/", "/lib", "/proc/", "/run/", "/sbin/", "/sys/", "/usr/", "/var/lib/", "/var/cache/"}

// found are the files of an account that the command read, or wrote, and that were not
// declared. What is not there any more was not meant to stay. The command, which may be another
// user's, has named these files, and has had time to put others in their places: those are left out.
func found(ctx context.Context, files []account.File, declared []account.DataFile, taken func(*account.File) bool, input bool) (list []account.DataFile) {
	known := make(map[string]bool)
	for _, d := range declared {
		known[d.Path] = true
		if target, err := filepath.EvalSymlinks(d.Path); err == nil { // it may be a link itself
			known[target] = true
		}
	}
	for i := range files {
		f := &files[i]
		if !taken(f) || known[f.Path] || ofSystem(f.Path) {
			continue
		}
		file, err := regular.OpenInPlace(f.Path, f.Inodes...)
		h := holdOpen(f.Path, f.Path, file, err)
		if d := h.describe(ctx, false); d.Missing == "" && !d.Directory {
			// An input that the command wrote as well is not what it was.
			d.Found, d.Changed = true, input && f.WasWritten()
			list = append(list, d)
		}
		h.close()
	}
	return list
}

func ofSystem(path string) bool {
	return slices.ContainsFunc(systemDirs, func(dir string) bool { return strings.HasPrefix(path, dir) })
}
