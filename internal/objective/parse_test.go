// SPDX-License-Identifier: Apache-2.0

package objective

import (
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	tests := []struct {
		text string
		want Spec // without pattern and point
		find string
		unit string
	}{
		{"output:^step", Spec{Name: "^step", Kind: Output}, "^step", "1/s"},
		{"steps=output:^step", Spec{Name: "steps", Kind: Output}, "^step", "1/s"},
		{"more output:done", Spec{Name: "done", Kind: Output}, "done", "1/s"},
		{`output:fps=([\d.]+)`, Spec{Name: `fps=([\d.]+)`, Kind: Output, Meaning: Value}, `fps=([\d.]+)`, ""},
		{`rate output:frame= *(\d+)`, Spec{Name: `frame= *(\d+)`, Kind: Output, Meaning: Rate}, `frame= *(\d+)`, "1/s"},
		{`atoms per second = sum file:log.lammps:Loop time .* (\d+) atoms`, Spec{
			Name: "atoms per second", Kind: File, Path: "log.lammps", Meaning: Sum,
		}, `Loop time .* (\d+) atoms`, "1/s"},
		{"file:a b:point:x", Spec{Name: "a b:point:x", Kind: File, Path: "a b"}, "point:x", "1/s"},
		{"less output:command:file:x", Spec{Name: "command:file:x", Lower: true, Kind: Output}, "command:file:x", "1/s"},
		{"p99=less output:(x)", Spec{Name: "p99", Lower: true, Kind: Output, Meaning: Value}, "(x)", ""},
		{"less command:./latency --p99", Spec{
			Name: "./latency --p99", Lower: true, Kind: Command, Command: "./latency --p99", Meaning: Value, Every: time.Second,
		}, "", ""},
		{"queue=every 5s rate command:wc -l <done", Spec{
			Name: "queue", Kind: Command, Command: "wc -l <done", Meaning: Rate, Every: 5 * time.Second,
		}, "", "1/s"},
		{"requests=point:redis-server:processCommand", Spec{Name: "requests", Kind: Point}, "", "1/s"},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			got, err := Parse(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			found := ""
			if got.Pattern != nil {
				found = got.Pattern.String()
			}
			o := got.Objective()
			if (got.Point != nil) != (got.Kind == Point) || found != tt.find || o.GetUnit() != tt.unit || o.GetName() != tt.want.Name || o.GetDescription() == "" {
				t.Errorf("point %v, pattern %q, objective %v", got.Point, found, o)
			}
			got.Point, got.Pattern = nil, nil
			if got != tt.want {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	tests := []struct{ text, want string }{
		{"", "output:, file:, point: or command:"},
		{"fps", "output:, file:, point: or command:"},
		{"outputs:x", "output:, file:, point: or command:"},
		{"output:", "nothing stands behind output:"},
		{"command: ", "nothing stands behind command:"},
		{"output:(", "regular expression"},
		{"output:.*", "empty line"},
		{"rate output:step", "parentheses"},
		{"rate value output:(x)", "exclude each other"},
		{"fast output:x", `"fast" is no word`},
		{"less p99=command:x", `write "p99=less …"`},
		{"file:x", "file:PATH:REGEX"},
		{"file::x", "file:PATH:REGEX"},
		{"every 2s output:x", "every is for commands"},
		{"every 2 command:x", "unit"},
		{"every command:x", "unit"},
		{"every 1ms command:x", "100ms to 1m0s"},
		{"point::x", "OBJECT:FUNCTION"},
		{"point:f take arg0", "leave take"},
		{"point:f%time", "leave take"},
		{"point:f sum arg0", "leave take"},
		{"point:f by arg0", "leave take"},
		{"value point:f", "leave value out"},
		{"output:\xff", "UTF-8"},
		{"output:" + strings.Repeat("x", maxText), "at most"},
		{"==point:t", `"=" is no word of an objective`},
	}
	for _, tt := range tests {
		if s, err := Parse(tt.text); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.40q: %+v, %v, want %q", tt.text, s, err, tt.want)
		}
	}
}

// FuzzParse: whatever is written is understood or refused, and what is understood has a name.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"output:^step", "a=less every 2s command:x", "point:f%return", "rate file:x:(y)"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err == nil && (s.Name == "" || len([]rune(s.Name)) > maxName || (s.Pattern != nil) != (s.Kind == Output || s.Kind == File)) {
			t.Errorf("%q is %+v", text, s)
		}
	})
}
