// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// mustMatchSchema fails unless a report is what its published schema says.
func mustMatchSchema(t *testing.T, report []byte) {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile("../../docs/reference/report.schema.json")
	if err != nil {
		t.Fatalf("compile the schema: %v", err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(report))
	if err != nil {
		t.Fatalf("decode the report: %v", err)
	}
	if err := schema.Validate(value); err != nil {
		t.Errorf("the report does not match its schema: %v", err)
	}
}
