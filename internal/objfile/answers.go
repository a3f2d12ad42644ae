// SPDX-License-Identifier: Apache-2.0

package objfile

import "sync"

// answers remembers what Functions found. All ranks of a node ask the same of
// the same libraries.
type answers struct {
	mu    sync.Mutex // guards known; never held while a file is read
	known map[string]answer
	names int // bytes of them
}

type answer struct {
	symbols []Symbol
	err     error
}

// Bounds of what one file remembers; most answers are empty.
const (
	maxAnswers     = 256
	maxAnswerNames = 1 << 20 // bytes
)

// keep remembers an answer. The caller holds mu.
func (a *answers) keep(query string, fresh answer) {
	size := len(query)
	for _, s := range fresh.symbols {
		size += len(s.Name)
	}
	if a.known == nil || len(a.known) >= maxAnswers || a.names+size > maxAnswerNames {
		a.known, a.names = make(map[string]answer), 0
	}
	a.known[query] = fresh
	a.names += size
}
