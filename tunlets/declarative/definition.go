// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

const (
	// Format is the first field of every file.
	Format = "tunlet/1"

	// mostBytes bounds a file.
	mostBytes = 64 << 10
	// longest bounds times in a file.
	longest = time.Minute
	// defaultLasting is for how long the symptom must last if the file does not
	// say: two rounds of samples.
	defaultLasting = 100 * time.Millisecond
)

// Definition is what a file says.
type Definition struct {
	description sdk.Description
	points      []point
	lasting     time.Duration
	symptom     expression
	confirm     expression // may be missing
	objective   expression
	gain        expression // may be missing
	confidence  float64
	reason      sentence
	changes     []change
	details     []sdk.Detail // what expressions after the symptom need
}

// Read reads the definition in a file called NAME.tunlet.yaml. An error has a line for each
// [Problem], and names the file as it is called: it may be a copy.
func Read(file, called string) (*Definition, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // read only
	content, err := io.ReadAll(io.LimitReader(f, mostBytes+1))
	if err != nil {
		return nil, err
	}
	d, err := Parse(content)
	if err != nil {
		return nil, inFile(called, err)
	}
	if want := strings.TrimSuffix(filepath.Base(file), sdk.DeclarationSuffix); d.description.Name != want {
		return nil, fmt.Errorf("%s: the tunlet calls itself %q: rename the file or the tunlet", called, d.description.Name)
	}
	return d, nil
}

// inFile puts the file's name before each line.
func inFile(file string, err error) error {
	return errors.New(file + ": " + strings.ReplaceAll(err.Error(), "\n", "\n"+file+": "))
}

// Parse reads a definition. The error joins one [Problem] for each thing that is
// wrong, in the order of the lines.
func Parse(content []byte) (*Definition, error) {
	if len(content) > mostBytes {
		return nil, &Problem{1, fmt.Sprintf("the file has more than %d KiB", mostBytes>>10)}
	}
	root, err := onlyDocument(content)
	if err != nil {
		return nil, err
	}
	p, d := &parser{}, &Definition{lasting: defaultLasting, confidence: 0.5}
	p.definition(root, d)
	if err := p.err(); err != nil {
		return nil, err
	}
	for id, point := range d.asks(false) {
		point.ID = id
		d.description.Points = append(d.description.Points, point)
	}
	return d, nil
}

// onlyDocument returns the content of a file's one document: what comes after a
// --- would be ignored.
func onlyDocument(content []byte) (*yaml.Node, error) {
	var first, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	err := decoder.Decode(&first)
	switch {
	case errors.Is(err, io.EOF), err == nil && len(first.Content) == 0:
		return nil, &Problem{1, "the file is empty; begin with: attune: " + Format}
	case err != nil:
		return nil, syntaxProblem(err)
	}
	switch err = decoder.Decode(&second); {
	case errors.Is(err, io.EOF):
		return first.Content[0], nil
	case err != nil:
		return nil, syntaxProblem(err)
	}
	return nil, &Problem{second.Line, "a second document begins here: a file has one tunlet"}
}

// Must is Parse of a file that is part of the program: it panics where that is
// wrong, which a test of it shows.
func Must(content []byte) *Definition {
	d, err := Parse(content)
	if err != nil {
		panic(err)
	}
	return d
}

// syntaxProblem is an error of the YAML library, which has the line in its text;
// of some errors that is the line before.
func syntaxProblem(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1
	if m := regexp.MustCompile(`^line (\d+): `).FindStringSubmatch(text); m != nil {
		_, _ = fmt.Sscan(m[1], &line)
		text = strings.TrimPrefix(text, m[0])
	}
	return &Problem{line, "this or the next line is no YAML: " + text}
}

// definition reads the whole file: names first, since expressions use them, then
// what is made of expressions.
func (p *parser) definition(n *yaml.Node, d *Definition) {
	names := signalNames()
	var later []func(*compilers)
	with := func(read func(*compilers, *yaml.Node)) func(*yaml.Node) {
		return func(n *yaml.Node) { later = append(later, func(c *compilers) { read(c, n) }) }
	}
	p.section(n, "a tunlet",
		field{"attune", true, choice(p, "attune", new(string), map[string]string{Format: Format})},
		field{"name", true, p.name("name", `^[a-z][a-z0-9-]*$`, "lower case letters, digits and hyphens", &d.description.Name)},
		field{"version", true, p.text("version", &d.description.Version)},
		field{"summary", true, p.text("summary", &d.description.Summary)},
		field{"wake", true, p.list("wake", func(n *yaml.Node) { p.wake(n, d) })},
		field{"options", false, p.list("options", func(n *yaml.Node) { p.option(n, d) })},
		field{"points", false, p.list("points", func(n *yaml.Node) { p.point(n, d) })},
		field{"lasting", false, p.duration("lasting", &d.lasting, time.Nanosecond, longest)},
		field{"symptom", true, with(func(c *compilers, n *yaml.Node) { c.before.expression("symptom", aCondition(), &d.symptom)(n) })},
		field{"confirm", false, with(func(c *compilers, n *yaml.Node) { c.after.expression("confirm", aCondition(), &d.confirm)(n) })},
		field{"objective", true, with(func(c *compilers, n *yaml.Node) { c.objective(n, d) })},
		field{"gain", false, with(func(c *compilers, n *yaml.Node) { c.after.expression("gain", aNumber(), &d.gain)(n) })},
		field{"confidence", false, p.number("confidence", &d.confidence, 0, 1)},
		field{"reason", true, with(func(c *compilers, n *yaml.Node) { c.after.sentence("reason", &d.reason)(n) })},
		field{"change", true, with(func(c *compilers, n *yaml.Node) { p.list("change", func(n *yaml.Node) { c.change(n, d) })(n) })},
		field{"max_tries", false, p.count("max_tries", &d.description.MaxTries, 100)},
		field{"min_gain", false, p.number("min_gain", &d.description.MinGain, 0, 100)},
	)
	names.addOptions(d.description.Options)
	c, err := newCompilers(p, names, d.points)
	if err != nil {
		p.wrong(n.Line, "%v", err)
		return
	}
	for _, read := range later {
		read(c)
	}
	d.details = d.detailsUsed()
}

