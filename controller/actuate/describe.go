// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"fmt"
	"strconv"
	"strings"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// describeCall writes a call as in C.
func describeCall(call *attunev1.CallFunction) string {
	arguments := make([]string, 0, len(call.GetArguments()))
	for _, argument := range call.GetArguments() {
		arguments = append(arguments, describeValue(argument))
	}
	return fmt.Sprintf("%s(%s)", call.GetSymbol(), strings.Join(arguments, ", "))
}

// describeValue writes a value as in C; "nothing" for none.
func describeValue(value *attunev1.Value) string {
	switch v := value.GetKind().(type) {
	case *attunev1.Value_Integer:
		return strconv.FormatInt(v.Integer, 10)
	case *attunev1.Value_Unsigned:
		return strconv.FormatUint(v.Unsigned, 10)
	case *attunev1.Value_Real:
		return strconv.FormatFloat(v.Real, 'g', -1, 64)
	case *attunev1.Value_Text:
		return strconv.Quote(v.Text)
	case *attunev1.Value_Truth:
		return strconv.FormatBool(v.Truth)
	}
	return "nothing"
}
