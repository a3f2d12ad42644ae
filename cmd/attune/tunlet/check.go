// SPDX-License-Identifier: Apache-2.0

package tunlet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/analyzer/tunlethost"
	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/tunletfind"
	"github.com/attune-hpc/attune/controller/actuate/setting"
	"github.com/attune-hpc/attune/controller/actuate/setting/mpi"
	"github.com/attune-hpc/attune/controller/probe/symbols"
	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/quantity"
	"github.com/attune-hpc/attune/internal/symname"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const tunletCheckLong = `Check asks a tunlet what it may change and watch, and looks whether there is such a
thing: each setting among those of Attune, and with --program each variable, function
and measure point in that program and the libraries that it is linked with, of
variables also the size, and with debug information the type. Nothing is placed or
changed. The program is loaded for that, and ended before its main function.

A tunlet in YAML names all that it uses. One in Go names its variables and functions in
the knobs of its description, and measure points in Description.Points as far as it
can; what an option or the program itself decides is known only when it runs. A library
that the program loads later (dlopen) is not there yet.`

func newTunletCheck(p *cli.Env) *cobra.Command {
	program := ""
	cmd := &cobra.Command{
		Use:   "check [flags] FILE|DIR",
		Short: "Look whether what a tunlet names exists, in a program too",
		Long:  tunletCheckLong,
		Example: "  attune tunlet check mine.tunlet.yaml\n" +
			"  attune tunlet check --program ./my-program mine.tunlet.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exitcode.UsageError(errors.New("the file or the directory of a tunlet is needed"), "write: attune tunlet check mine.tunlet.yaml")
			}
			found, err := tunletsAt(args[0])
			if err != nil {
				return err
			}
			c := &checker{out: p.Stdout}
			if program != "" {
				stop, err := c.load(program)
				if err != nil {
					return exitcode.UsageError(err, "name a program that can be run with --program")
				}
				defer stop()
			}
			for _, candidate := range found {
				c.check(cmd.Context(), candidate)
			}
			if c.wrong > 0 {
				return &exitcode.Error{Code: exitcode.Failure, Err: fmt.Errorf("%s failed", quantity.Count(c.wrong, "check", "checks")), Remedy: "each line says what comes close"}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&program, "program", "", "look in `PROGRAM` too")
	return cmd
}

// checker looks whether there is what tunlets name.
type checker struct {
	out    io.Writer
	loaded bool // there is a program
	images []objfile.Image
	wrong  int
}

// load loads a program, whose objects are there until stop is called.
func (c *checker) load(program string) (stop func(), err error) {
	pid, stop, err := loadOnly(program)
	if err != nil {
		return nil, err
	}
	if c.images, err = objfile.Images(pid); err != nil {
		stop()
		return nil, err
	}
	c.loaded = true
	return stop, nil
}

// check tells of one tunlet.
func (c *checker) check(ctx context.Context, t tunlethost.Candidate) {
	fmt.Fprintf(c.out, "%s (%s)\n", t.Name, t.Path)
	asking := tunletfind.Asking()
	asking.DescriptionDir = "" // what it says now
	d, _, err := tunlethost.Describe(ctx, t, asking)
	c.tell("description", err)
	for _, k := range d.GetKnobs() {
		c.tell(fmt.Sprintf("knob %s, %s", k.GetName(), attunev1.KnobText(k)), c.knob(k))
	}
	for _, p := range d.GetPoints() {
		c.tell(fmt.Sprintf("measure point %s", p.GetId()), c.point(p))
	}
}

// errUnknown says that only a program can tell.
var errUnknown = errors.New("only a program can tell")

func (c *checker) tell(what string, err error) {
	switch {
	case errors.Is(err, errUnknown):
		fmt.Fprintf(c.out, "?     %s\n", what)
	case err != nil:
		c.wrong++
		fmt.Fprintf(c.out, "FAIL  %s: %s\n", what, strings.ReplaceAll(err.Error(), "\n", "\n      "))
	default:
		fmt.Fprintf(c.out, "ok    %s\n", what)
	}
}

// knob looks for what changes of a knob are made to.
func (c *checker) knob(k *attunev1.Knob) error {
	a := k.GetAction()
	switch kind := a.GetKind().(type) {
	case nil:
		return namedSetting(k.GetName())
	case *attunev1.Action_Setting:
		return namedSetting(kind.Setting.GetName())
	case *attunev1.Action_System:
		return namedSetting(kind.System.GetName())
	case *attunev1.Action_SetVariable:
		return c.variable(kind.SetVariable)
	case *attunev1.Action_CallFunction:
		return c.function(kind.CallFunction)
	case *attunev1.Action_Remove:
		return c.function(kind.Remove.GetFunction())
	case *attunev1.Action_Parameter:
		return c.function(kind.Parameter.GetFunction())
	case *attunev1.Action_Replace:
		return c.function(kind.Replace.GetOld())
	case *attunev1.Action_Insert:
		return errors.Join(c.function(kind.Insert.GetFunction()), c.function(kind.Insert.GetCall()))
	}
	return errUnknown
}

// function looks for a function, as it is found when it is changed.
func (c *checker) function(f interface {
	GetObject() string
	GetSymbol() string
}) error {
	if !c.loaded {
		return errUnknown
	}
	_, err := objfile.LookupIn(c.images, f.GetObject(), f.GetSymbol(), objfile.Function)
	if errors.Is(err, objfile.ErrIndirect) {
		return nil // the process chooses
	}
	return err
}

// point looks for what a measure point watches.
func (c *checker) point(spec *attunev1.MeasurePoint) error {
	if name := spec.GetHook(); name != "" {
		var names []string
		for _, h := range shm.Hooks() {
			names = append(names, h.Name)
		}
		return among("DMLib has no hook "+name, name, names)
	}
	if !c.loaded {
		return errUnknown
	}
	if spec.GetFunction() == nil {
		return c.staticProbe(spec)
	}
	spec, err := symbols.InOneObject(spec, func() ([]objfile.Image, error) { return c.images, nil })
	if err != nil {
		return err
	}
	return symbols.CheckNames(c.images, spec.GetFunction())
}

// staticProbe looks for a static probe in each object that may have it.
func (c *checker) staticProbe(spec *attunev1.MeasurePoint) error {
	object, what := symbols.TargetOf(spec)
	var errs []error
	for _, image := range c.images {
		if !symbols.Watched(image, object) {
			continue
		}
		spots, err := symbols.SpotsOf(image, spec)
		if len(spots) > 0 {
			return nil
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if len(errs) == 0 {
		return symbols.NoObject(c.images, object)
	}
	return fmt.Errorf("no object has the %s", what)
}

// namedSetting looks for a setting among those of Attune.
func namedSetting(name string) error {
	if mpi.IsVariable(name) {
		return nil
	}
	return among("there is no setting "+name, name, setting.Changeable())
}

// among says what is wrong with a name that is none of the names, and which of them come
// close to it.
func among(what, name string, names []string) error {
	if slices.Contains(names, name) {
		return nil
	}
	if list := symname.Near(name, names, 3); len(list) > 0 {
		return fmt.Errorf("%s; close to it: %s", what, strings.Join(list, ", "))
	}
	return errors.New(what)
}
