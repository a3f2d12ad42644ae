// SPDX-License-Identifier: Apache-2.0

package values

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// OneDocument refuses a YAML file with more than one document, or with one that is no YAML:
// readers decode the first, and would ignore what comes after the next ---.
func OneDocument(content []byte) error {
	var document yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	err := decoder.Decode(&document)
	if err == nil {
		err = decoder.Decode(&document)
	}
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("line %d: a second document begins here, which would be ignored: write one", document.Line)
}
