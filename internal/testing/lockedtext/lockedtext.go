// SPDX-License-Identifier: Apache-2.0

// Package lockedtext keeps what some goroutines write, such as a log, while a test reads it.
package lockedtext

import (
	"bytes"
	"sync"
)

// Text is a buffer that any goroutine may use. Its zero value is empty.
type Text struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements [io.Writer].
func (t *Text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.Write(p)
}

// String is all that was written so far.
func (t *Text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}
