// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/ext"
	"go.yaml.in/yaml/v3"

	"github.com/attune-hpc/attune/proto/attune/series"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// mostCost bounds what one evaluation may do, in CEL's units: some hundred
// operations are what a condition needs.
const mostCost = 100_000

// expression is a compiled expression; the zero one is not given.
type expression struct {
	text       string
	program    cel.Program
	vocabulary vocabulary
	names      []string // of it, that are used
}

func (e *expression) given() bool { return e.program != nil }

// uses says whether a name begins with the prefix that the expression uses.
func (e *expression) uses(prefix string) bool {
	return slices.ContainsFunc(e.names, func(n string) bool { return strings.HasPrefix(n, prefix) })
}

// details are the kinds of details that the expression uses.
func (e *expression) details() (kinds []sdk.Detail) {
	for i := range series.Tables() {
		t := &series.Tables()[i]
		if slices.Contains(e.names, t.Name) || t.Single() && e.uses(singleName(t)) {
			kinds = append(kinds, t.ID)
		}
	}
	return kinds
}

// activation gives CEL the values of names.
type activation struct {
	names vocabulary
	knowledge
}

// ResolveName returns what a name stands for, and whether that is known.
func (a activation) ResolveName(name string) (any, bool) {
	n, ok := a.names[name]
	if !ok {
		return nil, false
	}
	return n.get(a.knowledge)
}

// Parent returns nil: there are no other names.
func (activation) Parent() cel.Activation { return nil }

// value evaluates the expression; false: something that it needs is not known,
// or there is no such value (a division by zero among integers).
func (e *expression) value(k knowledge) (any, bool) {
	if !e.given() {
		return nil, false
	}
	v, _, err := e.program.Eval(activation{e.vocabulary, k})
	if err != nil || v == nil {
		return nil, false
	}
	return v.Value(), true
}

// holds says whether a condition holds. One without value does not.
func (e *expression) holds(k knowledge) bool {
	v, ok := e.value(k)
	truth, isTruth := v.(bool)
	return ok && isTruth && truth
}

// number is the value of an expression of a number; not infinite, not NaN.
func (e *expression) number(k knowledge) (float64, bool) {
	v, ok := e.value(k)
	if !ok {
		return 0, false
	}
	return asNumber(v)
}

// compiler compiles the expressions of one file.
type compiler struct {
	*parser
	names vocabulary
	env   *cel.Env
}

func newCompiler(p *parser, names vocabulary) (*compiler, error) {
	options := []cel.EnvOption{cel.CrossTypeNumericComparisons(true), ext.Math(), sum(), withItems}
	env, err := cel.NewEnv(append(options, names.declarations()...)...)
	return &compiler{p, names, env}, err
}

// with is a compiler that knows further names.
func (c *compiler) with(further vocabulary) (*compiler, error) {
	all := maps.Clone(c.names)
	maps.Copy(all, further)
	env, err := c.env.Extend(further.declarations()...)
	return &compiler{c.parser, all, env}, err
}

// declarations declares the names to CEL.
func (v vocabulary) declarations() (options []cel.EnvOption) {
	for _, name := range sortedKeys(v) {
		options = append(options, cel.Variable(name, v[name].kind))
	}
	return options
}

// sum is the function that adds numbers up, which CEL does not have.
func sum() cel.EnvOption {
	return cel.Function("sum", cel.Overload("sum_list_double",
		[]*cel.Type{cel.ListType(cel.DoubleType)}, cel.DoubleType,
		cel.UnaryBinding(func(list ref.Val) ref.Val {
			total := types.Double(0)
			for it := list.(traits.Iterable).Iterator(); it.HasNext() == types.True; {
				n, ok := it.Next().(types.Double)
				if !ok {
					return types.NewErr("sum of what is no number")
				}
				total += n
			}
			return total
		})))
}

// wanted are the types that an expression may have.
type wanted struct {
	text  string
	types []*cel.Type
}

func aCondition() wanted { return wanted{"true or false", []*cel.Type{cel.BoolType}} }

func aNumber() wanted {
	return wanted{"a number", []*cel.Type{cel.DoubleType, cel.IntType, cel.UintType}}
}

func aValue() wanted {
	return wanted{"a number, a text, or true or false", append(aNumber().types, cel.StringType, cel.BoolType)}
}

// expression reads an expression of a field.
func (c *compiler) expression(what string, want wanted, to *expression) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || strings.TrimSpace(n.Value) == "" {
			c.wrong(n.Line, "%s: want an expression", what)
			return
		}
		*to = c.compile(what, n.Value, firstLine(n), want)
	}
}

// firstLine is the line on which a scalar's text begins.
func firstLine(n *yaml.Node) int {
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return n.Line + 1
	}
	return n.Line
}

func (c *compiler) compile(what, text string, line int, want wanted) expression {
	ast, issues := c.env.Compile(text)
	if issues.Err() != nil {
		for _, e := range issues.Errors() {
			c.wrong(line+e.Location.Line()-1, "%s: %s", what, c.explain(text, e))
		}
		return expression{}
	}
	if !slices.ContainsFunc(want.types, func(t *cel.Type) bool { return t.IsExactType(ast.OutputType()) }) {
		c.wrong(line, "%s: %q is %v, want %s", what, strings.TrimSpace(text), typeText(ast.OutputType()), want.text)
		return expression{}
	}
	program, err := c.env.Program(ast, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(mostCost))
	if err != nil {
		c.wrong(line, "%s: %v", what, err)
		return expression{}
	}
	e := expression{text: text, program: program, vocabulary: c.names}
	for _, reference := range ast.NativeRep().ReferenceMap() {
		e.names = append(e.names, reference.Name)
	}
	return e
}

func typeText(t *cel.Type) string {
	switch {
	case t.IsExactType(cel.BoolType):
		return "true or false"
	case t.IsExactType(cel.StringType):
		return "a text"
	case slices.ContainsFunc(aNumber().types, t.IsExactType):
		return "a number"
	}
	return "of type " + t.String()
}

// explain says in our words what CEL found, where those help more.
func (c *compiler) explain(text string, e *common.Error) string {
	switch {
	case strings.HasPrefix(e.Message, "undeclared reference"):
		name := nameAt(text, e)
		return fmt.Sprintf("there is no %q here; there are: %s", name, c.names.instead(name))
	case strings.HasPrefix(e.Message, "undefined field"):
		return e.Message + "; " + fieldsMeant(text)
	case strings.HasPrefix(e.Message, "found no matching overload") &&
		(strings.Contains(e.Message, "(double, int)") || strings.Contains(e.Message, "(int, double)")):
		return e.Message + "; write numbers with a point: 2.0, not 2, and double(NAME) of a name that is a whole number"
	}
	return strings.ReplaceAll(e.Message, "\n", " ")
}

// fieldsMeant lists the fields of the kinds of details that a text names.
func fieldsMeant(text string) string {
	var out []string
	for _, row := range sortedKeys(itemTables()) {
		if t := itemTables()[row]; strings.Contains(text, row) {
			out = append(out, t.Name+" have: "+strings.Join(labels(t), ", "))
		}
	}
	return strings.Join(out, "; ")
}

// nameAt is the whole name in which CEL found an error.
func nameAt(text string, e *common.Error) string {
	lines := strings.Split(text, "\n")
	if e.Location.Line() > len(lines) {
		return "name"
	}
	line := []rune(lines[max(e.Location.Line(), 1)-1])
	rest := string(line[min(max(e.Location.Column(), 0), len(line)):])
	return regexp.MustCompile(`^[A-Za-z0-9_.]*`).FindString(rest)
}
