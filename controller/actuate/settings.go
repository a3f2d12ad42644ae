// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

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
}

// method is how a setting is changed: words written in place, or calls.
type method interface {
	// plan checks everything that stands against the change, and reads the old
	// value. What it cannot do is refused, with the reason.
	plan(ctx context.Context, r *settingRequest) (*plan, error)
}

// settingRequest is one setting that is to be changed in one process.
type settingRequest struct {
	actuator *Actuator
	process  Process
	at       *attunev1.SafePoint
	setting  Setting
	value    int64
}

// Settings returns every named setting, in the order of names;
// docs/reference/settings.md is made from it.
func Settings() []Setting {
	all := slices.Concat(glibcSettings(), gompSettings(), ompSettings(), jemallocSettings(), tcmallocSettings(), pythonSettings())
	slices.SortFunc(all, func(a, b Setting) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// LookupSetting finds a setting by its name.
func LookupSetting(name string) (Setting, bool) {
	all := Settings()
	at := slices.IndexFunc(all, func(s Setting) bool { return s.Name == name })
	if at < 0 {
		return Setting{}, false
	}
	return all[at], true
}

// Values says what the setting takes, in words.
func (s Setting) Values() string { return fmt.Sprintf("%d to %d", s.Min, s.Max) }

// Check says whether the setting takes a value.
func (s Setting) Check(value int64) error {
	if value < s.Min || value > s.Max {
		return fmt.Errorf("%s = %d is outside %d..%d", s.Name, value, s.Min, s.Max)
	}
	return nil
}

// Parse reads a value as people write it.
func (s Setting) Parse(text string) (int64, error) {
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s takes a whole number, not %q", s.Name, text)
	}
	return value, s.Check(value)
}

func (a *Actuator) planSetting(ctx context.Context, process Process, at *attunev1.SafePoint, request *attunev1.NamedSetting) (*plan, error) {
	setting, ok := LookupSetting(request.GetName())
	if _, isMPI := isMPI(request.GetName()); isMPI {
		return nil, fmt.Errorf("%w: %s must be equal in all ranks: change it in all of them at once, at an agreed call", ErrRefused, request.GetName())
	}
	if !ok {
		return nil, fmt.Errorf("%w: unknown setting %q; known are %s", ErrRefused, request.GetName(), settingNames())
	}
	if err := a.allowed(process, "setting", []*attunev1.Value{request.GetValue()}, setting.Name); err != nil {
		return nil, err
	}
	value, ok := whole(request.GetValue())
	if !ok {
		return nil, fmt.Errorf("%w: %s takes a whole number", ErrRefused, setting.Name)
	}
	if err := setting.Check(value); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	p, err := setting.method.plan(ctx, &settingRequest{actuator: a, process: process, at: at, setting: setting, value: value})
	if err != nil && !errors.Is(err, ErrRefused) {
		err = fmt.Errorf("%w: %s: %w", ErrRefused, setting.Name, err)
	}
	return p, err
}

func settingNames() string {
	var names []string
	for _, s := range Settings() {
		names = append(names, s.Name)
	}
	return strings.Join(names, ", ")
}
