// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// sample is a definition that has every section.
const sample = `attune: tunlet/1
name: sample
version: "1"
summary: for tests
options:
  - {name: size, type: bytes, default: 1MiB, min: 64KiB, description: a size}
wake:
  - {object: "libpython*", levels: {cpu_user: 5e8}, lasting: 100ms}
points:
  - {id: lists, function: PyList_New, object: "libpython*"}
symptom: rate.cpu_user > 5e8
confirm: point.lists.rate > 1000
objective:
  name: lists_per_second
  unit: 1/s
  description: lists made
  value: point.lists.rate
gain: 2
reason: makes ${point.lists.rate} lists/s on ${process.cpus} CPUs
change:
  - {setting: python.gc.threshold0, to: option.size, description: a threshold, min: 0, max: 2MiB}
`

// with replaces one line, of which old is a part, by others.
func with(t *testing.T, old, line string) string {
	t.Helper()
	var out []string
	found := false
	for l := range strings.Lines(sample) {
		if strings.Contains(l, old) {
			found = true
			if line != "" {
				out = append(out, line+"\n")
			}
			continue
		}
		out = append(out, l)
	}
	if !found {
		t.Fatalf("no line has %q", old)
	}
	return strings.Join(out, "")
}

func TestParse(t *testing.T) {
	if _, err := Parse([]byte(sample)); err != nil {
		t.Fatal(err)
	}
}

// A level may be a multiple of another signal.
func TestLevels(t *testing.T) {
	of := `  - {object: "python3*", levels: {cpu_user: 5e8, python_gc_visits: {times: 1e-4, of: run_time}}}`
	d, err := Parse([]byte(with(t, "- {object", of)))
	if err != nil {
		t.Fatal(err)
	}
	want := []sdk.Level{{Signal: sdk.CPUUser, AtLeast: 5e8}, {Signal: sdk.PythonGCVisits, AtLeast: 1e-4, Of: sdk.RunTime}}
	if got := d.description.Wake[0].Levels; !slices.Equal(got, want) {
		t.Errorf("levels %v, want %v", got, want)
	}
}

