// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"fmt"

	"github.com/attune-hpc/attune/analyzer"
	"github.com/attune-hpc/attune/analyzer/store"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// userKnowledge is what sessions of one user's processes have learnt. Users share
// programs (an interpreter, a solver of the site), but not what their runs say of
// them: with a run made for it, one could have others' changes tried late, or
// believed early.
type userKnowledge struct {
	all analyzer.Knowledge
	uid uint32
}

var _ analyzer.Knowledge = userKnowledge{}

// knowledgeOf returns what is known of a user's; nil if there is nothing, or nobody
// knows who they are.
func knowledgeOf(user *attunev1.Principal, all analyzer.Knowledge) analyzer.Knowledge {
	if all == nil || user == nil {
		return nil
	}
	return userKnowledge{all: all, uid: user.GetUid()}
}

// of is how the store names an application of the user.
func (k userKnowledge) of(application string) string { return fmt.Sprintf("%s@%d", application, k.uid) }

// Known returns what is known about an application of the user.
func (k userKnowledge) Known(ctx context.Context, application string) ([]store.Advice, error) {
	return k.all.Known(ctx, k.of(application))
}

// Record adds what a session of the user has learnt.
func (k userKnowledge) Record(ctx context.Context, trials []store.Trial) error {
	own := make([]store.Trial, len(trials))
	for i, t := range trials {
		t.Application = k.of(t.Application)
		own[i] = t
	}
	return k.all.Record(ctx, own)
}
