// SPDX-License-Identifier: Apache-2.0

package account

import (
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/attune-hpc/attune/internal/schemafile"
)

// Schema returns the JSON schema of an Account, indented, with a newline at its
// end: the content of docs/reference/account.schema.json.
func Schema() ([]byte, error) {
	s, err := jsonschema.For[Account](nil)
	if err != nil {
		return nil, err
	}
	types := []any{ExitNormal, ExitSignal, ExitLimits, ExitLost}
	s.Properties["exit"].Properties["type"].Enum = types
	s.Properties["tree"].Items.Properties["exit"].Properties["type"].Enum = types
	s.Properties["files"].Items.Properties["kind"].Enum = []any{KindFile, KindDirectory, KindDevice, KindFIFO}
	s.Properties["files"].Items.Properties["access"].Enum = []any{AccessRead, AccessWrite, AccessBoth}
	s.Properties["accuracy"].AdditionalProperties.Enum = []any{string(Exact), string(Sampled), string(Bound)}
	return schemafile.Encode(s, "account-1", "Attune account", "What a command and all its processes took.")
}
