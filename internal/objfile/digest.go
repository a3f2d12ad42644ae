// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/filecache"
)

// DefaultDigests is how many digests are remembered by default.
const DefaultDigests = 4096

// Digests computes SHA-256 sums of files and remembers them by device, inode,
// size and times. It is safe for concurrent use; two callers that ask for one
// file at once may both read it.
type Digests struct {
	limit int
	store digestStore

	mu   sync.Mutex // guards sums
	sums map[fileKey]string
}

// DigestsOptions of a Digests.
type DigestsOptions struct {
	// Entries is the greatest number of sums remembered; 0: [DefaultDigests].
	Entries int
	// Dir is a directory in which sums outlive the process; empty: they do not.
	// It must belong to the user, and nobody else may write to it.
	Dir string
}

// NewDigests returns a Digests that remembers nothing yet but what its
// directory holds.
func NewDigests(options DigestsOptions) *Digests {
	if options.Entries <= 0 {
		options.Entries = DefaultDigests
	}
	return &Digests{limit: options.Entries, store: digestStore{filecache.Dir(options.Dir)}, sums: make(map[fileKey]string)}
}

// Digest returns the SHA-256 of a regular file in hexadecimal. For the program
// of a process give /proc/PID/exe, which is the right file even if another one
// has its name by now. It reads the whole file unless it is remembered, and
// stops when the context is done.
func (d *Digests) Digest(ctx context.Context, path string) (sum string, err error) {
	file, err := openRegular(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	key, err := keyOf(file)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	if sum, ok := d.lookup(key); ok {
		return sum, nil
	}
	if sum, err = hash(ctx, file); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	// Not remembered if the file changed while it was read.
	if after, err := keyOf(file); err == nil && after == key {
		d.keep(key, sum)
		_ = d.store.put(key, sum, d.limit) // else it is read again next time
	}
	return sum, nil
}

// Known returns the SHA-256 of a file if it is remembered. It never reads the
// file.
func (d *Digests) Known(path string) (sum string, ok bool) {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return "", false
	}
	return d.lookup(fileKey{uint64(st.Dev), st.Ino, st.Size, st.Mtim, st.Ctim})
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
