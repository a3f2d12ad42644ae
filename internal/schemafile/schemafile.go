// SPDX-License-Identifier: Apache-2.0

// Package schemafile writes the JSON schemas of Attune's documents as they are published in
// docs/reference. Its function may be called from any goroutine.
package schemafile

import (
	"encoding/json"

	"github.com/google/jsonschema-go/jsonschema"
)

// Encode gives a document's schema its name, which has the layout's version in it, its title
// and a sentence, and returns it in JSON, indented, with a newline at its end.
func Encode(s *jsonschema.Schema, name, title, description string) ([]byte, error) {
	s.Schema = "https://json-schema.org/draft/2020-12/schema"
	s.ID = "https://attune-hpc.github.io/schema/" + name + ".json"
	s.Title, s.Description = title, description
	data, err := json.MarshalIndent(s, "", "  ")
	return append(data, '\n'), err
}
