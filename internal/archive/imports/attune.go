// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/archive"
)

const attuneRemedy = "import what attune account --json or attune archive export has written"

// readAttune reads accounts and tasks, one JSON document after the other.
func readAttune(f File) (result Result, err error) {
	err = f.documents(attuneRemedy, func(line int, document []byte) error {
		var named struct {
			Schema string `json:"schema"`
		}
		if err := json.Unmarshal(document, &named); err != nil {
			return f.fail(line, attuneRemedy, "%w", err)
		}
		t := newTask("attune")
		into := any(t)
		switch named.Schema {
		case account.SchemaID:
			into = &t.Account
		case archive.SchemaID:
			*t = archive.Task{}
		default:
			return f.fail(line, attuneRemedy+"; a newer one needs that version of Attune", "schema %q is not %s or %s", named.Schema, account.SchemaID, archive.SchemaID)
		}
		if err := json.Unmarshal(document, into); err != nil {
			return f.fail(line, attuneRemedy, "%w", err)
		}
		result.Tasks = append(result.Tasks, t)
		return nil
	})
	return result, err
}

// documents calls do for each JSON document of a file, with the line that it begins in.
func (f File) documents(remedy string, do func(line int, document []byte) error) error {
	decoder := json.NewDecoder(bytes.NewReader(f.Text))
	line, counted := 1, int64(0)
	lineAt := func(offset int64) int {
		line += bytes.Count(f.Text[counted:offset], []byte("\n"))
		counted = offset
		return line
	}
	for {
		var document json.RawMessage
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			offset := int64(len(f.Text)) // cut off
			if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
				offset = min(max(syntax.Offset, counted), offset)
			}
			return f.fail(lineAt(offset), remedy, "not JSON: %w", err)
		}
		if err := do(lineAt(decoder.InputOffset()-int64(len(document))), document); err != nil {
			return err
		}
	}
}