func TestProblems(t *testing.T) {
	for _, tt := range []struct{ name, old, line, want string }{
		{"another format", "attune:", "attune: tunlet/9", `line 1: attune: "tunlet/9" is not one of tunlet/1`},
		{"no name", "name: sample", "", "line 1: a tunlet: name is missing"},
		{"a bad name", "name: sample", "name: My Tunlet", `line 2: name: "My Tunlet" is not a name of lower case letters, digits and hyphens`},
		{"an unknown field", "confirm:", "confirms: true", `line 12: a tunlet has no field "confirms"; it has: attune, name, version, summary, wake, options, points, lasting, symptom, confirm, objective, gain, confidence, reason, change, max_tries, min_gain`},
		{"a field twice", "gain:", "gain: 2\ngain: 3", "line 19: a tunlet: gain is given twice"},
		{"no YAML", "gain:", "gain: {", "line 17: this or the next line is no YAML: did not find expected ',' or '}'"},
		{"a list that is none", "- {object", "  levels: {cpu_user: 1}", "line 8: wake: want a list, each item after a dash"},
		{"always awake", "- {object", "  - {lasting: 1s}", "line 8: wake: want levels, an object, or both: a tunlet that is always awake costs every program"},
		{"no signal", "- {object", "  - levels: {cpu: 1}", `line 8: levels has no field "cpu"; it has: cpu_user, cpu_system`},
		{"a level of nothing", "- {object", "  - levels: {cpu_user: 0}", `line 8: cpu_user: "0" is not a number from 5e-324 to`},
		{"a part of no signal", "- {object", "  - levels: {cpu_user: {times: 0.5, of: cpu}}", `line 8: of: "cpu" is not one of anonymous_bytes, bound_threads`},
		{"a part of nothing", "- {object", "  - levels: {cpu_user: {times: 0.5}}", "line 8: cpu_user: of is missing"},
		{"a directory", "- {object", "  - object: /usr/lib/x", `line 8: object: "/usr/lib/x" is not a pattern of names without directory, as in libmpi.so*`},
		{"no unit", "- {object", "  - {object: x, lasting: 100}", `line 8: lasting: "100" is not a time with its unit, as in 250ms, from 0s to 1m0s`},
		{"a symptom of no time", "symptom:", "lasting: 0s\nsymptom: rate.cpu_user > 5e8", `line 11: lasting: "0s" is not a time with its unit, as in 250ms, from 1ns to 1m0s`},
		{"a bad default", "- {name: size", "  - {name: size, type: bytes, default: big, description: a size}", `line 6: its own account of itself: option size: "big" is not a number of bytes, as in 65536 or 64MiB`},
		{"a bad type", "- {name: size", "  - {name: size, type: float, default: 1, description: a size}", `line 6: type: "float" is not one of boolean, bytes, duration, integer, number, text`},
		{"two targets", "- {id: lists", "  - {id: lists, function: f, hook: malloc}", "line 10: a point: want one of probe, hook and function"},
		{"no probe", "- {id: lists", "  - {id: lists, probe: libpython3.so}", "line 10: probe: invalid measure point: it names no function: write FUNCTION or OBJECT:FUNCTION, for example malloc or libc.so.6:malloc"},
		{"single hits", "- {id: lists", "  - {id: lists, probe: 'a:b each'}", "line 10: probe: a tunlet in YAML gets no single hits: leave take, each and every out; sum VALUE adds a value up"},
		{"keys", "- {id: lists", "  - {id: lists, probe: 'a:b sum arg1 by arg0'}", "line 10: probe: a tunlet in YAML gets no sums by key: leave by out"},
		{"a probe with fields of a function", "- {id: lists", "  - {id: lists, probe: 'a:b', time: true}", "line 10: a point: time stands in the text of a probe: docs/reference/probes.md"},
		{"a hook with an object", "- {id: lists", "  - {id: lists, hook: malloc, object: libfoo.so}", "line 10: a point: a hook has no object: its calls are those of all objects, and its value is its own; write function: malloc"},
		{"a hook with a parameter", "- {id: lists", "  - {id: lists, hook: read, parameter: 0, min_value: 3, max_value: 3}", "line 10: a point: a hook has no parameter: "},
		{"a sum until", "- {id: lists", "  - {id: lists, probe: 'a:b sum arg0', until: 'a:c'}", "line 10: a point: the value of one with until is the time"},
		{"details in the symptom", "symptom:", "symptom: sockets.size() > 0", `line 11: symptom: there is no "sockets.size" here; there are: option`},
		{"no field of a socket", "confirm:", "confirm: sockets.exists(s, s.unsent > 0.0)", `line 12: confirm: undefined field 'unsent'; sockets have: fd, inode, kind, local`},
		{"no field of memory", "confirm:", "confirm: memory.rss > 0.0", `line 12: confirm: there is no "memory.rss" here; there are: memory.anonymous_bytes, memory.available_bytes, memory.huge_bytes`},
		{"a sum of texts", "confirm:", "confirm: sum(threads.map(t, t.name)) > 0.0", `line 12: confirm: found no matching overload for 'sum' applied to '(list(string))'`},
		{"no signal in an expression", "symptom:", "symptom: rate.cpu > 5e8", `line 11: symptom: there is no "rate.cpu" here; there are: rate.cpu_pressure, rate.cpu_system, rate.cpu_user`},
		{"a point before it is asked for", "symptom:", "symptom: point.lists.rate > 5.0", `line 11: symptom: there is no "point.lists.rate" here; there are: option.…, others.…, process.…, rate.…, value.…`},
		{"a gauge as a rate", "symptom:", "symptom: rate.threads > 5.0", `line 11: symptom: there is no "rate.threads" here`},
		{"no condition", "symptom:", "symptom: rate.cpu_user", `line 11: symptom: "rate.cpu_user" is a number, want true or false`},
		{"a whole number", "symptom:", "symptom: rate.cpu_user * 2 > 1.0", `line 11: symptom: found no matching overload for '_*_' applied to '(double, int)'; write numbers with a point: 2.0, not 2, and double(NAME) of`},
		{"the line in a block", "symptom:", "symptom: |\n  rate.cpu_user > 1.0\n  && rate.nothing > 1.0", `line 13: symptom: there is no "rate.nothing" here`},
		{"a text as gain", "gain:", `gain: "'much'"`, `line 18: gain: "'much'" is a text, want a number`},
		{"an open brace", "reason:", "reason: makes ${point.lists.rate lists", "line 19: reason: ${ without }"},
		{"a wrong reason", "reason:", "reason: makes ${point.arrays.rate}", `line 19: reason: there is no "point.arrays.rate" here; there are: point.lists.mean, point.lists.rate, point.lists.sum`},
		{"nothing to change", "- {setting", "  - {to: 1, description: d}", "line 21: a change: want one of setting, system and variable"},
		{"where of nothing", "- {setting", "  - {system: socket.tcp_nodelay, where: 'true', to: 1, description: d}", "line 21: where: say of what, by each: pipe, socket, thread"},
		{"each of what it is not", "- {setting", "  - {system: thread.nice, each: socket, to: 1, description: d}", "line 21: a change of each socket: want a system setting socket.…"},
		{"another item", "- {setting", "  - {system: thread.nice, each: thread, to: socket.fd, description: d}", `line 21: to: there is no "socket.fd" here; there are: `},
		{"a bad size", "- {setting", "  - {variable: {object: x, symbol: y, size: 3}, to: 1, description: d}", `line 21: size: "3" is not one of 1, 2, 4, 8`},
		{"a real of two bytes", "- {setting", "  - {variable: {object: x, symbol: y, size: 2, type: real}, to: 1, description: d}", "line 21: a variable: one of type real has 4 or 8 bytes, not 2"},
		{"a real that is none", "- {setting", "  - {variable: {object: x, symbol: y, size: 8, type: real}, to: 'true', description: d}", `line 21: to: "true" is true or false, want a number`},
		{"an integer of more than 64 bits", "- {setting", "  - {variable: {object: x, symbol: y, size: 8}, to: 1e20, description: d}", `line 21: to: "1e20" is nothing that can be set: want a finite number, and an integer of 64 bits at most`},
		{"an integer with a fraction", "- {setting", "  - {variable: {object: x, symbol: y, size: 8}, to: 0.75, description: d}", "line 21: to: the value for variable y is no whole number: write int(VALUE) to cut off what follows the point, or give the variable type: real"},
		{"twice the same", "- {setting", "  - {system: a, to: 1, description: d}\n  - {system: a, to: 2, description: d}", "line 22: a is changed twice"},
		{"no value within", "- {setting", "  - {system: a, to: 1, description: d, min: 5, max: 1}", "line 21: min and max: knob a: 5 is above the greatest allowed value 1"},
		{"a constant beyond", "- {setting", "  - {system: a, to: 2000000, description: d, max: 1000000}", "line 21: to: knob a: 2000000 is above the greatest allowed value 1000000"},
		{"a bound that is none", "- {setting", "  - {system: a, to: 1, description: d, min: some}", `line 21: min: "some" is not a number, which KiB, MiB or GiB may follow`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse([]byte(with(t, tt.old, tt.line)))
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("Parse:\n%v\nwant:\n%s", err, tt.want)
			}
			var problem *Problem
			if err != nil && !errors.As(err, &problem) {
				t.Errorf("%T is no Problem", err)
			}
		})
	}
}

