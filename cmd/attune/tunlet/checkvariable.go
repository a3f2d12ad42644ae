// SPDX-License-Identifier: Apache-2.0

package tunlet

import (
	"errors"
	"fmt"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/objfile/dwarfinfo"
	"github.com/attune-hpc/attune/internal/quantity"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// variable looks for a variable, as it is found when it is changed, and compares its size, and
// its type where that takes no real number.
func (c *checker) variable(set *attunev1.SetVariable) error {
	if !c.loaded || set.GetSymbol() == "" {
		return errUnknown
	}
	found, err := objfile.LookupIn(c.images, set.GetObject(), set.GetSymbol(), objfile.Variable)
	if errors.Is(err, objfile.ErrNoSymbol) {
		if local, localErr := objfile.LookupIn(c.images, set.GetObject(), set.GetSymbol(), objfile.ThreadLocal); localErr == nil {
			found, err = local, nil
		}
	}
	if err != nil {
		return err
	}
	if size := uint64(set.GetSize()); size > 0 && size != found.Symbol.Size {
		return fmt.Errorf("it has %s in %s, not %d", quantity.Count(int(found.Symbol.Size), "byte", "bytes"), found.Image.Path, size)
	}
	return fits(set.GetValue(), found)
}

// fits says why a variable does not take real numbers, where value is one, as far as debug
// information tells. Nothing follows from an integer: a tunlet's account of a knob may have any
// value, and what is proposed another one.
func fits(value *attunev1.Value, found objfile.Resolved) error {
	t, known := dwarfinfo.TypeOfVariable(found.Image, found.Symbol)
	if _, real := value.GetKind().(*attunev1.Value_Real); !real || !known || t.Kind == dwarfinfo.Float {
		return nil
	}
	return fmt.Errorf("its type in %s is %s, which takes no real number: give it an integer", found.Image.Path, t.Name)
}
