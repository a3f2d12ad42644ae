// SPDX-License-Identifier: Apache-2.0

package tune

import (
	"fmt"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/controller/actuate/setting"
	"github.com/attune-hpc/attune/controller/actuate/system"
)

// listed is one thing that can be changed; the JSON document's element.
type listed struct {
	Name      string `json:"name"`
	AppliesTo string `json:"applies_to"`
	Values    string `json:"values"` // for people
}

// listKnobs prints what the operating system and libraries let be changed.
func listKnobs(p *cli.Env, asJSON bool) error {
	var all []listed
	for _, k := range system.Knobs() {
		all = append(all, listed{k.Name, string(k.On), k.Values})
	}
	for _, s := range setting.All() {
		all = append(all, listed{s.Name, s.Has, s.Values()})
	}
	if asJSON {
		return p.WriteJSON(all)
	}
	w := cli.Table(p.Stdout)
	fmt.Fprintln(w, "NAME\tAPPLIES TO\tVALUES")
	for _, k := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\n", k.Name, k.AppliesTo, k.Values)
	}
	return w.Flush()
}
