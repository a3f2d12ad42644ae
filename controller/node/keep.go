// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
)

// keep leaves changes in force that are to outlive their session.
func (s *session) keep(ctx context.Context, ids []string) {
	if len(ids) == 0 {
		return
	}
	err := errors.New("the node has no journal for them")
	var kept []string
	if s.node.config.Kept != nil {
		kept, err = s.handOver(ctx, ids)
	}
	if err != nil {
		s.log.Warn("changes are given back that were to be kept", "error", err)
		s.node.notes.trouble("changes could not be kept: " + err.Error())
	}
	s.log.Info("changes stay in force: attune undo takes them back", "ids", kept)
}

func (s *session) handOver(ctx context.Context, ids []string) ([]string, error) {
	journal, err := s.node.config.Kept(ctx)
	if err != nil {
		return nil, err
	}
	kept, err := s.controller.KeepOnly(ctx, journal, ids)
	return kept, errors.Join(err, journal.Close())
}
