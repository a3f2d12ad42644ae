// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/bounded"
	"github.com/attune-hpc/attune/internal/filecache"
	"github.com/attune-hpc/attune/internal/procid"
)

// maxDigestBytes bounds the file that is read for its digest, some seconds: a user can
// make one that is a hole of any size.
const maxDigestBytes = 4 << 30

// maxDigests is how many digests are remembered.
const maxDigests = 4096

// Digests computes SHA-256 sums of files and remembers them by device, inode,
// size and times. It is safe for concurrent use; two callers that ask for one
// file at once may both read it.
type Digests struct {
	limit int
	store digestStore

	mu   sync.Mutex // guards sums
	sums map[fileKey]string
}

// NewDigests returns a Digests that remembers nothing yet but what its
// directory holds, in which sums outlive the process; without one, "", they do
// not. The directory must belong to the user, and nobody else may write to it.
func NewDigests(dir string) *Digests {
	return &Digests{limit: maxDigests, store: digestStore{filecache.Dir(dir)}, sums: make(map[fileKey]string)}
}

// Digest returns the SHA-256 of a regular file in hexadecimal. For the program
// of a process give /proc/PID/exe, which is the right file even if another one
// has its name by now. It reads the whole file, of at most 4 GiB, unless it is
// remembered, and stops when the context is done.
func (d *Digests) Digest(ctx context.Context, path string) (string, error) {
	sum, err := d.sum(ctx, path)
	if err != nil {
		return "", err
	}
	d.Remember(sum)
	return sum.SHA256, nil
}

func (d *Digests) sum(ctx context.Context, path string) (_ Sum, err error) {
	file, err := openRegular(path)
	if err != nil {
		return Sum{}, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	key, err := keyOf(file)
	if err != nil {
		return Sum{}, fmt.Errorf("%s: %w", path, err)
	}
	if sum, ok := d.lookup(key); ok {
		return Sum{SHA256: sum}, nil
	}
	if key.size > maxDigestBytes {
		return Sum{}, fmt.Errorf("%s: %w: a checksum is computed of at most %d bytes, the file has %d", path, bounded.ErrLimit, int64(maxDigestBytes), key.size)
	}
	return sumOf(ctx, file, key)
}

// Sum is the SHA-256 of a file, and which version of the file it is of.
type Sum struct {
	SHA256 string
	// The version; all zero if it is not to be remembered.
	Device, Inode    uint64
	Size             int64
	Modified, Change unix.Timespec
}

// SumOf reads a whole file, whatever is remembered: see [Digests.Digest]. It is for
// processes that remember nothing.
func SumOf(ctx context.Context, path string) (_ Sum, err error) {
	return NewDigests("").sum(ctx, path)
}

func sumOf(ctx context.Context, file *os.File, key fileKey) (Sum, error) {
	sum, err := hash(ctx, file)
	if err != nil {
		return Sum{}, fmt.Errorf("%s: %w", file.Name(), err)
	}
	if after, err := keyOf(file); err != nil || after != key {
		return Sum{SHA256: sum}, nil // the file changed while it was read
	}
	return Sum{sum, key.device, key.inode, key.size, key.modified, key.change}, nil
}

// Remember keeps what was summed by [SumOf].
func (d *Digests) Remember(sum Sum) {
	if sum.Inode == 0 {
		return
	}
	key := fileKey{sum.Device, sum.Inode, sum.Size, sum.Modified, sum.Change}
	d.keep(key, sum.SHA256)
	_ = d.store.put(key, sum.SHA256, d.limit) // else it is read again next time
}

// Known returns the SHA-256 of a file if it is remembered. It asks what the kernel
// knows of the file only: see [procid.FileOf].
func (d *Digests) Known(path string) (sum string, ok bool) {
	st, err := procid.FileOf(path)
	if err != nil {
		return "", false
	}
	return d.lookup(fileKey{st.Dev, st.Ino, st.Size, st.Mtim, st.Ctim})
}

func (d *Digests) lookup(key fileKey) (sum string, ok bool) {
	d.mu.Lock()
	sum, ok = d.sums[key]
	d.mu.Unlock()
	if ok {
		return sum, true
	}
	if sum, ok = d.store.get(key); ok {
		d.keep(key, sum)
	}
	return sum, ok
}

func (d *Digests) keep(key fileKey, sum string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.sums) >= d.limit {
		clear(d.sums) // rare; what is still in use comes back
	}
	d.sums[key] = sum
}

func hash(ctx context.Context, file *os.File) (string, error) {
	sum := sha256.New()
	for {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		_, err := io.CopyN(sum, file, 1<<20)
		if errors.Is(err, io.EOF) {
			return hex.EncodeToString(sum.Sum(nil)), nil
		}
		if err != nil {
			return "", fmt.Errorf("read: %w", err)
		}
	}
}

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
