// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"context"
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
	attunes := slices.ContainsFunc(c.record.all(), func(earlier *changedStream) bool { return earlier.gave(old) })
	if now.Mode != fullBuffer || old.Mode == fullBuffer && now.Size <= old.Size && !attunes {
		return nil
	}
	return c.tend
}

// tend flushes the buffer of the change, and no other: one that the program has chosen since is
// its own matter, and a later change sees to its own. It ends when the stream has another buffer
// for good.
func (c *streamChange) tend(ctx context.Context) {
	call, err := c.calling("fflush", c.record.New.Base)
	if err != nil {
		return // setvbuf was found there
	}
	code := flushCode(call)
	var since time.Time
	last := streamState{buffer: c.record.New.Base}
	for beat.Pause(ctx, streamLook) {
		now, err := readStream(c.process, c.record.Address)
		if err != nil || now.fd != c.record.FD || now.buffer != last.buffer && c.over(now) {
			return // the process has ended, the stream is another one, or the change was undone
		}
		if now.pending == 0 || now.writePtr < last.writePtr || now.buffer != last.buffer || since.IsZero() {
			since = time.Now()
		}
		last = now
		if c.record.gave(now.buffering()) && now.pending > 0 && time.Since(since) >= streamAge && c.flush(ctx, code) {
			since = time.Time{}
		}
	}
}

// over says whether the stream has a buffer of neither this change nor a later one: the stream
// will not come back to that of this change.
func (c *streamChange) over(now streamState) bool {
	if c.record.gave(now.buffering()) || c.laterGave(now.buffering()) {
		return false
	}
	again, err := readStream(c.process, c.record.Address) // a later change may have been undone meanwhile
	return err != nil || again.buffer == now.buffer
}

// laterGave says whether a later change in force has given the stream its buffer.
func (c *streamChange) laterGave(b buffering) bool {
	all := c.record.all()
	this := slices.IndexFunc(all, func(r *changedStream) bool { return r.New == c.record.New })
	return this >= 0 && slices.ContainsFunc(all[this+1:], func(later *changedStream) bool { return later.gave(b) })
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
