// SPDX-License-Identifier: Apache-2.0

package tuner

import (
	"context"
	"encoding/json"

	"github.com/attune-hpc/attune/controller/accountant"
	"github.com/attune-hpc/attune/internal/launch"
)

// openAccount makes ready to account for the program.
func (s *Tuner) openAccount() {
	var err error
	if s.accountant, err = accountant.New(accountant.Options{Beside: true, WithoutKernel: s.Settings.NoBPF}); err != nil {
		s.Log.Warn("what the program takes is not accounted for", "reason", err)
	}
}

// BeginAccount says that the program runs.
func (s *Tuner) BeginAccount(child *launch.Child) {
	if s.accountant != nil {
		s.accountant.Begin(child)
	}
}

// endAccount is the account of the program, which has ended, as a frame has it; nil if there
// is none.
func (s *Tuner) endAccount(ctx context.Context, exit launch.Exit) []byte {
	if s.accountant == nil {
		return nil
	}
	document, err := json.Marshal(s.accountant.End(ctx, s.Args, exit))
	if err != nil {
		s.Log.Warn("what the program took is not in the report", "reason", err)
	}
	return document
}
