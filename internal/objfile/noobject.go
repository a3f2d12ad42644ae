// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/attune-hpc/attune/internal/symname"
)

// ErrNoObject says that the process has mapped no object of that name.
var ErrNoObject = errors.New("no such object is mapped")

// NoObject is the error of an object that a process has not mapped, with the
// program, and what is close to the name; or, where nothing is, what is mapped.
func NoObject(images []Image, object string) error {
	closest := symname.NewSuggestions(filepath.Base(object), maxListed)
	var program string
	var libraries []string
	for _, image := range images {
		closest.Add([]byte(image.Name()))
		if !image.Main() {
			libraries = append(libraries, image.Name())
			continue
		}
		program = image.Name()
		for name := range strings.SplitSeq(image.known, "\x00") {
			closest.Add([]byte(filepath.Base(name)))
		}
	}
	err := fmt.Errorf("%w: %s", ErrNoObject, object)
	if program != "" {
		err = fmt.Errorf("%w; the program is %s", err, program)
	}
	names, what := closest.Names(), "close to it"
	if len(names) == 0 {
		names, what = libraries, "it has mapped"
	}
	if len(names) > 0 {
		err = fmt.Errorf("%w; %s: %s", err, what, strings.Join(names[:min(len(names), maxListed)], ", "))
	}
	if more := len(names) - maxListed; more > 0 {
		err = fmt.Errorf("%w and %d more", err, more)
	}
	return err
}
