package serve

import (
	"errors"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/outcome"
	"github.com/rankd/rankd/internal/request"
)

// refusal returns the error of a request that never reaches the engine.
func refusal(c outcome.Class, requestID, detail string) *rankd.Error {
	return &rankd.Error{Class: c, RequestID: requestID, Text: c.Sentence(), Detail: detail}
}

// idOr returns the id that came with a request, or a new one.
func idOr(given []byte) string {
	if len(given) > 0 {
		return string(given)
	}
	return request.NewID()
}

// parse reads the request. The error is an *rankd.Error.
func (q *Query) parse() (err error) {
	s, in := q.service, q.service.engine.Intake()
	g := request.Given{Plan: s.planName(q.Plan), RequestID: string(q.RequestID), Overrides: q.Caller, Unknown: s.unknownMembers}
	if q.Timeout < 0 {
		return in.Refused(&request.Error{RequestID: idOr(q.RequestID), Code: request.CodeInvalid, Detail: "the timeout must be positive", Offset: -1})
	}
	if len(q.User) > 0 {
		if err = g.SetUserID(q.User, s.engine.Registry()); err != nil {
			refused := in.Refused(err)
			refused.RequestID = idOr(q.RequestID)
			return refused
		}
	}
	if q.request, err = in.Parse(q.Body, g); err != nil {
		return q.located(err)
	}
	return nil
}

// planName returns the name of a plan, without a copy if the service has it.
func (s *Service) planName(name []byte) string {
	if p := s.offer.Load().plans[string(name)]; p != nil {
		return p.name
	}
	return string(name)
}

// located returns the error of a body as it would be on stdin, where a syntax error names its line.
func (q *Query) located(err error) error {
	in, refused := q.service.engine.Intake(), (*request.Error)(nil)
	switch {
	case !errors.As(err, &refused) || refused.Code != request.CodeInvalidJSON:
		return err
	case q.Locate != nil:
		return in.Refused(q.Locate(refused))
	}
	return in.Refused(request.Locate(refused, q.Body))
}

// notGranted says what the request asks for without permission, apart from overrides, which the parser checks. It is
// empty if the caller may ask for everything.
func (q *Query) notGranted() (detail string) {
	c, r := q.Caller, &q.request
	if name := q.planAsked(); name != "" && !c.MayPlan(name) {
		return "the caller may not ask for plan " + errtext.Quote(name)
	}
	if g, ok := c.Granted().Lacking(r); ok {
		return g.String() + " is set, and the caller may not set it"
	}
	return ""
}

// planAsked returns the name of the plan that the request asks for, or would run. It is empty if there is none.
func (q *Query) planAsked() string {
	if q.request.Plan != "" {
		return q.request.Plan
	}
	return q.service.offer.Load().own.name
}
