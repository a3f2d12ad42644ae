// SPDX-License-Identifier: Apache-2.0

// Package runflags declares the flags of `attune run` for all commands that have them, and
// what a shell completes them with.
package runflags

import (
	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/analyzer/tunlethost"
	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/pointcomplete"
	"github.com/attune-hpc/attune/cmd/attune/internal/settings"
	"github.com/attune-hpc/attune/cmd/attune/internal/tunletfind"
	"github.com/attune-hpc/attune/internal/config"
)

// Add declares the flags.
func Add(cmd *cobra.Command) {
	settings.RunFlags(cmd.Flags())
	cli.MustComplete(cmd, settings.KeyMode, config.Modes)
	cli.MustComplete(cmd, settings.KeyLogLevel, config.LogLevels)
	cli.MustComplete(cmd, settings.KeyTunlet, func() []string { return tunletfind.Names(tunlethost.Find(tunletfind.Dirs(nil), nil)) })
	pointcomplete.Flag(cmd)
}
