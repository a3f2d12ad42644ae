// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/attune-hpc/attune/internal/confine"
)

// Argument is the only one of a program that is to call [Serve].
const Argument = "read-for-attune"

// maxMessage bounds a message: an environment with its variables is 2 MiB at most, and
// little of it is told.
const maxMessage = 4 << 20

// memoryGoal is where the collector of a helper tries hard, and memoryLimit where the
// helper ends: some times what any operation needs.
const (
	memoryGoal  = 128 << 20
	memoryLimit = 512 << 20
)

// Serve does operations, one after the other, that the Pool of the process that has
// started this one asks for, until in ends. It bounds what this process takes.
func Serve(in io.Reader, out io.Writer, operations ...Served) error {
	if err := confine.Bound(memoryGoal, memoryLimit); err != nil {
		return err
	}
	known := make(map[string]Served, len(operations))
	for _, o := range operations {
		known[o.operation()] = o
	}
	for {
		var asked request
		if err := receive(in, &asked); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("receive a question: %w", err)
		}
		answer, err := json.RawMessage(nil), error(nil)
		if o, ok := known[asked.Operation]; ok {
			answer, err = o.serve(context.Background(), asked.Question)
		} else {
			err = fmt.Errorf("operation %q is unknown", asked.Operation)
		}
		if err := send(out, replyOf(answer, err)); err != nil {
			return fmt.Errorf("send an answer: %w", err)
		}
	}
}

// send writes a message behind its length.
func send(to io.Writer, message any) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if len(text) > maxMessage {
		return fmt.Errorf("message of %d bytes is too long", len(text))
	}
	_, err = to.Write(append(binary.NativeEndian.AppendUint32(nil, uint32(len(text))), text...))
	return err
}

// receive reads what send has written.
func receive(from io.Reader, message any) error {
	var head [4]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return err
	}
	length := binary.NativeEndian.Uint32(head[:])
	if length > maxMessage {
		return fmt.Errorf("message of %d bytes is too long", length)
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(from, text); err != nil {
		return fmt.Errorf("message is cut off: %w", err)
	}
	return json.Unmarshal(text, message)
}
