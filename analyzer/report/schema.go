// SPDX-License-Identifier: Apache-2.0

package report

import (
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/attune-hpc/attune/internal/schemafile"
)

// Schema returns the JSON schema of a report, indented, with a newline at its
// end: the content of docs/reference/report.schema.json.
func Schema() ([]byte, error) {
	s, err := jsonschema.For[Report](&jsonschema.ForOptions{
		TypeSchemas: map[reflect.Type]*jsonschema.Schema{
			reflect.TypeFor[Value](): {Types: []string{"null", "boolean", "number", "string"}},
		},
	})
	if err != nil {
		return nil, err
	}
	s.Properties["mode"].Enum = []any{"observe", "advise", "tune"}
	change := s.Properties["changes"].Items
	change.Properties["verdict"].Enum = []any{VerdictKept, VerdictUndone, VerdictRefused, VerdictFailed, VerdictUnjudged}
	change.Properties["prediction"].Enum = []any{"holds", "too_high", "too_low", "wrong"}
	return schemafile.Encode(s, "report-1", "Attune report", "What one session of Attune saw, changed, gained and lost.")
}
