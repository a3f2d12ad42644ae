// SPDX-License-Identifier: Apache-2.0

package bounded

import (
	"errors"
	"fmt"
	"io"
)

// ErrLimit says that something is larger, or takes longer, than it may.
var ErrLimit = errors.New("limit exceeded")

// exceeds is ErrLimit with what, how large and the limit.
func exceeds(what string, size, limit uint64) error {
	return fmt.Errorf("%w: %s of %d bytes exceeds %d", ErrLimit, what, size, limit)
}

// Bytes allocates as many bytes as somebody claims that there are; [ErrLimit] beyond
// limit.
func Bytes(what string, size, limit uint64) ([]byte, error) {
	if size > limit {
		return nil, exceeds(what, size, limit)
	}
	return make([]byte, size), nil
}

// ReadAll is [io.ReadAll] up to limit bytes; [ErrLimit] if there is more.
func ReadAll(what string, r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%w: %s has more than %d bytes", ErrLimit, what, limit)
	}
	return data, nil
}

// Work is what one task may take, in steps that its author chooses: a file then takes
// as many on a slow machine as on a fast one, and a test does not depend on the clock.
type Work struct {
	what        string
	left, limit int
}

// NewWork returns a Work of so many steps; what names the task in errors.
func NewWork(what string, steps int) *Work { return &Work{what, steps, steps} }

// Spend takes steps; [ErrLimit] when there are not enough, then and from then on.
func (w *Work) Spend(steps int) error {
	if w.left < steps || w.left < 0 {
		w.left = -1
		return fmt.Errorf("%w: %s takes more than %d steps", ErrLimit, w.what, w.limit)
	}
	w.left -= steps
	return nil
}

// Spent is how many steps were taken.
func (w *Work) Spent() int { return w.limit - max(w.left, 0) }

// Head is an [io.Writer] that keeps the first bytes that are written to it, as many as Most,
// and drops the rest. It is for one goroutine.
type Head struct {
	Most int
	Kept []byte
}

// Write implements io.Writer; it never fails.
func (h *Head) Write(p []byte) (int, error) {
	h.Kept = append(h.Kept, p[:min(len(p), h.Most-len(h.Kept))]...)
	return len(p), nil
}
