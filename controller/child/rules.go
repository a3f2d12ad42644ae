// SPDX-License-Identifier: Apache-2.0

package child

import (
	"context"
	"sync"

	"github.com/attune-hpc/attune/controller/policy"
)

// ruler asks attuned what may be done, each time, since it may change. Its methods may
// be called from any goroutine.
type ruler struct {
	*conversation

	mu   sync.Mutex // guards what follows; a leaf lock
	text policy.Text
	last *policy.Policy // made of text
	any  bool           // there was one
}

// policy returns the policy of the day.
func (r *ruler) policy() *policy.Policy {
	now, err := r.ask()
	if err != nil {
		return policy.Denying(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := now.Policy; !r.any || !t.Equal(r.text) {
		r.text, r.last, r.any = t, t.Policy(), true
	}
	return r.last
}

// untouched is why nothing may be changed; empty: the policy decides.
func (r *ruler) untouched() string {
	now, err := r.ask()
	if err != nil {
		return err.Error()
	}
	return now.Untouched
}

func (r *ruler) ask() (now ruling, err error) {
	_, err = r.conversation.ask(context.Background(), rules, nil, noFD, &now)
	return now, err
}
