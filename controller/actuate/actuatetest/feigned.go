// SPDX-License-Identifier: Apache-2.0

package actuatetest

import (
	"context"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Feigned are changes of settings that change nothing, see [Setting], and do what the
// test says. They may outlive their controller.
type Feigned struct {
	// Run is called when a change is made; nil: that succeeds.
	Run func() error
	// About is what undos tell of themselves beside that they may outlive their controller.
	About actuate.About
	// TakeBack is called when the setting of that name is undone; nil: that succeeds.
	TakeBack func(name string) error
	// OtherValue says what somebody else has made of the setting of that name; nil: nothing.
	OtherValue func(name string) string
	// Tend is done in the process for as long as a change is in force; nil: nothing.
	Tend func(ctx context.Context, process access.Process)
}

// Kinds are those of the changes, which are the only ones.
func (f *Feigned) Kinds() actuate.Kinds {
	return actuate.Kinds{
		Actions: []actuate.Kind{{Route: actuate.Route{Action: "setting"}, Plan: f.plan}},
		Undos:   []func() actuate.Undo{func() actuate.Undo { return &feignedUndo{feigned: f} }},
	}
}

func (f *Feigned) plan(_ context.Context, r *actuate.Request) (*actuate.Plan, error) {
	setting := r.Change.GetAction().GetSetting()
	p := &actuate.Plan{
		Undo: actuate.Undos{&feignedUndo{Name: setting.GetName(), feigned: f}},
		Run: func(context.Context) (access.Done, error) {
			if f.Run == nil {
				return access.Done{}, nil
			}
			return access.Done{}, f.Run()
		},
		Read: func() (*attunev1.Value, error) { return setting.GetValue(), nil },
	}
	if f.Tend != nil {
		p.Tend = func(ctx context.Context) { f.Tend(ctx, r.Process) }
	}
	return p, nil
}

// feignedUndo is the undo of one change.
type feignedUndo struct {
	Name string `json:"name"`

	feigned *Feigned
}

func (*feignedUndo) Kind() string { return "feigned" }

func (u *feignedUndo) TakeBack(context.Context, actuate.Changed) error {
	if u.feigned.TakeBack == nil {
		return nil
	}
	return u.feigned.TakeBack(u.Name)
}

func (u *feignedUndo) OtherValue(actuate.Changed) (string, error) {
	if u.feigned.OtherValue == nil {
		return "", nil
	}
	return u.feigned.OtherValue(u.Name), nil
}

func (u *feignedUndo) Overlaps(other actuate.Undo, sameProcess bool) bool {
	o, ok := other.(*feignedUndo)
	return ok && sameProcess && o.Name == u.Name
}

func (u *feignedUndo) About(actuate.Changed) actuate.About {
	about := u.feigned.About
	about.Keeps = true
	return about
}
