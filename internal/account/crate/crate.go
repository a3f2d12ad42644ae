// SPDX-License-Identifier: Apache-2.0

package crate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/attune-hpc/attune/internal/account"
)

// MetadataFile is the name of the description in the crate's directory.
const MetadataFile = "ro-crate-metadata.json"

const (
	specification = "https://w3id.org/ro/crate/1.1"
	profile       = "https://w3id.org/ro/wfrun/process/0.5"
	terms         = "https://w3id.org/ro/terms/workflow-run/context"
)

// Options say what a crate is of.
type Options struct {
	// Root is the crate's directory, an absolute path without symbolic links, as those of the files
	// are: files in it are named relative to it, and others by file: addresses. Empty: there is no directory.
	Root string
	// Record is the name of the file below Root that has the account; empty: none.
	Record string
}

// Run is a run of a command.
type Run struct {
	// ID tells runs of a crate apart, in letters and digits; empty where there is but one.
	ID      string
	Account *account.Account
}

// entity is one of the description.
type entity map[string]any

// reference refers to an entity.
type reference struct {
	ID string `json:"@id"`
}

// graph collects entities, each once.
type graph struct {
	options  Options
	entities []entity
	known    map[string]entity
	parts    []reference // data entities of the crate
	mentions []reference // its actions
}

// ErrEmpty says that there is no run to describe.
var ErrEmpty = errors.New("no run to describe")

// Metadata returns the description of runs, JSON-LD, indented, with a newline at its end. The
// description's date is that of the last end.
func Metadata(options Options, runs ...Run) ([]byte, error) {
	if len(runs) == 0 {
		return nil, ErrEmpty
	}
	g := &graph{options: options, known: make(map[string]entity)}
	first := runs[0].Account
	last := first.End
	for _, r := range runs {
		g.addRun(r)
		if end := r.Account.End; end.After(last) {
			last = end
		}
	}
	name := "Run of " + title(first)
	if len(runs) > 1 {
		name = fmt.Sprintf("%d runs, of %s and others", len(runs), title(first))
	}
	head := []entity{
		{"@id": MetadataFile, "@type": "CreativeWork", "conformsTo": reference{specification}, "about": reference{"./"}},
		{
			"@id": "./", "@type": "Dataset", "conformsTo": reference{profile}, "name": name,
			"description": "What ran, with what, and what it took: recorded by attune account.", "datePublished": last.Format(time.RFC3339),
			"license": "The files are under the licenses of their owners; none was chosen for this crate.",
			"hasPart": list(g.parts), "mentions": list(g.mentions),
		},
		{"@id": profile, "@type": "CreativeWork", "name": "Process Run Crate", "version": "0.5"},
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(map[string]any{"@context": []string{specification + "/context", terms}, "@graph": append(head, g.entities...)})
	return out.Bytes(), err
}

// list is a list that is never null.
func list(of []reference) []reference {
	if of == nil {
		return []reference{}
	}
	return of
}

func title(a *account.Account) string {
	if len(a.Command) == 0 {
		return "a command"
	}
	return filepath.Base(a.Command[0])
}

// add adds an entity unless its id is known, and returns the reference to it.
func (g *graph) add(e entity) reference {
	id, _ := e["@id"].(string) // every entity has one
	if g.known[id] == nil {
		g.known[id] = e
		g.entities = append(g.entities, e)
	}
	return reference{id}
}

// addData adds a file or directory. Relative names are of what lies in the crate. A file that another run
// found with another content is another entity.
func (g *graph) addData(d account.DataFile) reference {
	e := entity{"@id": g.address(d.Path, d.Directory), "@type": "File", "name": filepath.Base(d.Path)}
	if d.Directory {
		e["@type"] = "Dataset"
	} else {
		e["contentSize"] = fmt.Sprint(d.Bytes)
	}
	if d.SHA256 != "" {
		e["sha256"] = d.SHA256
		if known := g.known[fmt.Sprint(e["@id"])]; known != nil && known["sha256"] != d.SHA256 {
			e["@id"] = fmt.Sprintf("%s#sha256-%s", e["@id"], d.SHA256[:16])
		}
	}
	if !d.Modified.IsZero() {
		e["dateModified"] = d.Modified.Format(time.RFC3339Nano)
	}
	if id, _ := e["@id"].(string); g.known[id] == nil {
		g.parts = append(g.parts, reference{id})
	}
	return g.add(e)
}

// address is the name of a file in the crate.
func (g *graph) address(path string, directory bool) string {
	if directory {
		path = strings.TrimSuffix(path, "/") + "/"
	}
	if g.options.Root != "" {
		if relative, err := filepath.Rel(g.options.Root, path); err == nil && filepath.IsLocal(relative) && relative != "." {
			if directory {
				relative += "/"
			}
			// A colon in the first part would make a scheme of it.
			return strings.ReplaceAll((&url.URL{Path: relative}).EscapedPath(), ":", "%3A")
		}
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}
