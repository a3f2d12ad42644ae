// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/inject"
	"github.com/attune-hpc/attune/internal/beat"
)

// How late what a stream holds may be seen: longer than streamAge it holds
// nothing, as far as it can be looked at.
const (
	streamLook = 25 * time.Millisecond
	streamAge  = 100 * time.Millisecond
)

// tender returns what sees to it that nobody sees output late: a stream that holds something for
// longer than streamAge is made to write it. nil where the stream is not made to hold back more
// than by the program's own buffer. A buffer of an earlier change says nothing of that, and the
// tender of that change sees to that buffer only.
func (c *streamChange) tender() func(ctx context.Context) {
	old, now := c.record.Old, c.record.New
	if now.Mode != fullBuffer || old.Mode == fullBuffer && now.Size <= old.Size && !old.mayBeMapped() {
		return nil
	}
	return c.tend
}

// mayBeMapped says whether a change may have made the buffer: those are pages, which what a
// program allocates is not. That of another user's session is in no journal to be read here.
func (b buffering) mayBeMapped() bool { return b.Base%uint64(os.Getpagesize()) == 0 }

// tend flushes the buffer of the change, and no other: one that the program has chosen since is
// its own matter, with which it ends, and a later change sees to its own. When that is undone the
// stream has this one again.
func (c *streamChange) tend(ctx context.Context) {
	call, err := c.calling("fflush", c.record.New.Base)
	if err != nil {
		return // setvbuf was found there
	}
	code := flushCode(call)
	var since time.Time
	var last uint64
	for away := 0; beat.Pause(ctx, streamLook); {
		now, err := readStream(c.process, c.record.Address)
		if err != nil || now.fd != c.record.FD {
			return // the process has ended, or the stream is another one
		}
		if !c.record.gave(now.buffering()) {
			if away++; c.over(now, away) {
				return
			}
			since = time.Time{}
			continue
		}
		if now.pending == 0 || now.writePtr < last || since.IsZero() {
			since = time.Now()
		}
		away, last = 0, now.writePtr
		if now.pending > 0 && time.Since(since) >= streamAge && c.flush(ctx, code) {
			since = time.Time{}
		}
	}
}

// awayLooks is at how many looks that find another buffer the journals are asked.
const awayLooks = 40

// over says whether a stream that has another buffer comes back to that of the change no more: it
// has one of the program's, or the change is not in force any more.
func (c *streamChange) over(now streamState, away int) bool {
	if now.mode() != noBuffer && !now.buffering().mayBeMapped() {
		return true
	}
	return away%awayLooks == 0 && !slices.ContainsFunc(c.changes(), func(r *changedStream) bool { return r.New == c.record.New })
}

// changes are those of the stream in force, the earliest first.
func (c *streamChange) changes() (all []*changedStream) {
	for _, undo := range c.open() {
		if r, ok := undo.(*changedStream); ok && r.Address == c.record.Address {
			all = append(all, r)
		}
	}
	return all
}

// flush has the stream write what it holds, if a place is found soon.
func (c *streamChange) flush(ctx context.Context, code []byte) bool {
	if !c.hasRoom() {
		return true // its reader has enough to read
	}
	c.process.Lock()
	defer c.process.Unlock()
	if ctx.Err() != nil {
		return false
	}
	result, _, err := access.Execute(ctx, c.process, code, inject.ExecuteOptions{Suits: c.suits, Patience: streamAge})
	return err == nil && result == 0
}
