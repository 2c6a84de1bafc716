package httpfront

import "encoding/json"

// plans is GET /v1/plans.
func (c *codec) plans() {
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
	}{Generation: c.front.service.Engine().Generation().Digest, Plans: []plan{}}
	for _, a := range c.front.service.Aliases(c.caller) {
		list.Aliases = append(list.Aliases, alias{a.Name, a.A, a.B, a.BShare})
	}
	for _, p := range c.front.service.Plans(c.caller) {
		if p.Err == nil {
			list.Plans = append(list.Plans, plan{p.Name, p.Info.Digest})
		}
	}
	body, _ := json.Marshal(list) // Strings and numbers have a JSON form.
	c.document(body)
}

// describe is GET /openapi.json.
func (c *codec) describe() { c.document(c.front.openapi) }
