// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/readers"
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

// checker has files read, beside everything else, of each user a few at a time. A
// goroutine for each file tells hashed. Its methods are those of one goroutine.
type checker struct {
	readers *readers.Pool
	digests *objfile.Digests
	log     *slog.Logger
	ctx     context.Context // ends with the search
	group   sync.WaitGroup

	reading int // files, and those that wait
	hashed  chan checksum
}

func newChecker(by *readers.Pool, digests *objfile.Digests, log *slog.Logger) *checker {
	return &checker{readers: by, digests: digests, log: log, hashed: make(chan checksum)}
}

// knownSum returns the checksum if it is remembered.
func (k *checker) knownSum(c *candidate) *checksum {
	if c.script != "" {
		return nil // the way there leads through file systems
	}
	sum, ok := k.digests.Known(procPath(int(c.process.GetIdentity().GetPid()), "exe"))
	if !ok || c.held != nil && !c.held.Alive() {
		return nil // or another process has the number by now
	}
	return &checksum{of: c, sum: sum}
}

// check has the file read, beside everything else. If too many wait it returns
// false.
func (k *checker) check(c *candidate) bool {
	if k.reading >= checksQueued {
		k.log.Warn("process is not looked at", "pid", c.process.GetIdentity().GetPid(), "error", "too many wait for their checksum")
		return false
	}
	k.reading++
	k.group.Go(func() {
		result := checksum{of: c}
		result.sum, result.err = k.sumOf(k.ctx, c)
		select {
		case k.hashed <- result:
		case <-k.ctx.Done():
			c.close()
		}
	})
	return true
}

// sumOf reads the file through the process or, if that has ended meanwhile, by
// its name, as long as that is the file that ran.
func (k *checker) sumOf(ctx context.Context, c *candidate) (string, error) {
	if c.held != nil {
		sum, err := track.Digest(ctx, k.readers, k.digests, c.process.GetUid(), c.read())
		if c.held.Alive() {
			return sum, err
		}
	}
	identity := c.process.GetIdentity()
	return track.Digest(ctx, k.readers, k.digests, c.process.GetUid(), track.File{
		Path: c.process.GetExecutable(), Device: identity.GetExeDevice(), Inode: identity.GetExeInode(),
	})
}

// read is what to read for the candidate's checksum while the process is there.
func (c *candidate) read() track.File {
	if c.script != "" {
		return track.File{Path: c.script}
	}
	return track.File{PID: int(c.process.GetIdentity().GetPid())}
}
