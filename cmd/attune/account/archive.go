// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"errors"

	"github.com/spf13/pflag"

	"github.com/attune-hpc/attune/cmd/attune/internal/archived"
	"github.com/attune-hpc/attune/cmd/attune/internal/settings"
	"github.com/attune-hpc/attune/internal/account"
)

// findArchive returns where the archive is, if the account is for it.
func (f *flags) findArchive(given *pflag.FlagSet) (string, error) {
	if f.archive = f.archive || f.name != "" || given.Changed(settings.KeyArchiveAt); f.archive {
		return archived.Find(given)
	}
	return "", nil
}

// keep adds the account to the archive, if that was asked for.
func (o *outputs) keep(ctx context.Context, a *account.Account) {
	if o.task == nil {
		return
	}
	switch err := o.task.Keep(ctx, a); {
	case errors.Is(err, archived.ErrNotSent):
		o.say("the account is in the archive, but %v", err)
	case err != nil:
		o.say("the account is not in the archive, all else is as it would be: %v", err)
	}
}
