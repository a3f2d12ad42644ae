// SPDX-License-Identifier: Apache-2.0

package account

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

var update = flag.Bool("update", false, "rewrite generated files")

const (
	schemaFile = "../../docs/reference/account.schema.json"
	pageFile   = "../../docs/reference/account.md"
)

// TestSchemaFile keeps the published schema equal to the types.
func TestSchemaFile(t *testing.T) {
	schema, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	same(t, schemaFile, schema)
}

// TestPage keeps the reference page's tables equal to the types.
func TestPage(t *testing.T) {
	page, err := os.ReadFile(pageFile)
	if err != nil {
		t.Fatal(err)
	}
	for name, fields := range map[string][]Field{"fields": Fields(), "rows": RowFields()} {
		begin, end := "<!-- begin "+name+": generated from internal/account -->\n", "<!-- end "+name+" -->\n"
		before, rest, begun := bytes.Cut(page, []byte(begin))
		_, after, ended := bytes.Cut(rest, []byte(end))
		if !begun || !ended {
			t.Fatalf("%s is without the lines %q and %q", pageFile, begin, end)
		}
		page = slices.Concat(before, []byte(begin), Page(fields), []byte(end), after)
	}
	same(t, pageFile, page)
}

// same compares with a file, or rewrites it with -update.
func same(t *testing.T, path string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs; run go test ./internal/account -update (-want +got)\n%s", path, diff)
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
