// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"
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
	change.Properties["verdict"].Enum = []any{VerdictKept, VerdictUndone, VerdictFailed, VerdictUnjudged}
	change.Properties["prediction"].Enum = []any{"holds", "too_high", "too_low", "wrong"}
	s.Schema = "https://json-schema.org/draft/2020-12/schema"
	s.ID = "https://attune-hpc.github.io/schema/report-1.json"
	s.Title = "Attune report"
	s.Description = "What one session of Attune saw, changed, gained and lost."
	data, err := json.MarshalIndent(s, "", "  ")
	return append(data, '\n'), err
}
