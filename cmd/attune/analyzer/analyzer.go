// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/settings"
	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/config"
)

const analyzerServeLong = `Serve runs the Analyzer of a site until SIGINT or SIGTERM: nodes with attuned find
it in the registry, and every execution of a registered application becomes a
session. attune session start registers one, and so does the configuration. It does
not run as root: the site's runs as user attune.

Without settings it serves this machine, through Unix sockets, and keeps the
registry itself. With --listen and --registry-listen other machines reach it, by
certificates that attune cert makes. Several Analyzers may share a registry: when
one ends, others go on with its sessions, and nothing is undone.

Settings are read from /etc/attune/analyzer.yaml, from the files in
/etc/attune/analyzer.yaml.d, from ATTUNE_ANALYZER_* in the environment, and from
the flags; later ones override. SIGHUP reads them again: what is registered there and
the log level change at once, the rest at the next start. See
docs/reference/analyzer.md.`

// Command returns `attune analyzer`.
func Command(p *cli.Env) *cobra.Command {
	return cli.Group(&cobra.Command{Use: "analyzer", Short: "Run the Analyzer of a site"}, newServe(p))
}

func newServe(p *cli.Env) *cobra.Command {
	var file string
	var check bool
	serve := &cobra.Command{
		Use:     "serve [flags]",
		Short:   "Serve the nodes of a site",
		Long:    analyzerServeLong,
		Example: "  attune analyzer serve\n  attune analyzer serve --listen :7117 --registry-listen :4222\n  attune analyzer serve --check-config",
		Args:    cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// What it does needs no rights, and it has tunlets and much of the network's parsing.
			if err := cli.RefuseRoot("the Analyzer", authn.ServiceUser, "attune-analyzer", "analyzer serve", check); err != nil {
				return err
			}
			read := func() (analyzerSettings, error) {
				return loadAnalyzer(cmd.Context(), cmd.Flags(), file, cmd.Flags().Changed(keyConfig))
			}
			s, err := read()
			if err != nil {
				return err
			}
			if check {
				for _, unknown := range s.unknownUsers(cmd.Context()) {
					fmt.Fprintln(p.Stderr, "attune: warning:", unknown)
				}
				_, err := fmt.Fprintln(p.Stdout, "configuration is valid")
				return err
			}
			return serveAnalyzer(cmd.Context(), p, s, read)
		},
	}
	analyzerFlags(serve.Flags())
	serve.Flags().StringVar(&file, keyConfig, settings.SiteDir+"/analyzer.yaml", "read the settings of `FILE`, and of FILE.d/*.yaml after it")
	serve.Flags().BoolVar(&check, keyCheckConfig, false, "check the settings, as the user who serves, and end")
	cli.MustComplete(serve, settings.KeyLogLevel, config.LogLevels)
	cli.MustComplete(serve, keyLogFormat, func() []string { return []string{"text", "json"} })
	return serve
}
