// SPDX-License-Identifier: Apache-2.0

package actuate

import "github.com/attune-hpc/attune/controller/actuate/hidden"

// AllOptions of kinds of actions. The zero value serves whoever only undoes.
type AllOptions struct {
	// Hidden finds variables without symbol; nil: they are not found.
	Hidden *hidden.Prober
	// System are those of what the operating system keeps.
	System SystemOptions
}

// All returns all kinds of actions that there are, in the order of their page.
func All(o AllOptions) Kinds {
	return actionKinds().And(settingKinds(o.Hidden)).And(systemKinds(o.System))
}
