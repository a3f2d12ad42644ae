// SPDX-License-Identifier: Apache-2.0

package account

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	googleschema "github.com/google/jsonschema-go/jsonschema"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/attune-hpc/attune/internal/testing/golden"
)

const schemaFile = "../../docs/reference/account.schema.json"

// TestSchemaFile keeps the published schema equal to the types.
func TestSchemaFile(t *testing.T) {
	s, err := googleschema.For[Account](nil)
	if err != nil {
		t.Fatal(err)
	}
	types := []any{ExitNormal, ExitSignal, ExitLimits, ExitLost}
	s.Properties["exit"].Properties["type"].Enum = types
	s.Properties["tree"].Items.Properties["exit"].Properties["type"].Enum = types
	s.Properties["files"].Items.Properties["kind"].Enum = []any{KindFile, KindDirectory, KindDevice, KindFIFO}
	s.Properties["files"].Items.Properties["access"].Enum = []any{AccessRead, AccessWrite, AccessBoth}
	s.Properties["accuracy"].AdditionalProperties.Enum = []any{string(Exact), string(Sampled), string(Bound)}
	golden.Schema(t, schemaFile, s, "account-1", "Attune account", "What a command and all its processes took.")
}

// TestPage keeps the reference page's tables equal to the types.
func TestPage(t *testing.T) {
	for name, fields := range map[string][]Field{"fields": Fields(), "rows": RowFields()} {
		var table bytes.Buffer
		table.WriteString("| Field | Unit | What it is |\n|---|---|---|\n")
		for _, f := range fields {
			fmt.Fprintf(&table, "| `%s` | %s | %s |\n", f.Name, f.Unit, f.Help)
		}
		golden.Part(t, "../../docs/reference/account.md", name, "internal/account", table.Bytes())
	}
}

// TestFieldsAreDescribed: each has a sentence, and a number its unit.
func TestFieldsAreDescribed(t *testing.T) {
	for _, f := range slices.Concat(Fields(), RowFields()) {
		if !strings.HasSuffix(f.Help, ".") {
			t.Errorf("%s: %q is no sentence", f.Name, f.Help)
		}
		number := strings.HasSuffix(f.Name, "_bytes") || strings.HasSuffix(f.Name, "_seconds") || strings.HasSuffix(f.Name, "_calls")
		if number && f.Unit == "" {
			t.Errorf("%s has no unit", f.Name)
		}
	}
}

func TestNumber(t *testing.T) {
	a := &Account{WallSeconds: 1.5, Files: []File{{Maps: new(uint64(1))}}, Processes: Processes{Total: new(uint64(3))}, Host: Host{CPUs: 2}}
	for _, tt := range []struct {
		name  string
		want  float64
		known bool
	}{
		{name: "wall_seconds", want: 1.5, known: true},
		{name: "processes.total", want: 3, known: true},
		{name: "host.cpus", want: 2, known: true},
		{name: "host.memory_bytes"},
		{name: "provenance.machine.cpus"},
		{name: "cost.lost_events", known: true}, // none were
		{name: "processes.peak"},
		{name: "memory.resident_peak_bytes"},
		{name: "processes"},
		{name: "processes.total.x"},
		{name: "command"},
		{name: "files.maps"},
		{name: "files[].maps"},
		{name: "nothing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, known := a.Number(tt.name); got != tt.want || known != tt.known {
				t.Errorf("%v, %v; want %v, %v", got, known, tt.want, tt.known)
			}
		})
	}
}

// TestFitsSchema: what is absent is left out of the document, and it fits.
func TestFitsSchema(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		change  func(*Account)
		wantErr string
	}{
		{name: "as little as can be", change: func(*Account) {}},
		{name: "killed", change: func(a *Account) { a.Exit = Exit{Type: ExitSignal, Signal: "SIGKILL"} }},
		{name: "unknown end", change: func(a *Account) { a.Exit.Type = "other" }, wantErr: "exit"},
		{name: "unknown accuracy", change: func(a *Account) { a.Accuracy["cpu_seconds"] = "good" }, wantErr: "accuracy"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := &Account{Schema: SchemaID, Command: []string{"true"}, Exit: Exit{Type: ExitNormal, Code: new(0)},
				Accuracy: map[string]Accuracy{"wall_seconds": Exact}, Tree: []Process{{PID: 1, Exit: &Exit{Type: ExitNormal}}}}
			tt.change(a)
			text, err := json.Marshal(a)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(text, []byte("read_bytes")) || bytes.Contains(text, []byte("cpu_seconds\":0")) {
				t.Errorf("what was not measured is in the document: %s", text)
			}
			document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			err = schema.Validate(document)
			if tt.wantErr == "" && err != nil {
				t.Error(err)
			}
			if tt.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tt.wantErr)) {
				t.Errorf("error %v, want one about %q", err, tt.wantErr)
			}
		})
	}
}
