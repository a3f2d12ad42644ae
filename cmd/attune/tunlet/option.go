// SPDX-License-Identifier: Apache-2.0

package tunlet

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/internal/exitcode"
)

// optionFlag declares --option.
func optionFlag(cmd *cobra.Command, given *[]string) {
	cmd.Flags().StringArrayVar(given, "option", nil, "give the tunlet the option `NAME=VALUE`; may be repeated")
}

// tunletOptions are the options that were given, by name.
func tunletOptions(given []string) (map[string]string, error) {
	out := map[string]string{}
	for _, text := range given {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, exitcode.UsageError(fmt.Errorf("%q is no option", text), "write --option NAME=VALUE")
		}
		out[name] = value
	}
	return out, nil
}
