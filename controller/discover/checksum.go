// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/readers"
)

// checksQueued bounds the processes of one user that wait for their checksum.
const checksQueued = 256

// tellEvery is how often the log is told that a user has too many.
const tellEvery = time.Minute

// reading is a file that is read for the checksum of a user's processes.
type reading struct {
	uid   uint32
	image image
}

func (c *candidate) reading() reading { return reading{c.process.GetUid(), c.image()} }

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

// checker has files read, beside everything else, of each user a few at a time, and each
// program once for all that execute it meanwhile. A goroutine for each file tells hashed. Its methods
// are those of one goroutine.
type checker struct {
	readers *readers.Pool
	digests *objfile.Digests
	log     *slog.Logger
	ctx     context.Context // ends with the search
	group   sync.WaitGroup

	waiting map[uint32]int           // by user: processes without a checksum yet; never 0
	reading map[reading][]*candidate // by what is read for one of them: the others
	told    map[uint32]time.Time     // when the log was told that a user's are too many
	hashed  chan checksum
}

func newChecker(by *readers.Pool, digests *objfile.Digests, log *slog.Logger) *checker {
	return &checker{
		readers: by, digests: digests, log: log,
		waiting: make(map[uint32]int), reading: make(map[reading][]*candidate),
		told: make(map[uint32]time.Time), hashed: make(chan checksum),
	}
}

// knownSum returns the checksum if it is remembered.
func (k *checker) knownSum(c *candidate) *checksum {
	if c.script != "" {
		return nil // the way there leads through file systems
	}
	sum, ok := k.digests.Known(procid.Path(int(c.process.GetIdentity().GetPid()), "exe"))
	if !ok || c.held != nil && !c.held.Alive() {
		return nil // or another process has the number by now
	}
	return &checksum{of: c, sum: sum}
}

// check has the file read, beside everything else, unless that is under way for another
// process. If too many of the user's wait it returns false.
func (k *checker) check(c *candidate) bool {
	uid, of := c.process.GetUid(), c.reading()
	if k.waiting[uid] >= checksQueued {
		if now := time.Now(); now.Sub(k.told[uid]) > tellEvery {
			k.told[uid] = now
			k.log.Warn("process is not looked at", "pid", c.process.GetIdentity().GetPid(), "uid", uid, "error", "too many of its user's wait for their checksum")
		}
		return false
	}
	k.waiting[uid]++
	if others, begun := k.reading[of]; begun {
		k.reading[of] = append(others, c)
		return true
	}
	k.reading[of] = nil
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

// checked notes that a file was read, and returns the processes that waited for it, too.
func (k *checker) checked(c *candidate) (others []*candidate) {
	uid, of := c.process.GetUid(), c.reading()
	others = k.reading[of]
	delete(k.reading, of)
	if k.waiting[uid] -= 1 + len(others); k.waiting[uid] == 0 {
		delete(k.waiting, uid)
	}
	return others
}

// close waits for those who read, after the context has ended, and lets go of all that wait.
func (k *checker) close() {
	k.group.Wait()
	for _, others := range k.reading {
		for _, c := range others {
			c.close()
		}
	}
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
		Path: []byte(c.process.GetExecutable()), Device: identity.GetExeDevice(), Inode: identity.GetExeInode(),
	})
}

// read is what to read for the candidate's checksum while the process is there.
func (c *candidate) read() track.File {
	if c.script != "" {
		return track.File{Path: []byte(c.script)}
	}
	identity := c.process.GetIdentity()
	return track.File{PID: int(identity.GetPid()), Device: identity.GetExeDevice(), Inode: identity.GetExeInode()}
}
