// SPDX-License-Identifier: Apache-2.0

package pointcomplete

import (
	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/settings"
)

// Flag completes --probe, which the command has.
func Flag(cmd *cobra.Command) {
	if err := cmd.RegisterFlagCompletionFunc(settings.KeyProbe, Complete); err != nil {
		panic(err)
	}
}
