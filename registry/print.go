package registry

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	jsonv2 "github.com/go-json-experiment/json"
)

// MarshalJSON writes the three tables as one object: env, keys, params, endpoints and, if there are any, entities. It shows whether
// an endpoint has a password, and where it comes from, not the password.
func (r *Registry) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Env       string      `json:"env"`
		Keys      []*Key      `json:"keys"`
		Params    []*Param    `json:"params"`
		Endpoints []*Endpoint `json:"endpoints"`
		Entities  []*Entity   `json:"entities,omitempty"`
	}{r.env, r.keys, r.params, r.endpoints, r.entities})
}

// MarshalJSON writes the settings of the endpoint, without those that it does not have.
func (e *Endpoint) MarshalJSON() ([]byte, error) {
	out := []byte("{")
	for _, s := range settings {
		for _, m := range s.members(e) {
			value, err := json.Marshal(m.value)
			if err != nil {
				return nil, err
			}
			out = append(append(strconv.AppendQuote(out, m.name), ':'), value...)
			out = append(out, ',')
		}
	}
	out[len(out)-1] = '}' // There is a name.
	return out, nil
}

// WriteText writes the three tables for people, with aligned columns. The error comes from w.
func (r *Registry) WriteText(w io.Writer) error {
	// The writer buffers everything until Flush, which returns the first error.
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)

	fmt.Fprintln(tw, "KEY\tNAME\tTYPE\tNULLABLE\tWRITABLE\tFIELD\tDEFAULT")
	for _, k := range r.keys {
		field := "-"
		if k.Field != "" {
			field = k.Field
		}
		fmt.Fprintf(tw, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.Name, k.TypeName(), yes(k.Nullable), yes(k.Writable), field, defaultText(k.Default))
	}

	fmt.Fprintln(tw, "\nPARAM\tNAME\tTYPE\tNULLABLE\tCONTEXT\tOVERRIDE\tDEFAULT")
	for _, p := range r.params {
		fmt.Fprintf(tw, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", p.ID, p.Name, p.Type, yes(p.Nullable), yes(p.Context), yes(p.Override), defaultText(p.Default))
	}

	if len(r.entities) > 0 {
		fmt.Fprintln(tw, "\nENTITY\tID")
	}
	for _, e := range r.entities {
		fmt.Fprintf(tw, "%s\t%s\n", e.Name, e.ID)
	}

	fmt.Fprintf(tw, "\nENDPOINT (%s)\tNAME\tKIND\tADDRESS\t", r.env)
	fmt.Fprintln(tw, "DATABASE\tUSER\tPASSWORD\tMAX INFLIGHT\tCONNECTIONS\tCONNECT TIMEOUT\tREQUEST TIMEOUT\tSETTINGS")
	for _, e := range r.endpoints {
		addr, secret := e.ShownAddr(), e.Policy.Password
		if e.Kind == HTTP {
			secret = e.Service.BearerToken
		}
		user := e.Policy.Username
		if user == "" {
			user = "-"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%d\t%s\t%v\t%d\t%d\t%v\t%v\t%s\n", e.ID, e.Name, e.Kind, addr,
			e.Policy.Database, user, secret, e.Policy.MaxInflight, e.Policy.Connections, e.Policy.ConnectTimeout, e.Policy.RequestTimeout, e.settings())
	}
	return tw.Flush()
}

// ShownAddr returns the address as people read it: a URL without login, database and query, such as "redis+sentinel://h:26379/master". That of a
// plain server has no scheme.
func (e *Endpoint) ShownAddr() string {
	addr, scheme := e.Addr(), "redis"
	if e.TLS != nil {
		scheme = "rediss"
	}
	switch {
	case e.Kind == HTTP && e.Service.TLS:
		return "https://" + addr + e.Service.Path
	case e.Kind == HTTP:
		return addr + e.Service.Path
	case e.Embedded:
		return "embedded"
	case e.Cluster:
		return scheme + "+cluster://" + addr
	case e.Master != "":
		return scheme + "+sentinel://" + addr + "/" + e.Master
	case e.TLS != nil:
		return scheme + "://" + addr
	}
	return addr
}

// settings returns what an endpoint has beyond the other columns, by the names of the tables, or a dash.
func (e *Endpoint) settings() string {
	var list []string
	for _, s := range settings {
		if !s.column && s.has(e) {
			list = append(list, s.short()+"="+s.text(e))
		}
	}
	if list == nil {
		return "-"
	}
	return strings.Join(list, " ")
}

// defaultText returns a default as JSON, or a dash.
func defaultText(value any) string {
	if value == nil {
		return "-"
	}
	text, _ := jsonv2.Marshal(value) // Unlike its elder it leaves "<" as it is; every default can be written.
	return string(text)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
