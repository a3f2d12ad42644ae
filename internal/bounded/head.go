// SPDX-License-Identifier: Apache-2.0

package bounded

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
