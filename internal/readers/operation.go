// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"context"
	"encoding/json"
	"fmt"
)

// Operation is something that a helper can do: Q is asked, A is answered, both as JSON.
type Operation[Q, A any] struct {
	name string
	slow bool
	do   func(context.Context, Q) (A, error)
}

// NewOperation makes an operation of a function, which may block. Its errors come
// across as their texts, and as [procid.ErrGone].
func NewOperation[Q, A any](name string, do func(context.Context, Q) (A, error)) Operation[Q, A] {
	return Operation[Q, A]{name: name, do: do}
}

// Slow returns the operation as one that reads whole files, and may take
// [Options.SlowPatience].
func (o Operation[Q, A]) Slow() Operation[Q, A] {
	o.slow = true
	return o
}

// Ask has a helper of the pool do the operation on what belongs to a user.
// [ErrRefused] if what belongs to that user cannot be read in time.
func (o Operation[Q, A]) Ask(ctx context.Context, by *Pool, uid uint32, question Q) (answer A, err error) {
	if by == nil {
		return o.do(ctx, question)
	}
	text, err := json.Marshal(question)
	if err != nil {
		return answer, fmt.Errorf("%s: %w", o.name, err)
	}
	reply, err := by.ask(ctx, uid, request{Operation: o.name, Question: text}, o.slow)
	if err == nil {
		err = reply.err()
	}
	if err == nil {
		err = json.Unmarshal(reply.Answer, &answer)
	}
	if err != nil {
		return answer, fmt.Errorf("%s: %w", o.name, err)
	}
	return answer, nil
}

// Served is an [Operation] as [Serve] takes it.
type Served interface {
	operation() string
	serve(ctx context.Context, question json.RawMessage) (json.RawMessage, error)
}

func (o Operation[Q, A]) operation() string { return o.name }

func (o Operation[Q, A]) serve(ctx context.Context, text json.RawMessage) (json.RawMessage, error) {
	var question Q
	if err := json.Unmarshal(text, &question); err != nil {
		return nil, err
	}
	answer, err := o.do(ctx, question)
	if err != nil {
		return nil, err
	}
	return json.Marshal(answer)
}
