// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// settled is how old a file's last change must be for its digest to be kept
// beyond the process: within one tick of the file system's clock a file could
// change again and keep its times.
const settled = 2 * time.Second

// digestStore keeps digests in a directory, one small file per inode, so that
// a program is read once and not at each of its runs. What is there is trusted
// as far as the directory is: it must belong to the user and to nobody else.
// Whatever goes wrong costs a second reading and nothing more. The empty store
// keeps nothing. It is safe for concurrent use by any number of processes.
type digestStore string

func (s digestStore) path(key fileKey) string {
	return filepath.Join(string(s), fmt.Sprintf("%x-%x", key.device, key.inode))
}

// line is what the file says of a digest: only the whole line is valid.
func line(key fileKey, sum string) []byte {
	return fmt.Appendf(nil, "%d %d.%09d %d.%09d %s\n", key.size,
		key.modified.Sec, key.modified.Nsec, key.change.Sec, key.change.Nsec, sum)
}

func (s digestStore) get(key fileKey) (sum string, ok bool) {
	if s == "" {
		return "", false
	}
	text, err := os.ReadFile(s.path(key))
	if err != nil {
		return "", false
	}
	rest, same := bytes.CutPrefix(text, bytes.TrimSuffix(line(key, ""), []byte("\n")))
	digest, whole := bytes.CutSuffix(rest, []byte("\n"))
	if decoded, err := hex.DecodeString(string(digest)); !same || !whole || err != nil || len(decoded) != sha256.Size {
		return "", false
	}
	return string(digest), true
}

// put remembers a digest; limit bounds how many files there may be.
func (s digestStore) put(key fileKey, sum string, limit int) error {
	if s == "" || time.Since(time.Unix(key.change.Unix())) < settled {
		return nil
	}
	if err := s.makeRoom(limit); err != nil {
		return err
	}
	// Complete under its name or not at all.
	file, err := os.CreateTemp(string(s), "new-")
	if err != nil {
		return err
	}
	_, err = file.Write(line(key, sum))
	err = errors.Join(err, file.Close())
	if err == nil {
		err = os.Rename(file.Name(), s.path(key))
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// makeRoom empties a directory that is full: rare, and what is in use comes
// back.
func (s digestStore) makeRoom(limit int) error {
	entries, err := os.ReadDir(string(s))
	if err != nil || len(entries) < limit {
		return err
	}
	for _, entry := range entries {
		err := os.Remove(filepath.Join(string(s), entry.Name()))
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	return nil
}
