// SPDX-License-Identifier: Apache-2.0

package tunlethost

import "context"

// Open starts one tunlet and configures it, for somebody who makes the calls
// without a session. Nobody starts it again. The caller calls Close.
func Open(ctx context.Context, c Candidate, opts Options) (*Tunlet, error) {
	return openOne(ctx, c, opts, false)
}

// OpenUnasked is Open for a test of a tunlet: it is neither asked what it is nor
// configured yet, and Info is nil.
func OpenUnasked(ctx context.Context, c Candidate, opts Options) (*Tunlet, error) {
	return openOne(ctx, c, opts, true)
}

func openOne(ctx context.Context, c Candidate, opts Options, unasked bool) (*Tunlet, error) {
	if c.Err != nil {
		return nil, c.Err
	}
	h := New(opts, nil)
	if err := h.prepare(); err != nil {
		return nil, err
	}
	s := h.starter(c)
	s.alone, s.unasked = true, unasked
	return s.start(ctx)
}

// Close ends a tunlet that Open has returned and waits for its end. If it had
// ended by itself before, it returns how.
func (t *Tunlet) Close() (ended string) {
	if !t.alive() {
		return t.life.ended().Error()
	}
	t.Kill("closed")
	_ = t.life.ended()
	return ""
}
