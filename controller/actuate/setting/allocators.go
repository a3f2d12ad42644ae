// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/internal/objfile"
)

// Offsets in the scratch page.
const (
	atName = 0
	atOld  = 512
	atSize = 520
	atNew  = 528
)

// mallctl is a setting of jemalloc, named as in mallctl(3).
type mallctl struct {
	name  string
	arena string // what each arena has of its own by this name; may be empty
	size  int    // bytes
}

// jemalloc is the library in one process.
type jemalloc struct {
	library
	process access.Process
	mallctl uint64
}

func (m mallctl) find(ctx context.Context, r *settingRequest) (k kept, err error) {
	control, err := access.LookupSingle(r.Process, "mallctl")
	if prefixed, e := access.LookupSingle(r.Process, "je_mallctl"); errors.Is(err, access.ErrAbsent) && e == nil {
		control, err = prefixed, nil
	}
	if err != nil {
		return kept{}, err
	}
	l, err := r.open(0)
	if err != nil {
		return kept{}, err
	}
	j := jemalloc{library: l, process: r.Process, mallctl: control.Address}
	k = kept{values: []value{j.value(m.name, m.size)}, do: l.pages(r), way: l.way, where: control.Image.Name()}
	if m.arena != "" {
		k.parts = func(ctx context.Context, page scratch) ([]value, error) { return j.arenas(ctx, page, m) }
	}
	return k, k.do(ctx, func(page scratch) error { return k.read(ctx, page) })
}

// arenas reads the values of all arenas in use. That one is not, its own values tell: what
// jemalloc says of that ("initialized") is as old as its statistics.
func (j jemalloc) arenas(ctx context.Context, page scratch, m mallctl) (values []value, err error) {
	count, err := j.value("arenas.narenas", 4).get(ctx, page)
	if err != nil {
		return nil, err
	}
	for i := range count {
		v := j.value(fmt.Sprintf("arena.%d.%s", i, m.arena), m.size)
		v.old, err = v.get(ctx, page)
		switch {
		case err == nil:
			values = append(values, v)
		case !errors.Is(err, unix.EFAULT):
			return nil, err
		}
	}
	return values, nil
}

// value is one that mallctl knows by name.
func (j jemalloc) value(name string, size int) value {
	return value{
		name: name,
		get: func(ctx context.Context, page scratch) (int64, error) {
			if _, err := page.write(atSize, access.BytesOf(int64(size), 8)); err != nil {
				return 0, err
			}
			if _, err := j.control(ctx, page, name, page.address+atOld, page.address+atSize, 0, 0); err != nil {
				return 0, err
			}
			return page.read(atOld, size)
		},
		set: func(ctx context.Context, page scratch, value int64) (string, error) {
			at, err := page.write(atNew, access.BytesOf(value, size))
			if err != nil {
				return "", err
			}
			return j.control(ctx, page, name, 0, 0, at, uint64(size))
		},
	}
}

func (j jemalloc) control(ctx context.Context, page scratch, name string, arguments ...uint64) (string, error) {
	at, err := page.text(atName, name)
	if err != nil {
		return "", err
	}
	result, where, err := j.call(ctx, j.mallctl, append([]uint64{at}, arguments...)...)
	if errno := unix.Errno(int32(result)); err == nil && errno != 0 {
		err = fmt.Errorf("mallctl refuses %s: %w", name, errno)
	}
	return where, err
}

// numericProperty is a setting of gperftools' tcmalloc.
type numericProperty string

func (m numericProperty) find(ctx context.Context, r *settingRequest) (k kept, err error) {
	set, err := access.LookupSingle(r.Process, "MallocExtension_SetNumericProperty")
	if err != nil {
		return kept{}, err
	}
	l, err := r.open(0)
	if err != nil {
		return kept{}, err
	}
	get, err := set.Image.Symbol("MallocExtension_GetNumericProperty", objfile.Function)
	if err != nil {
		return kept{}, err
	}
	control := func(ctx context.Context, page scratch, function, argument uint64) (string, error) {
		name, err := page.text(atName, string(m))
		if err != nil {
			return "", err
		}
		known, where, err := l.call(ctx, function, name, argument)
		if err == nil && known&0xff == 0 {
			err = fmt.Errorf("tcmalloc does not know %s", string(m))
		}
		return where, err
	}
	v := value{
		name: string(m),
		get: func(ctx context.Context, page scratch) (int64, error) {
			if _, err := control(ctx, page, set.Image.Address(get.Value), page.address+atOld); err != nil {
				return 0, err
			}
			return page.read(atOld, 8)
		},
		set: func(ctx context.Context, page scratch, value int64) (string, error) {
			return control(ctx, page, set.Address, uint64(value))
		},
	}
	k = kept{do: l.pages(r), way: l.way, where: set.Image.Name()}
	return k, k.do(ctx, func(page scratch) error {
		v.old, err = v.get(ctx, page)
		k.values = []value{v}
		return err
	})
}
