// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
)

// checksQueued bounds the processes that wait for their checksum.
const checksQueued = 1024

// checksum is that of a candidate's file, or why there is none.
type checksum struct {
	of  *candidate
	sum string
	err error
}

func (c *checksum) is(wanted string) bool { return c.err == nil && strings.EqualFold(c.sum, wanted) }

// differs says why the process is left alone.
func (c *checksum) differs(wanted string) string {
	if c.err != nil {
		return fmt.Sprintf("its checksum cannot be computed: %v", c.err)
	}
	return fmt.Sprintf("its checksum is %s, registered is %s", c.sum, wanted)
}

// checker has files read, beside everything else: by the goroutine of hash, whose
// results another one receives from hashed. The other methods are that one's.
type checker struct {
	digests *objfile.Digests
	log     *slog.Logger

	unchecked chan *candidate // wait for their checksum
	hashed    chan checksum
}

func newChecker(digests *objfile.Digests, log *slog.Logger) *checker {
	return &checker{digests: digests, log: log, unchecked: make(chan *candidate, checksQueued), hashed: make(chan checksum)}
}

// knownSum returns the checksum if it is remembered.
func (k *checker) knownSum(c *candidate) *checksum {
	sum, ok := k.digests.Known(c.file)
	if !ok || c.held != nil && !c.held.Alive() {
		return nil // or another process has the number by now
	}
	return &checksum{of: c, sum: sum}
}

// check has the file read, beside everything else. If too many wait it returns
// false.
func (k *checker) check(c *candidate) bool {
	select {
	case k.unchecked <- c:
		return true
	default:
		k.log.Warn("process is not looked at", "pid", c.process.GetIdentity().GetPid(), "error", "too many wait for their checksum")
		return false
	}
}

// hash reads files until ctx ends.
func (k *checker) hash(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-k.unchecked:
			result := checksum{of: c}
			result.sum, result.err = k.sumOf(ctx, c)
			select {
			case k.hashed <- result:
			case <-ctx.Done():
				c.close()
				return
			}
		}
	}
}

// sumOf reads the file through the process or, if that has ended meanwhile, by
// its name, as long as that is the file that ran.
func (k *checker) sumOf(ctx context.Context, c *candidate) (string, error) {
	if c.held != nil {
		sum, err := k.digests.Digest(ctx, c.file)
		if c.held.Alive() {
			return sum, err
		}
	}
	var st unix.Stat_t
	identity := c.process.GetIdentity()
	if err := unix.Stat(c.process.GetExecutable(), &st); err != nil {
		return "", err
	}
	if st.Dev != identity.GetExeDevice() || st.Ino != identity.GetExeInode() {
		return "", procid.ErrGone
	}
	return k.digests.Digest(ctx, c.process.GetExecutable())
}

// close lets go of what waits for a checksum.
func (k *checker) close() {
	for {
		select {
		case c := <-k.unchecked:
			c.close()
		default:
			return
		}
	}
}