// The type of a number is what the file says, whatever the number is.
func TestTypesOfVariables(t *testing.T) {
	for _, tt := range []struct {
		what, to string
		want     sdk.Value
	}{
		{"variable: {object: x, symbol: y, size: 4}", "57.0", sdk.Uint(57)},
		{"variable: {object: x, symbol: y, size: 4, type: integer}", "int(-57.3)", sdk.Int(-57)},
		{"variable: {object: x, symbol: y, size: 8}", "1e16", sdk.Uint(1e16)},
		{"variable: {object: x, symbol: y, size: 8}", "-9007199254740993", sdk.Int(-9007199254740993)},
		{"variable: {object: x, symbol: y, size: 1}", "'true'", sdk.Bool(true)},
		{"variable: {object: x, symbol: y, size: 8, type: real}", "2.0", sdk.Real(2)},
		{"variable: {object: x, symbol: y, size: 4, type: real}", "2", sdk.Real(2)},
		{"system: y", "57.3", sdk.Uint(57)},
	} {
		d, err := Parse([]byte(with(t, "- {setting", fmt.Sprintf("  - {%s, to: %s, description: d}", tt.what, tt.to))))
		if err != nil {
			t.Errorf("%s to %s: %v", tt.what, tt.to, err)
			continue
		}
		c := d.changes[0]
		v, _ := c.to.value(knowledge{})
		if got := c.value(v); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s to %s: %#v, want %#v", tt.what, tt.to, got, tt.want)
		}
	}
}

