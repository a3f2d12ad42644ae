// SPDX-License-Identifier: Apache-2.0

package embed

import (
	"strings"

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

// forServices allows what package registry does with its buckets, but not to
// delete them as a whole.
func forServices() *nats.Permissions {
	publish := []string{"attune.>", "_INBOX.>", "$JS.API.INFO"}
	for _, bucket := range registry.Buckets() {
		stream := "KV_" + bucket
		publish = append(publish, "$KV."+bucket+".>")
		for _, verb := range []string{
			"STREAM.CREATE.%", "STREAM.INFO.%", "STREAM.PURGE.%", "STREAM.MSG.GET.%",
			"DIRECT.GET.%", "DIRECT.GET.%.>",
			"CONSUMER.CREATE.%", "CONSUMER.CREATE.%.>", "CONSUMER.INFO.%.>", "CONSUMER.DELETE.%.>",
		} {
			publish = append(publish, "$JS.API."+strings.ReplaceAll(verb, "%", stream))
		}
	}
	return &nats.Permissions{
		Publish:   &nats.SubjectPermission{Allow: publish, Deny: []string{registry.Changes + ">"}},
		Subscribe: &nats.SubjectPermission{Allow: []string{"attune.>", "_INBOX.>"}},
	}
}
