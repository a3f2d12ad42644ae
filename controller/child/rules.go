// SPDX-License-Identifier: Apache-2.0

package child

import (
	"context"
	"sync"
	"time"

	"github.com/attune-hpc/attune/controller/policy"
)

// ruler asks attuned what may be done, each time, since it may change. Its methods may
// be called from any goroutine.
type ruler struct {
	*conversation

	mu     sync.Mutex // guards what follows; a leaf lock
	text   policy.Text
	last   *policy.Policy    // made of text
	any    bool              // there was one
	asked  time.Time         // since when answers are remembered
	denies map[string]string // answers of denied
}

// policy returns the policy of the day.
func (r *ruler) policy() *policy.Policy {
	var now policy.Text
	if _, err := r.ask(context.Background(), rules, nil, noFD, &now); err != nil {
		return policy.Denying(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.any || !now.Equal(r.text) {
		r.text, r.last, r.any = now, now.Policy(), true
	}
	return r.last
}

// deniesFor is how long answers of denied are remembered.
const deniesFor = time.Second

// denied is why a process that executes a program must be left alone; empty: it need not. A
// script executes the same few programs hundreds of times a second.
func (r *ruler) denied(executable string) string {
	why, known := r.remembered(executable)
	if known {
		return why
	}
	why = r.granted(executable, func(g granting) string { return g.Denied })
	r.mu.Lock()
	defer r.mu.Unlock()
	r.denies[executable] = why
	return why
}

// remembered is an answer of denied that is not old.
func (r *ruler) remembered(executable string) (why string, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.asked) > deniesFor {
		r.asked, r.denies = now, make(map[string]string)
	}
	why, known = r.denies[executable]
	return why, known
}

// untouched is why nothing may be changed in processes that execute a program; empty: the
// policy decides.
func (r *ruler) untouched(executable string) string {
	return r.granted(executable, func(g granting) string { return g.Untouched })
}

// granted asks about a program. What attuned does not answer is why, too.
func (r *ruler) granted(executable string, which func(granting) string) string {
	var now granting
	if _, err := r.ask(context.Background(), granted, executable, noFD, &now); err != nil {
		return err.Error()
	}
	return which(now)
}
