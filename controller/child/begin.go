// SPDX-License-Identifier: Apache-2.0

package child

import (
	"errors"

	"github.com/attune-hpc/attune/controller"
)

// beginningOf is what a process needs to know of a configuration.
func beginningOf(c controller.Config) (b beginning, err error) {
	b = beginning{
		ID: c.ID, GatePath: c.GatePath, LibraryPath: c.LibraryPath, StateDir: c.StateDir, Version: c.Version,
		LateLibrary: c.LateLibrary, UseBPF: c.UseBPF, TakesOver: c.TakesOver, LookInterval: c.LookInterval, Budget: c.Budget,
		Registration: c.Session.Registration, Mode: c.Session.Mode,
	}
	var errs [3]error
	b.Job, errs[0] = encoded(c.Session.Job)
	b.User, errs[1] = encoded(c.Session.User)
	b.Owner, errs[2] = encoded(c.Session.Owner)
	for _, m := range c.Mechanisms {
		text, err := encoded(m)
		if err != nil {
			return b, err
		}
		b.Mechanisms = append(b.Mechanisms, text)
	}
	return b, errors.Join(errs[:]...)
}
