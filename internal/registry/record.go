// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Keys of attune_orders begin with what they are.
const (
	keyRegistration = "registration."
	keyOwner        = "owner."
	keyRevocation   = "revoked."
)

// validID is what NATS takes in a key and Attune in an id.
var validID = regexp.MustCompile(`^[A-Za-z0-9_=-]+(\.[A-Za-z0-9_=-]+)*$`)

// checkID returns an error for what cannot be an id.
func checkID(kind, id string) error {
	if !validID.MatchString(id) {
		return fmt.Errorf("%s id %q: it has to be of A-Z a-z 0-9 _ = - and dots between them", kind, id)
	}
	return nil
}

// decode returns the record that a key of a bucket has.
func decode(bucket, key string, value []byte) (proto.Message, error) {
	var record proto.Message
	switch {
	case bucket == bucketOrders && strings.HasPrefix(key, keyRegistration):
		record = new(attunev1.Registration)
	case bucket == bucketOrders && strings.HasPrefix(key, keyOwner):
		record = new(attunev1.OwnerRecord)
	case bucket == bucketOrders && strings.HasPrefix(key, keyRevocation):
		record = new(attunev1.Revocation)
	case bucket == bucketAnalyzers:
		record = new(attunev1.AnalyzerRecord)
	case bucket == bucketSessions:
		record = new(attunev1.SessionRecord)
	default:
		return nil, errors.New("nothing of this name is known")
	}
	return record, proto.Unmarshal(value, record)
}

// encode returns the bytes of a record, or why the registry will not take it.
func (c *conn) encode(record proto.Message) ([]byte, error) {
	value, err := proto.Marshal(record)
	if err != nil {
		return nil, err
	}
	// Nothing is known of the server before the first connection.
	if most := c.nats.MaxPayload(); most > 0 && int64(len(value)) > most-headroom {
		return nil, &TooLargeError{string(record.ProtoReflect().Descriptor().Name()), len(value), int(most - headroom)}
	}
	return value, nil
}

// TooLargeError says that the registry takes no record of this size.
type TooLargeError struct {
	Record      string // its kind
	Bytes, Most int
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s of %d bytes: the registry takes %d (max_payload)", e.Record, e.Bytes, e.Most)
}

// headroom is for the headers of a message.
const headroom = 4096
