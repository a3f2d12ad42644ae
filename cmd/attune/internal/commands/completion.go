// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/internal/exitcode"
)

// newCompletion is in place of cobra's own, which answers a wrong command line with its help.
func newCompletion(p *cli.Env) *cobra.Command {
	var plain bool
	shells := []string{"bash", "fish", "powershell", "zsh"}
	cmd := &cobra.Command{
		Use:   "completion [flags] SHELL",
		Short: "Write the script that completes command lines",
		Long: `Completion writes the script with which a shell completes commands, flags and many of
their values: ` + strings.Join(shells, ", ") + `. The package attune brings those of bash, zsh and fish.
That of bash needs the package bash-completion.`,
		Example: `  source <(attune completion bash)
  attune completion zsh >"${fpath[1]}/_attune"
  attune completion fish >~/.config/fish/completions/attune.fish`,
		Args:      cli.Arguments(1, 1),
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch root := cmd.Root(); {
			case args[0] == "bash":
				return root.GenBashCompletionV2(p.Stdout, !plain)
			case args[0] == "fish":
				return root.GenFishCompletion(p.Stdout, !plain)
			case args[0] == "powershell" && plain:
				return root.GenPowerShellCompletion(p.Stdout)
			case args[0] == "powershell":
				return root.GenPowerShellCompletionWithDesc(p.Stdout)
			case args[0] == "zsh" && plain:
				return root.GenZshCompletionNoDesc(p.Stdout)
			case args[0] == "zsh":
				return root.GenZshCompletion(p.Stdout)
			}
			return exitcode.UsageError(fmt.Errorf("no completion for %q", args[0]), "there are "+strings.Join(shells, ", "))
		},
	}
	cmd.Flags().BoolVar(&plain, "no-descriptions", false, "complete without saying what each word is for")
	return cmd
}
