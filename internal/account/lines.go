// SPDX-License-Identifier: Apache-2.0

package account

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// JSON returns the row as a line of JSON.
func (r Row) JSON() ([]byte, error) {
	text, err := json.Marshal(r)
	return append(text, '\n'), err
}

// CSV returns the row as a line of comma-separated values, in the order of RowFields; what was
// not measured is empty.
func (r Row) CSV() ([]byte, error) {
	var cells []string
	for _, v := range reflect.ValueOf(r).Fields() {
		switch {
		case v.Kind() == reflect.Pointer && v.IsNil():
			cells = append(cells, "")
			continue
		case v.Kind() == reflect.Pointer:
			v = v.Elem()
		}
		if v.CanFloat() {
			cells = append(cells, strconv.FormatFloat(v.Float(), 'f', -1, 64))
		} else {
			cells = append(cells, fmt.Sprint(v.Interface()))
		}
	}
	return []byte(strings.Join(cells, ",") + "\n"), nil
}

// RowNames returns the first line of a file of comma-separated values.
func RowNames() []byte {
	var names []string
	for _, f := range RowFields() {
		names = append(names, f.Name)
	}
	return []byte(strings.Join(names, ",") + "\n")
}
