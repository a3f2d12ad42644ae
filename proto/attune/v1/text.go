// SPDX-License-Identifier: Apache-2.0

package attunev1

import (
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Encode encodes a message as encode does, and with [ValidText] only where that fails: most
// texts are UTF-8, and the copy costs more than the encoding.
func Encode[M proto.Message, T any](message M, encode func(M) (T, error)) (T, error) {
	encoded, err := encode(message)
	if err != nil {
		return encode(ValidText(message))
	}
	return encoded, nil
}

// ValidText returns a copy of a message whose texts are UTF-8: names of files, symbols
// and programs may be any bytes, and a message with such a text cannot be encoded. Keys
// of maps are left as they are; none is such a name.
func ValidText[M proto.Message](message M) M {
	valid := proto.CloneOf(message)
	_ = protorange.Range(valid.ProtoReflect(), func(path protopath.Values) error { // only what is called here fails
		last, holder := path.Index(-1), path.Index(-2).Value
		text, is := last.Value.Interface().(string)
		if !is {
			return nil
		}
		value := protoreflect.ValueOfString(strings.ToValidUTF8(text, "?"))
		switch last.Step.Kind() {
		case protopath.FieldAccessStep:
			holder.Message().Set(last.Step.FieldDescriptor(), value)
		case protopath.ListIndexStep:
			holder.List().Set(last.Step.ListIndex(), value)
		case protopath.MapIndexStep:
			holder.Map().Set(last.Step.MapIndex(), value)
		}
		return nil
	})
	return valid
}
