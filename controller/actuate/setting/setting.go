// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/actuate/hidden"
	"github.com/attune-hpc/attune/controller/actuate/setting/mpi"
	"github.com/attune-hpc/attune/controller/actuate/system"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Setting is a setting that the controller knows by name.
type Setting struct {
	// Name, e.g. "glibc.malloc.top_pad".
	Name string
	// Description in a sentence, with the unit of the value.
	Description string
	// Min and Max of the value.
	Min, Max int64
	// Default that the library documents.
	Default string
	// Has says which libraries have it.
	Has string
	// WayIn says how it is changed, WayBack how it is undone.
	WayIn, WayBack string

	method method
	// words are names of the values from Min on; nil: numbers.
	words []string
	// descriptors: NAME@NUMBER is that of one descriptor, on.
	descriptors bool
	on          int
}

// method is how a setting is changed: words written in place, or calls.
type method interface {
	// plan checks everything that stands against the change, and reads the old
	// value. What it cannot do is refused, with the reason.
	plan(ctx context.Context, r *settingRequest) (*actuate.Plan, error)
}

// settingRequest is one setting that is to be changed in one process.
type settingRequest struct {
	*actuate.Request
	knowledge *knowledge // nil: of an undo, which needs no variables without symbol
	setting   Setting
	value     int64
}

// All returns every named setting, in the order of names;
// docs/reference/settings.md is made from it.
func All() []Setting {
	all := slices.Concat(glibcSettings(), stdioSettings(), gompSettings(), ompSettings(), jemallocSettings(), tcmallocSettings(), pythonSettings(), goSettings())
	slices.SortFunc(all, func(a, b Setting) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Changeable lists the names of all that can be changed by name: settings of libraries, and
// knobs of the operating system.
func Changeable() []string {
	names := settingNames()
	for _, k := range system.Knobs() {
		names = append(names, k.Name)
	}
	return names
}

// Lookup finds a setting by its name, which may be followed by @ and a
// descriptor where there is one for each.
func Lookup(name string) (Setting, bool) {
	all := All()
	base, number, one := strings.Cut(name, "@")
	at := slices.IndexFunc(all, func(s Setting) bool { return s.Name == base && (s.descriptors || !one) })
	if at < 0 {
		return Setting{}, false
	}
	s := all[at]
	if one {
		fd, err := strconv.ParseInt(number, 10, 31)
		if err != nil || fd < 0 {
			return Setting{}, false
		}
		s.on, s.Name = int(fd), name
	}
	return s, true
}

// Values says what the setting takes, in words.
func (s Setting) Values() string {
	if s.words != nil {
		return strings.Join(s.words, ", ")
	}
	return fmt.Sprintf("%d to %d", s.Min, s.Max)
}

// Words are the names of the values, in their order; nil: they are numbers.
func (s Setting) Words() []string { return slices.Clone(s.words) }

// Check says whether the setting takes a value.
func (s Setting) Check(value int64) error {
	if value < s.Min || value > s.Max {
		return fmt.Errorf("%s = %d is outside %d..%d", s.Name, value, s.Min, s.Max)
	}
	return nil
}

// Parse reads a value as people write it: one of its words, or a number that
// may end in K, M, G or T, powers of 1024.
func (s Setting) Parse(text string) (int64, error) {
	if at := slices.Index(s.words, text); at >= 0 {
		return s.Min + int64(at), nil
	}
	value, err := system.ParseSize(text)
	switch {
	case s.words != nil:
		return 0, fmt.Errorf("%s takes %s, not %q", s.Name, s.Values(), text)
	case err != nil:
		return 0, fmt.Errorf("%s takes a whole number, not %q", s.Name, text)
	}
	return value, s.Check(value)
}

// number is a value as the setting takes it: a whole number, or a word.
func (s Setting) number(value *attunev1.Value) (int64, error) {
	if text, ok := value.GetKind().(*attunev1.Value_Text); ok {
		return s.Parse(text.Text)
	}
	n, ok := access.Whole(value)
	if !ok {
		return 0, fmt.Errorf("%s takes a whole number", s.Name)
	}
	return n, s.Check(n)
}

// knowledge changes settings that the controller knows by name.
type knowledge struct {
	// hidden finds variables without symbol; nil: they are not found.
	hidden *hidden.Prober

	mu sync.Mutex // guards what follows
	// filesRead are those whose code was read, and why they do not take any number
	// of threads; nil: they do.
	filesRead map[mappedFile]error
}

// Kinds change settings by name; nil for finder: variables without symbol are
// not found.
func Kinds(finder *hidden.Prober) actuate.Kinds {
	n := &knowledge{hidden: finder}
	kind := actuate.Kind{
		Route: actuate.Route{
			Action:  "setting",
			What:    "named setting",
			Command: "attune tune PID NAME=VALUE",
			Ways:    []access.Way{access.WayMailbox, access.WayMemory, access.WayStopped},
			Remark:  "Variables are written; what takes a call is done by DMLib, and without it by a stopped thread; stdio streams and control variables of MPI by stopped threads only, the latter in all ranks before the same call. See docs/reference/settings.md.",
			Undo:    "the old value, also after a controller that died",
		},
		Plan:  n.plan,
		Joint: mpi.Variables{},
	}
	return actuate.Kinds{Actions: []actuate.Kind{kind}, Undos: []func() actuate.Undo{
		actuate.Empty[calledSetting],
		mpi.NewUndo,
		actuate.Empty[changedStream],
		actuate.Empty[standardMallopt],
	}}
}

func (n *knowledge) plan(ctx context.Context, r *actuate.Request) (*actuate.Plan, error) {
	request := r.Change.GetAction().GetSetting()
	setting, ok := Lookup(request.GetName())
	if mpi.IsVariable(request.GetName()) {
		return nil, fmt.Errorf("%w: %s is changed in all ranks of the job at one time, not in a process", access.ErrRefused, request.GetName())
	}
	if !ok {
		return nil, fmt.Errorf("%w: unknown setting %q; known are %s", access.ErrRefused, request.GetName(), strings.Join(settingNames(), ", "))
	}
	baseName, _, _ := strings.Cut(setting.Name, "@")
	if err := r.Allowed("setting", []*attunev1.Value{request.GetValue()}, setting.Name, baseName); err != nil {
		return nil, err
	}
	value, err := setting.number(request.GetValue())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", access.ErrRefused, err)
	}
	p, err := setting.method.plan(ctx, &settingRequest{Request: r, knowledge: n, setting: setting, value: value})
	if err != nil && !errors.Is(err, access.ErrRefused) {
		err = fmt.Errorf("%w: %s: %w", access.ErrRefused, setting.Name, err)
	}
	return p, err
}

func settingNames() (names []string) {
	for _, s := range All() {
		names = append(names, s.Name)
	}
	return names
}
