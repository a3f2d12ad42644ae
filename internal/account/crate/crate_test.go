// SPDX-License-Identifier: Apache-2.0

package crate

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/account"
)

// run is one with everything in it.
func run() *account.Account {
	end := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	return &account.Account{
		Schema: account.SchemaID, Command: []string{"./align it", "in put.fa", "out"}, Start: end.Add(-time.Second), End: end, WallSeconds: 1,
		Host: account.Host{Name: "node7"}, Exit: account.Exit{Type: account.ExitNormal, Code: new(0)}, CPUSeconds: new(0.5),
		Accuracy: map[string]account.Accuracy{"wall_seconds": account.Exact, "cpu_seconds": account.Bound},
		Provenance: &account.Provenance{
			Executable:  &account.DataFile{Path: "/work/align it", SHA256: strings.Repeat("ab", 32)},
			Inputs:      []account.DataFile{{Path: "/work/run/in put:1.fa", Bytes: 7, SHA256: strings.Repeat("cd", 32), Modified: end}, {Path: "/data/reference", Directory: true}, {Path: "/gone", Missing: "no such file"}},
			Outputs:     []account.DataFile{{Path: "/work/run/out", SHA256: strings.Repeat("ef", 32)}},
			Environment: map[string]string{"A": "1", "B C": "[redacted]"},
			User:        account.User{ID: 7, Name: "ann"},
		},
	}
}

// TestProcessRunCrate holds a description against what the profile and RO-Crate 1.1 say with
// MUST, and with SHOULD where it is known.
func TestProcessRunCrate(t *testing.T) {
	failed := run()
	failed.Exit, failed.Provenance = account.Exit{Type: account.ExitSignal, Signal: "SIGKILL"}, nil
	failed.Start = failed.Start.Add(time.Hour)
	for _, tt := range []struct {
		name    string
		options Options
		runs    []Run
		files   []string // names in the crate that are wanted
	}{
		{"in its directory", Options{Root: "/work/run", Record: "account.json"}, []Run{{Account: run()}},
			[]string{"in%20put%3A1.fa", "out", "account.json", "file:///data/reference/"}},
		{"without a directory", Options{}, []Run{{"a", run()}, {"b", failed}}, []string{"file:///work/run/in%20put:1.fa", "file:///work/run/out"}},
		{"without provenance", Options{}, []Run{{Account: failed}}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text, err := Metadata(tt.options, tt.runs...)
			if err != nil {
				t.Fatal(err)
			}
			c := readCrate(t, text)
			c.checkRoot(t, len(tt.runs))
			for _, action := range c.actions {
				c.checkAction(t, action)
			}
			for _, file := range tt.files {
				if e := c.byID[file]; e == nil || !slices.Contains(c.references(c.root["hasPart"]), file) {
					t.Errorf("%s is no part of the crate: %v", file, e)
				}
			}
		})
	}
}

// TestRunsOfTheSameFile: what several runs have written to one path is an entity for each content, and
// runs whose accounts have the same times are several.
func TestRunsOfTheSameFile(t *testing.T) {
	var runs []Run
	sums := []string{strings.Repeat("aa", 32), strings.Repeat("bb", 32), strings.Repeat("bb", 32)}
	for i, sum := range sums {
		a := run()
		a.Provenance.Outputs[0].SHA256 = sum
		runs = append(runs, Run{ID: fmt.Sprint("task", i), Account: a})
	}
	text, err := Metadata(Options{}, runs...)
	if err != nil {
		t.Fatal(err)
	}
	c := readCrate(t, text)
	c.checkRoot(t, len(runs))
	results := make(map[string]bool)
	for i, action := range c.actions {
		ids := c.references(action["result"])
		if len(ids) != 1 || c.byID[ids[0]]["sha256"] != sums[i] || action["@id"] != fmt.Sprint("#run-task", i) {
			t.Errorf("run %d: %v with the results %v", i, action["@id"], ids)
		}
		results[ids[0]] = true
		if !slices.Contains(c.references(c.root["hasPart"]), ids[0]) {
			t.Errorf("%s is no part of the crate", ids[0])
		}
	}
	if len(results) != 2 {
		t.Errorf("entities %v", results)
	}
}

func TestNothingToDescribe(t *testing.T) {
	if _, err := Metadata(Options{}); !errors.Is(err, ErrEmpty) {
		t.Errorf("error %v", err)
	}
}

// crate is a description that was read.
type crate struct {
	context []any
	byID    map[string]entity
	root    entity
	actions []entity
}

