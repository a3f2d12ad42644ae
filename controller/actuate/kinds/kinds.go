// SPDX-License-Identifier: Apache-2.0

// Package kinds has all kinds of tuning actions together, for those who give them to an
// Actuator, or undo what another one has done.
package kinds

import (
	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/action"
	"github.com/attune-hpc/attune/controller/actuate/hidden"
	"github.com/attune-hpc/attune/controller/actuate/setting"
	"github.com/attune-hpc/attune/controller/actuate/system"
)

// Options of kinds of actions. The zero value serves whoever only undoes.
type Options struct {
	// Hidden finds variables without symbol; nil: they are not found.
	Hidden *hidden.Prober
	// System are those of what the operating system keeps.
	System system.Options
}

// All returns all kinds of actions that there are, in the order of their page.
func All(o Options) actuate.Kinds {
	return action.Kinds().And(setting.Kinds(o.Hidden)).And(system.Kinds(o.System))
}
