// SPDX-License-Identifier: Apache-2.0

package embed

import (
	"strings"
	"time"

	nats "github.com/nats-io/nats-server/v2/server"

	"github.com/attune-hpc/attune/internal/registry"
)

// forPersons allows to ask which Analyzers there are. Answers go to inboxes of
// the library's own name, where persons may listen; those of services have
// another one.
func forPersons() *nats.Permissions {
	return &nats.Permissions{
		Publish:   &nats.SubjectPermission{Allow: []string{registry.SubjectAnalyzers}},
		Subscribe: &nats.SubjectPermission{Allow: []string{"_INBOX.>"}},
	}
}

const (
	// answersOfNode bounds the parts of a node's answer to one question.
	answersOfNode = 10_000
	// answerWithin is for how long a node may answer.
	answerWithin = time.Minute
)

// forNode allows a node what package registry does for it, under its own name.
// It has no access to JetStream at all: whoever asks that says where the answer
// goes, and it does not ask whether they may write there.
func forNode(name string) *nats.Permissions {
	publish, subscribe := registry.NodeSubjects(name)
	return &nats.Permissions{
		Publish:   &nats.SubjectPermission{Allow: publish},
		Subscribe: &nats.SubjectPermission{Allow: subscribe},
		Response:  &nats.ResponsePermission{MaxMsgs: answersOfNode, Expires: answerWithin},
	}
}

// forAnalyzers allows what package registry does with its buckets, but neither
// to delete them as a whole nor to say that something has changed.
func forAnalyzers() *nats.Permissions {
	publish := []string{"attune.>", "_INBOX.>"}
	for _, bucket := range registry.Buckets() {
		stream := "KV_" + bucket
		publish = append(publish, "$KV."+bucket+".>", "$JS.FC."+stream+".>")
		for _, api := range []string{"$JS.API.", "$JS." + registry.Domain + ".API."} {
			publish = append(publish, api+"INFO", api+"$KV."+bucket+".>")
			for _, request := range requests {
				publish = append(publish, api+strings.ReplaceAll(request, "STREAM_NAME", stream))
			}
		}
	}
	return &nats.Permissions{
		Publish:   &nats.SubjectPermission{Allow: publish, Deny: []string{registry.Changes + ">"}},
		Subscribe: &nats.SubjectPermission{Allow: []string{"attune.>", "_INBOX.>"}},
	}
}

// requests to JetStream that Analyzers make.
var requests = []string{
	"STREAM.CREATE.STREAM_NAME", "STREAM.INFO.STREAM_NAME", "STREAM.PURGE.STREAM_NAME",
	"STREAM.MSG.GET.STREAM_NAME", "DIRECT.GET.STREAM_NAME", "DIRECT.GET.STREAM_NAME.>",
	"CONSUMER.CREATE.STREAM_NAME", "CONSUMER.CREATE.STREAM_NAME.>",
	"CONSUMER.INFO.STREAM_NAME.>", "CONSUMER.DELETE.STREAM_NAME.>",
}
