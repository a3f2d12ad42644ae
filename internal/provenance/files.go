// SPDX-License-Identifier: Apache-2.0

package provenance

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/account"
)

// held is a file that is looked at before and after the command.
type held struct {
	path   string
	file   *os.File // nil: it could not be opened
	before unix.Stat_t
	err    error
}

// hold opens a file to be read. It does not wait for the writer of a FIFO.
func hold(path string) *held {
	h := &held{path: path}
	if absolute, err := filepath.Abs(path); err == nil {
		h.path = absolute
	}
	if h.file, h.err = os.OpenFile(h.path, os.O_RDONLY|unix.O_NONBLOCK, 0); h.err == nil {
		h.err = unix.Fstat(int(h.file.Fd()), &h.before)
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
	d := account.DataFile{Path: h.path}
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
	switch mode := info.Mode(); {
	case mode.IsDir():
		d.Directory, d.Bytes = true, 0
	case !mode.IsRegular():
		d.Missing = "no regular file: " + mode.Type().String()
	default:
		if d.SHA256, err = checksum(ctx, h.file); err != nil {
			d.Missing = err.Error()
		}
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

// checksum is the SHA-256 of a file, in hex.
func checksum(ctx context.Context, file *os.File) (string, error) {
	sum := sha256.New()
	block := make([]byte, 1<<20)
	for at := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		n, err := file.ReadAt(block, at)
		sum.Write(block[:n])
		if at += int64(n); err == io.EOF {
			return hex.EncodeToString(sum.Sum(nil)), nil
		} else if err != nil {
			return "", err
		}
	}
}

// systemDirs hold what belongs to the machine and not to the task.
var systemDirs = []string{"/bin/", "/dev/", "/etc/", "/lib", "/proc/", "/run/", "/sbin/", "/sys/", "/usr/", "/var/lib/", "/var/cache/"}

// found are the files of an account that the command read, or wrote, and that were not
// declared. What is not there any more was not meant to stay.
func found(ctx context.Context, files []account.File, declared []account.DataFile, taken func(account.File) *uint64, input bool) (list []account.DataFile) {
	known := make(map[string]bool)
	for _, d := range declared {
		known[d.Path] = true
	}
	for _, f := range files {
		if bytes := taken(f); bytes == nil || *bytes == 0 || known[f.Path] || ofSystem(f.Path) {
			continue
		}
		h := hold(f.Path)
		if d := h.describe(ctx, false); d.Missing == "" && !d.Directory {
			// An input that the command wrote as well is not what it was.
			d.Found, d.Changed = true, input && f.Written != nil && *f.Written > 0
			list = append(list, d)
		}
		h.close()
	}
	return list
}

func ofSystem(path string) bool {
	for _, dir := range systemDirs {
		if strings.HasPrefix(path, dir) {
			return true
		}
	}
	return false
}
