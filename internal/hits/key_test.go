// SPDX-License-Identifier: Apache-2.0

package hits

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestKey(t *testing.T) {
	stack := strings.Join([]string{"p:_start", "p:main", "libc.so.6:qsort", "p:less", "p:key", "p:hash"}, FrameSeparator)
	for name, test := range map[string]struct {
		key    Key
		signed bool
		show   string
		plain  any
	}{
		"number":          {Key{Has: true, Value: 7}, false, "7", uint64(7)},
		"address":         {Key{Has: true, Value: 1 << 40}, false, "0x10000000000", uint64(1 << 40)},
		"negative":        {Key{Has: true, Value: 1<<64 - 2}, true, "-2", int64(-2)},
		"string":          {Key{Has: true, Kind: KeyString, Text: "GET"}, false, `"GET"`, "GET"},
		"empty string":    {Key{Has: true, Kind: KeyString}, false, `""`, ""},
		"cut":             {Key{Has: true, Kind: KeyString, Text: "long", Cut: true}, false, `"long"…`, "long…"},
		"hostile string":  {Key{Has: true, Kind: KeyString, Text: "\x1b[2J\xff\n\u202e"}, false, `"\x1b[2J\xff\n\u202e"`, "\x1b[2J\uFFFD\n\u202e"},
		"stack":           {Key{Has: true, Kind: KeyStack, Text: stack}, false, "p:hash < key < less < libc.so.6:qsort < p:main < 1 more", "p:_start;p:main;libc.so.6:qsort;p:less;p:key;p:hash"},
		"stack, cut":      {Key{Has: true, Kind: KeyStack, Text: "p:f", Cut: true}, false, "p:f", "[deeper];p:f"},
		"name with a ; *": {Key{Has: true, Kind: KeyStack, Text: "p:struct{a;b}.f"}, false, "p:struct{a;b}.f", "p:struct{a:b}.f"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.key.Show(test.signed); got != test.show {
				t.Errorf("shown as %s, want %s", got, test.show)
			}
			if diff := cmp.Diff(test.plain, test.key.Plain(test.signed)); diff != "" {
				t.Error(diff)
			}
			a := (&Sum{Count: 1}).Aggregate(1, 2, test.key)
			if got := KeyOf(a); got != test.key {
				t.Errorf("from an aggregate %+v, want %+v", got, test.key)
			}
		})
	}
	if a := (&Sum{}).Aggregate(1, 2, Key{}); KeyOf(a) != (Key{}) || a.GetKeyText() != nil {
		t.Errorf("no key: %v", a)
	}
}