// TestAllProblems wants all of them at once, in the order of the lines.
func TestAllProblems(t *testing.T) {
	text := strings.NewReplacer("gain: 2", "gain: true", "version: \"1\"", "version:", "rate.cpu_user > 5e8", "rate.cpu > 1.0 && rate.ram > 1.0").Replace(sample)
	_, err := Parse([]byte(text))
	if err == nil {
		t.Fatal("no error")
	}
	var lines []string
	for l := range strings.Lines(err.Error()) {
		begin, _, _ := strings.Cut(l, ": there")
		lines = append(lines, strings.TrimSpace(begin))
	}
	want := []string{
		"line 3: version: want one value", "line 11: symptom", "line 11: symptom",
		`line 18: gain: "true" is true or false, want a number`,
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, whole := range []string{sample, "---\n" + sample, sample + "...\n", sample + "# the end\n"} {
		if _, err := Read(write("sample"+sdk.DeclarationSuffix, whole), "sample"); err != nil {
			t.Error(err)
		}
	}
	second := strings.Count(sample, "\n") + 1
	for _, tt := range []struct{ file, content, want string }{
		{"other" + sdk.DeclarationSuffix, sample, `other.tunlet.yaml: the tunlet calls itself "sample": rename the file or the tunlet`},
		{"empty" + sdk.DeclarationSuffix, "", "empty.tunlet.yaml: line 1: the file is empty; begin with: attune: tunlet/1"},
		{"comment" + sdk.DeclarationSuffix, "# nothing\n", "comment.tunlet.yaml: line 1: the file is empty; begin with: attune: tunlet/1"},
		{"sample" + sdk.DeclarationSuffix, sample + "---\n" + sample, fmt.Sprintf("line %d: a second document begins here: a file has one tunlet", second)},
		{"sample" + sdk.DeclarationSuffix, sample + "---\na: [\n", "did not find expected node content"},
		{"long" + sdk.DeclarationSuffix, strings.Repeat("#", mostBytes+1), "long.tunlet.yaml: line 1: the file has more than 64 KiB"},
	} {
		if _, err := Read(write(tt.file, tt.content), "as/"+tt.file); err == nil || !strings.HasPrefix(err.Error(), "as/") || !strings.HasSuffix(err.Error(), tt.want) {
			t.Errorf("Read: %v, want %s", err, tt.want)
		}
	}
}

// FuzzParse: whatever the file has, there is a definition or an error.
func FuzzParse(f *testing.F) {
	f.Add(sample)
	f.Add("a: &x [*x]")
	f.Add("attune: {}\nwake: [1]\nchange: [[]]\npoints: [{}]\nobjective: 1\noptions: [a]")
	f.Fuzz(func(t *testing.T, content string) {
		d, err := Parse([]byte(content))
		if (d == nil) == (err == nil) {
			t.Errorf("Parse: %v, %v", d, err)
		}
	})
}
