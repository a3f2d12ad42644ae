// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"reflect"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// frame is a tunlet that asks what its author has written for interfaces of its own, such as
// what perprocess.New makes.
type frame interface {
	// Framed is what the author has written, and the optional interfaces that it may have,
	// each of one method.
	Framed() (what any, optional []reflect.Type)
}

// optional are the interfaces that a tunlet may have, each of one method.
var optional = []reflect.Type{
	reflect.TypeFor[Configurer](), reflect.TypeFor[ApplicationStartObserver](), reflect.TypeFor[ApplicationEndObserver](),
	reflect.TypeFor[ProcessStartObserver](), reflect.TypeFor[ProcessEndObserver](), reflect.TypeFor[SampleHandler](),
	reflect.TypeFor[AggregateHandler](), reflect.TypeFor[RecordHandler](), reflect.TypeFor[PointObserver](),
	reflect.TypeFor[Ticker](), reflect.TypeFor[Evaluator](), reflect.TypeFor[ProposalObserver](),
}

// misfit is an error about a method with the name of an optional interface's and another
// signature. Without it, such a method would just never be called.
func misfit(t any, optional []reflect.Type) error {
	v := reflect.ValueOf(t)
	for _, o := range optional {
		want := o.Method(0)
		if got := v.MethodByName(want.Name); got.IsValid() && got.Type() != want.Type {
			return status.Errorf(codes.FailedPrecondition, "method %s of %v is a %v, and would never be called: %v wants a %v",
				want.Name, v.Type(), got.Type(), o, want.Type)
		}
	}
	return nil
}
