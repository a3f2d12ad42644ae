// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/attune-hpc/attune/internal/filecache"
)

// settled is how old a file's last change must be for its digest to be kept
// beyond the process: within one tick of the file system's clock a file could
// change again and keep its times.
const settled = 2 * time.Second

// digestStore keeps digests in a directory, one small file per inode, so that
// a program is read once and not at each of its runs.
type digestStore struct{ dir filecache.Dir }

// name of the file for a digest.
func (digestStore) name(key fileKey) string { return fmt.Sprintf("%x-%x", key.device, key.inode) }

// line is what the file says of a digest: only the whole line is valid.
func line(key fileKey, sum string) []byte {
	return fmt.Appendf(nil, "%d %d.%09d %d.%09d %s\n", key.size,
		key.modified.Sec, key.modified.Nsec, key.change.Sec, key.change.Nsec, sum)
}

func (s digestStore) get(key fileKey) (sum string, ok bool) {
	text := s.dir.Get(s.name(key))
	rest, same := bytes.CutPrefix(text, bytes.TrimSuffix(line(key, ""), []byte("\n")))
	digest, whole := bytes.CutSuffix(rest, []byte("\n"))
	if decoded, err := hex.DecodeString(string(digest)); !same || !whole || err != nil || len(decoded) != sha256.Size {
		return "", false
	}
	return string(digest), true
}

// put remembers a digest; limit bounds how many files there may be.
func (s digestStore) put(key fileKey, sum string, limit int) error {
	if time.Since(time.Unix(key.change.Unix())) < settled {
		return nil
	}
	return s.dir.Put(s.name(key), line(key, sum), limit)
}
