// SPDX-License-Identifier: Apache-2.0

package channel

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/analyzer/session"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Session takes what the channels of its controllers carry. *session.Session
// is one; see there for what its methods do.
type Session interface {
	EventsConnected(hello *attunev1.StreamHello)
	Publish(controller string, m *attunev1.PublishRequest)
	ControllerConnected(hello *attunev1.ControllerHello, c session.Controller)
	ControllerGone(id string, c session.Controller, parted bool)
	Manage(id string, m *attunev1.ManageRequest)
	ControllerRefused(host, why string)
	// Done is closed when the session takes no more messages.
	Done() <-chan struct{}
	// Ended is what its controllers are told then, a gRPC status as those of
	// Route.
	Ended() error
}

// Hello is what both channels begin with.
type Hello interface {
	GetControllerId() string
	GetHost() string
	GetRegistration() string
	GetJob() *attunev1.Job
	GetUser() *attunev1.Principal
	GetProtocol() uint32
}

// Route finds the session that a controller names. ctx carries who it is (see
// the package authn) and ends with the channel. The error is for the
// controller: a gRPC status, of the meanings that ManagementService gives them.
type Route func(ctx context.Context, hello Hello) (Session, error)

// To returns the route of an Analyzer that has one session only.
func To(s *session.Session) Route {
	return func(context.Context, Hello) (Session, error) { return only{s}, nil }
}

// only is a session whose end is all that there is to say.
type only struct{ *session.Session }

// Ended implements Session.
func (only) Ended() error { return status.Error(codes.Aborted, "the session has ended") }

// find checks a hello and finds its session.
func (r Route) find(ctx context.Context, hello Hello) (Session, error) {
	if hello.GetControllerId() == "" {
		return nil, status.Error(codes.InvalidArgument, "the first message must be a hello with a controller id")
	}
	session, err := r(ctx, hello)
	if err != nil {
		return nil, err
	}
	if theirs := hello.GetProtocol(); theirs != attunev1.Protocol {
		err := status.Errorf(codes.Unimplemented, "the controller speaks protocol %d, the Analyzer protocol %d: "+
			"install the same version of Attune on both, the %s is older", theirs, attunev1.Protocol, older(theirs))
		session.ControllerRefused(hello.GetHost(), status.Convert(err).Message())
		return nil, err
	}
	return session, nil
}

// older says who speaks the older protocol, the Analyzer or a controller.
func older(controllers uint32) string {
	if controllers < attunev1.Protocol {
		return "controller's"
	}
	return "Analyzer's"
}