// detailsUsed are the kinds of details that any of the expressions uses.
func (d *Definition) detailsUsed() (kinds []sdk.Detail) {
	for _, e := range append([]expression{d.confirm, d.objective, d.gain}, d.reason.values...) {
		kinds = append(kinds, e.details()...)
	}
	for _, c := range d.changes {
		kinds = append(kinds, c.details()...)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// compilers are those of a file: before its points and details are asked for,
// and after.
type compilers struct{ before, after *compiler }

func newCompilers(p *parser, names vocabulary, points []point) (*compilers, error) {
	before, err := newCompiler(p, names)
	if err != nil {
		return nil, err
	}
	after, err := before.with(pointNames(points).join(detailNames()))
	return &compilers{before, after}, err
}

// name reads a name of a certain form.
func (p *parser) name(what, form, formText string, to *string) func(*yaml.Node) {
	return scalar(p, what, to, func(s string) (string, error) {
		if !regexp.MustCompile(form).MatchString(s) {
			return "", errors.New("a name of " + formText)
		}
		return s, nil
	})
}

// pattern reads a pattern of base names.
func (p *parser) pattern(what string, to *string) func(*yaml.Node) {
	return scalar(p, what, to, func(s string) (string, error) {
		if _, err := path.Match(s, ""); err != nil || s == "" || strings.Contains(s, "/") {
			return "", errors.New("a pattern of names without directory, as in libmpi.so*")
		}
		return s, nil
	})
}

func (p *parser) wake(n *yaml.Node, d *Definition) {
	var w sdk.Wake
	p.section(n, "wake",
		field{"object", false, p.pattern("object", &w.Object)},
		field{"levels", false, func(n *yaml.Node) { p.levels(n, &w) }},
		field{"lasting", false, p.duration("lasting", &w.Lasting, 0, longest)},
		field{"averaged", false, p.truth("averaged", &w.Averaged)},
		field{"detail", false, choice(p, "detail", &w.Detail, map[string]sdk.Detail{"sockets": sdk.DetailSockets, "pipes": sdk.DetailPipes})},
	)
	if w.Object == "" && len(w.Levels) == 0 {
		p.wrong(n.Line, "wake: want levels, an object, or both: a tunlet that is always awake costs every program")
	}
	d.description.Wake = append(d.description.Wake, w)
}

func (p *parser) levels(n *yaml.Node, w *sdk.Wake) {
	var fields []field
	for _, s := range sdk.Signals() {
		fields = append(fields, field{name: s.String(), read: func(n *yaml.Node) { w.Levels = append(w.Levels, p.level(n, s)) }})
	}
	p.section(n, "levels", fields...)
}

// level is the least value of a signal, or a multiple of another one's.
func (p *parser) level(n *yaml.Node, s sdk.Signal) sdk.Level {
	l := sdk.Level{Signal: s}
	if n.Kind != yaml.MappingNode {
		p.number(s.String(), &l.AtLeast, math.SmallestNonzeroFloat64, math.MaxFloat64)(n)
		return l
	}
	others := make(map[string]sdk.Signal)
	for _, other := range sdk.Signals() {
		others[other.String()] = other
	}
	p.section(n, s.String(),
		field{"times", true, p.number("times", &l.AtLeast, math.SmallestNonzeroFloat64, math.MaxFloat64)},
		field{"of", true, choice(p, "of", &l.Of, others)},
	)
	return l
}

func (p *parser) option(n *yaml.Node, d *Definition) {
	o := sdk.Option{Type: sdk.TextOption}
	types := map[string]sdk.OptionType{}
	for t := sdk.TextOption; t <= sdk.BytesOption; t++ {
		types[t.String()] = t
	}
	p.section(n, "an option",
		field{"name", true, p.name("name", `^[a-z][a-z0-9_]*$`, "lower case letters, digits and underscores", &o.Name)},
		field{"type", true, choice(p, "type", &o.Type, types)},
		field{"default", true, p.text("default", &o.Default)},
		field{"min", false, p.text("min", &o.Min)},
		field{"max", false, p.text("max", &o.Max)},
		field{"choices", false, p.list("choices", func(n *yaml.Node) {
			var choice string
			p.text("choices", &choice)(n)
			o.Choices = append(o.Choices, choice)
		})},
		field{"description", true, p.text("description", &o.Description)},
	)
	if err := o.Validate(); err != nil {
		p.wrong(n.Line, "%v", err)
	}
	for _, other := range d.description.Options {
		if other.Name == o.Name {
			p.wrong(n.Line, "option %s is there already", o.Name)
		}
	}
	d.description.Options = append(d.description.Options, o)
}

func (c *compilers) objective(n *yaml.Node, d *Definition) {
	o := &d.description.Objective
	c.after.section(n, "objective",
		field{"name", true, c.after.name("name", `^[a-z][a-z0-9_]*$`, "lower case letters, digits and underscores", &o.Name)},
		field{"unit", true, c.after.text("unit", &o.Unit)},
		field{"description", true, c.after.text("description", &o.Description)},
		field{"lower_is_better", false, c.after.truth("lower_is_better", &o.LowerIsBetter)},
		field{"value", true, c.after.expression("value", aNumber(), &d.objective)},
	)
}
