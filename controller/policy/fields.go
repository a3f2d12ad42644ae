// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// fields reads the fields of a rule, and keeps the first error. A field that is not there
// fits anything; one without content (a template may have left it empty) must not, so that
// each is a node until it is read here.
type fields struct{ err error }

// list reads a list of texts; nil: the field is not there.
func (f *fields) list(key string, n yaml.Node) (texts []string) {
	f.read(key, n, &texts)
	switch {
	case !n.IsZero() && len(texts) == 0:
		f.fail(key, errors.New("an empty list fits nothing: leave it out, or name some"))
	case slices.Contains(texts, ""):
		f.fail(key, errors.New("an empty text fits nothing: leave it out"))
	}
	return texts
}

// number reads a number; nil: the field is not there.
func (f *fields) number(key string, n yaml.Node) (number *float64) {
	f.read(key, n, &number)
	if !n.IsZero() && number == nil {
		f.fail(key, errors.New("there is no number: leave it out, or write one"))
	}
	return number
}

func (f *fields) read(key string, n yaml.Node, into any) {
	if n.IsZero() {
		return
	}
	if err := n.Decode(into); err != nil {
		f.fail(key, inOneLine(err))
	}
}

func (f *fields) fail(key string, err error) {
	if f.err == nil {
		f.err = fmt.Errorf("%s: %w", key, err)
	}
}

// inOneLine is an error of the YAML library, which writes a line for each thing.
func inOneLine(err error) error { return errors.New(strings.Join(strings.Fields(err.Error()), " ")) }
