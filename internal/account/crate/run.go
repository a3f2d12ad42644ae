// SPDX-License-Identifier: Apache-2.0

package crate

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/attune-hpc/attune/internal/account"
)

// addRun adds a run: an action, its tool, its files, whoever ran it, and what it took.
func (g *graph) addRun(r Run) {
	a := r.Account
	id := "#run"
	if r.ID != "" {
		id += "-" + fragment(r.ID)
	}
	action := entity{
		"@id": id, "@type": "CreateAction", "name": "Run of " + title(a), "description": strings.Join(a.Command, " "),
		"startTime": a.Start.Format(time.RFC3339Nano), "endTime": a.End.Format(time.RFC3339Nano),
	}
	p := a.Provenance
	if p == nil {
		p = &account.Provenance{}
	}
	action["instrument"] = g.addTool(a, p)
	if inputs := g.addFiles(p.Inputs); inputs != nil {
		action["object"] = inputs
	}
	results := g.addFiles(p.Outputs)
	if g.options.Record != "" && g.options.Root != "" {
		record := g.addData(account.DataFile{Path: filepath.Join(g.options.Root, g.options.Record)})
		delete(g.known[record.ID], "contentSize") // not written yet
		g.known[record.ID]["name"] = "Account of what the run took"
		g.known[record.ID]["encodingFormat"] = "application/json"
		results = append(results, record)
	}
	if results == nil {
		action["@type"] = "ActivateAction" // it made nothing that is known of
	} else {
		action["result"] = results
	}
	if a.Provenance != nil {
		action["agent"] = g.addUser(p.User, a.Host)
	}
	addStatus(action, a.Exit)
	if used := g.addUsage(id, a); used != nil {
		action["resourceUsage"] = used
	}
	if variables := g.addEnvironment(id, p); variables != nil {
		action["environment"] = variables
	}
	g.mentions = append(g.mentions, g.add(action))
}

// addTool adds what was executed.
func (g *graph) addTool(a *account.Account, p *account.Provenance) reference {
	tool := entity{"@id": "#program-" + fragment(title(a)), "@type": "SoftwareApplication", "name": title(a)}
	if e := p.Executable; e != nil {
		tool["url"] = g.address(e.Path, false)
		if e.SHA256 != "" {
			tool["@id"] = fmt.Sprintf("#program-%s-%s", fragment(title(a)), e.SHA256[:16])
			// Nobody knows a program's version from outside; its checksum says which one it is.
			tool["softwareVersion"] = "sha256:" + e.SHA256
			tool["sha256"] = e.SHA256
		}
	}
	return g.add(tool)
}

func (g *graph) addFiles(files []account.DataFile) (references []reference) {
	for _, f := range files {
		if f.SHA256 != "" || f.Directory { // others are not there
			references = append(references, g.addData(f))
		}
	}
	return references
}

func (g *graph) addUser(u account.User, h account.Host) reference {
	name := u.Name
	if name == "" {
		name = fmt.Sprint("user ", u.ID)
	}
	return g.add(entity{"@id": "#user-" + fragment(fmt.Sprintf("%s@%s", name, h.Name)), "@type": "Person", "name": name})
}

// addStatus says how a run ended.
func addStatus(action entity, exit account.Exit) {
	if exit.Type == account.ExitNormal && exit.Code != nil && *exit.Code == 0 {
		action["actionStatus"] = reference{"http://schema.org/CompletedActionStatus"}
		return
	}
	action["actionStatus"] = reference{"http://schema.org/FailedActionStatus"}
	switch {
	case exit.Type == account.ExitLimits:
		action["error"] = "ended for a limit: " + strings.Join(exit.Limits, ", ")
	case exit.Signal != "":
		action["error"] = "killed by " + exit.Signal
	case exit.Code != nil:
		action["error"] = fmt.Sprint("exit code ", *exit.Code)
	default:
		action["error"] = "nobody was told how it ended"
	}
}

// addUsage adds what a run took: every number of the account that was measured.
func (g *graph) addUsage(run string, a *account.Account) (references []reference) {
	for _, f := range account.Fields() {
		n, known := a.Number(f.Name)
		if !known || a.Accuracy[f.Name] == "" {
			continue
		}
		references = append(references, g.add(entity{
			"@id": run + "-" + fragment(f.Name), "@type": "PropertyValue", "name": f.Name, "value": n, "unitText": f.Unit,
			"description": fmt.Sprintf("%s (%s)", f.Help, a.Accuracy[f.Name]),
		}))
	}
	return references
}

func (g *graph) addEnvironment(run string, p *account.Provenance) (references []reference) {
	for _, name := range slices.Sorted(maps.Keys(p.Environment)) {
		references = append(references, g.add(entity{
			"@id": run + "-environment-" + fragment(name), "@type": "PropertyValue", "name": name, "value": p.Environment[name],
		}))
	}
	return references
}

// fragment has of a name what may stand in a local identifier: others are written as
// their code, so that two names stay two.
func fragment(name string) string {
	var out strings.Builder
	for _, b := range []byte(name) {
		if b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '-' || b == '.' || b == '_' {
			out.WriteByte(b)
		} else {
			fmt.Fprintf(&out, "%%%02X", b)
		}
	}
	return out.String()
}
