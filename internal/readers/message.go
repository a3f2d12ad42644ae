// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/attune-hpc/attune/internal/procid"
)

// maxMessage bounds a message: an environment with its variables is 2 MiB at most, and
// little of it is told.
const maxMessage = 4 << 20

// request goes to a helper, reply comes back.
type request struct {
	Operation string          `json:"operation"`
	Question  json.RawMessage `json:"question"`
}

type reply struct {
	Answer json.RawMessage `json:"answer,omitempty"`
	Error  string          `json:"error,omitempty"`
	Gone   bool            `json:"gone,omitempty"`  // the error is procid.ErrGone
	Unfit  bool            `json:"unfit,omitempty"` // the error is why the helper reads nothing
}

func replyOf(answer json.RawMessage, err error) reply {
	if err != nil {
		return reply{Error: err.Error(), Gone: errors.Is(err, procid.ErrGone)}
	}
	return reply{Answer: answer}
}

func (r reply) err() error {
	switch {
	case r.Gone:
		return procid.ErrGone
	case r.Error != "":
		return errors.New(r.Error)
	}
	return nil
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
