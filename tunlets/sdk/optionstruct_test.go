// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

type structOptions struct {
	Batch  int64         `default:"64"     doc:"lines written at once" max:"4096"        min:"1" option:"batch"`
	Period time.Duration `default:"250ms"  doc:"how often it looks"    option:"period"`
	Memory uint64        `doc:"of the job" option:"memory"`
	Share  float64       `default:"0.5"    doc:"of the time"           option:"share"`
	Dry    bool          `default:"false"  doc:"only look"             option:"dry"`
	Mode   string        `choices:"a,b"    default:"b"                 doc:"how it goes" option:"mode"`
	Symbol string        `doc:"a variable" option:"symbol"             required:"true"`

	seen int
}

func TestOptionsOfAStruct(t *testing.T) {
	want := []sdk.Option{
		{Name: "batch", Type: sdk.IntegerOption, Default: "64", Min: "1", Max: "4096", Description: "lines written at once"},
		{Name: "period", Type: sdk.DurationOption, Default: "250ms", Description: "how often it looks"},
		{Name: "memory", Type: sdk.BytesOption, Description: "of the job"},
		{Name: "share", Type: sdk.NumberOption, Default: "0.5", Description: "of the time"},
		{Name: "dry", Type: sdk.BooleanOption, Default: "false", Description: "only look"},
		{Name: "mode", Type: sdk.TextOption, Default: "b", Choices: []string{"a", "b"}, Description: "how it goes"},
		{Name: "symbol", Type: sdk.TextOption, Description: "a variable", Required: true},
	}
	options := sdk.OptionsOf[structOptions]()
	if diff := cmp.Diff(want, options); diff != "" {
		t.Error(diff)
	}
	settled, err := sdk.SettleOptions(options, map[string]string{"symbol": "batch", "memory": "64MiB", "dry": "true"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := sdk.ReadOptions[structOptions](settled)
	if err != nil {
		t.Fatal(err)
	}
	if want := (structOptions{64, 250 * time.Millisecond, 64 << 20, 0.5, true, "b", "batch", 0}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestValuesThatDoNotFitTheirFields(t *testing.T) {
	_, err := sdk.ReadOptions[structOptions](map[string]string{"batch": "many", "period": "5", "memory": "much", "share": "NaN"})
	for _, want := range []string{`option batch: "many" is not a whole number`, "option period", "option memory", "option share"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
}

// What can be no option is found by the first call of Describe, so by each test.
func TestWhatIsNoOption(t *testing.T) {
	for name, options := range map[string]func() []sdk.Option{
		"no struct": sdk.OptionsOf[int],
		"another type": sdk.OptionsOf[struct {
			Names []string `option:"names"`
		}],
		"not exported": sdk.OptionsOf[struct {
			batch int64 `option:"batch"`
		}],
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			options()
		})
	}
}