// readCrate reads a description: each entity has an id of its own and a type, and all
// references to what is not on the web lead to one.
func readCrate(t *testing.T, text []byte) *crate {
	t.Helper()
	var document struct {
		Context []any    `json:"@context"`
		Graph   []entity `json:"@graph"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	c := &crate{context: document.Context, byID: make(map[string]entity)}
	for _, e := range document.Graph {
		id, _ := e["@id"].(string)
		if id == "" || c.byID[id] != nil || e["@type"] == nil {
			t.Errorf("no id, a second time the same, or no type: %v", e)
		}
		if _, err := url.Parse(id); err != nil {
			t.Errorf("id %q: %v", id, err)
		}
		c.byID[id] = e
		if e["@type"] == "CreateAction" || e["@type"] == "ActivateAction" {
			c.actions = append(c.actions, e)
		}
	}
	for _, e := range document.Graph {
		for property, v := range e {
			for _, id := range c.references(v) {
				if c.byID[id] == nil && property != "conformsTo" && !strings.HasPrefix(id, "http://schema.org/") {
					t.Errorf("%s of %v leads to %s, which is not there", property, e["@id"], id)
				}
			}
		}
	}
	if c.root = c.byID["./"]; c.root == nil {
		t.Fatal("no root")
	}
	return c
}

// references are the ids that a value refers to.
func (c *crate) references(v any) (ids []string) {
	switch v := v.(type) {
	case map[string]any:
		if id, is := v["@id"].(string); is {
			ids = append(ids, id)
		}
	case []any:
		for _, one := range v {
			ids = append(ids, c.references(one)...)
		}
	}
	return ids
}

// checkRoot: https://www.researchobject.org/ro-crate/specification/1.1/root-data-entity.html
func (c *crate) checkRoot(t *testing.T, runs int) {
	t.Helper()
	if !slices.Contains(c.context, "https://w3id.org/ro/crate/1.1/context") || !slices.Contains(c.context, "https://w3id.org/ro/terms/workflow-run/context") {
		t.Errorf("context %v", c.context)
	}
	descriptor := c.byID["ro-crate-metadata.json"]
	if descriptor["@type"] != "CreativeWork" || !slices.Equal(c.references(descriptor["about"]), []string{"./"}) ||
		!slices.Equal(c.references(descriptor["conformsTo"]), []string{"https://w3id.org/ro/crate/1.1"}) {
		t.Errorf("descriptor %v", descriptor)
	}
	if !slices.Contains(c.references(c.root["conformsTo"]), profile) || c.byID[profile]["@type"] != "CreativeWork" {
		t.Errorf("the root conforms to %v", c.root["conformsTo"])
	}
	for _, property := range []string{"name", "description", "datePublished", "license", "hasPart"} {
		if c.root[property] == nil {
			t.Errorf("the root has no %s", property)
		}
	}
	if len(c.references(c.root["mentions"])) != runs || len(c.actions) != runs {
		t.Errorf("%d actions, %v are mentioned", len(c.actions), c.root["mentions"])
	}
}

// checkAction: the table of requirements of the profile.
func (c *crate) checkAction(t *testing.T, action entity) {
	t.Helper()
	if (action["result"] != nil) != (action["@type"] == "CreateAction") {
		t.Errorf("%v with the results %v", action["@type"], action["result"])
	}
	tool := c.byID[strings.Join(c.references(action["instrument"]), " ")]
	if tool["@type"] != "SoftwareApplication" || tool["name"] == nil {
		t.Errorf("instrument %v", tool)
	}
	for _, property := range []string{"name", "description", "actionStatus"} {
		if action[property] == nil {
			t.Errorf("the action has no %s", property)
		}
	}
	for _, property := range []string{"startTime", "endTime"} {
		text, _ := action[property].(string)
		if _, err := time.Parse(time.RFC3339, text); err != nil {
			t.Errorf("%s: %v", property, err)
		}
	}
	failed := slices.Contains(c.references(action["actionStatus"]), "http://schema.org/FailedActionStatus")
	if failed != (action["error"] != nil) {
		t.Errorf("status %v, error %v", action["actionStatus"], action["error"])
	}
	for property, types := range map[string][]string{
		"object": {"File", "Dataset"}, "result": {"File", "Dataset"}, "agent": {"Person"}, "environment": {"PropertyValue"}, "resourceUsage": {"PropertyValue"},
	} {
		for _, id := range c.references(action[property]) {
			if kind, _ := c.byID[id]["@type"].(string); !slices.Contains(types, kind) {
				t.Errorf("%s is of type %s", property, kind)
			}
		}
	}
	for _, id := range append(c.references(action["environment"]), c.references(action["resourceUsage"])...) {
		if c.byID[id]["name"] == nil || c.byID[id]["value"] == nil {
			t.Errorf("a property without name or value: %v", c.byID[id])
		}
	}
}
