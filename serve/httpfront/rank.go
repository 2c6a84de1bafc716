package httpfront

import "encoding/json"

// rank is POST /v1/rank and POST /v1/rank/{plan}.
func (x *exchange) rank() {
	timeout, ok := x.head.timeout()
	if !ok {
		x.refuse(badTimeout)
		return
	}
	if p := x.readBody(); p != nil {
		x.refuse(p)
		return
	}
	q := x.query
	q.Context, q.Caller, q.Plan, q.Body, q.Timeout, q.Locate = x.conn.context, x.caller, x.plan, x.body, timeout, nil
	q.Connection, q.Outbox, q.RequestID, q.TraceParent = x.conn.number, x.conn.outbox, x.head.id(), x.head.trace()
	x.front.service.Ask(q)
	x.dropBody()
	x.wait()
	x.answer(&q.Reply, q.Reply.Class.Status())
}

// plans is GET /v1/plans.
func (x *exchange) plans() {
	type plan struct {
		Name   string `json:"name"`
		Digest string `json:"digest"`
	}
	type alias struct {
		Name   string  `json:"name"`
		A      string  `json:"a"`
		B      string  `json:"b,omitempty"`
		BShare float64 `json:"b_share"`
	}
	list := struct {
		Generation string  `json:"generation"`
		Plans      []plan  `json:"plans"`
		Aliases    []alias `json:"aliases,omitempty"`
	}{Generation: x.front.service.Engine().Generation().Digest, Plans: []plan{}}
	for _, a := range x.front.service.Aliases(x.caller) {
		list.Aliases = append(list.Aliases, alias{a.Name, a.A, a.B, a.BShare})
	}
	for _, p := range x.front.service.Plans(x.caller) {
		if p.Err == nil {
			list.Plans = append(list.Plans, plan{p.Name, p.Info.Digest})
		}
	}
	body, _ := json.Marshal(list) // Strings and numbers have a JSON form.
	x.document(body)
}

// describe is GET /openapi.json.
func (x *exchange) describe() { x.document(x.front.openapi) }
