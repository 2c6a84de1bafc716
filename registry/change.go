package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
)

// Equal reports whether two registries have the same tables, including environment and name. Passwords are equal if
// they come from the same places.
func (r *Registry) Equal(other *Registry) bool { return reflect.DeepEqual(r, other) }

// Digest returns the hex SHA-256 of what the tables say. All of it counts by value, except secrets: a password or a
// token counts by the file or the variable that has it, and so does the value of a header that comes from there.
func (r *Registry) Digest() string {
	hash := sha256.New()
	text, _ := json.Marshal([]any{r.env, r.keys, r.params, r.entities}) // Tables that were read always have a JSON form.
	hash.Write(text)
	for _, e := range r.endpoints {
		for _, s := range settings {
			fmt.Fprintf(hash, "\n%s %q", s.name, s.fingerprint(e))
		}
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// WithEndpointsOf returns a copy of r that shares the endpoints of other, and has none of its own.
func (r *Registry) WithEndpointsOf(other *Registry) *Registry {
	changed := *r
	changed.endpoints, changed.endpointByID, changed.family = other.endpoints, other.endpointByID, other.family
	return &changed
}

// Succeeds reports whether an endpoint of r is the same as the endpoint of older with its id.
func (r *Registry) Succeeds(older *Registry, id string) bool {
	e, ok := r.Endpoint(id)
	was, had := older.Endpoint(id)
	if !ok || !had {
		return false
	}
	now := *e
	now.Index = was.Index
	return reflect.DeepEqual(&now, was)
}

// Adopt returns a copy of r for an engine that has the endpoints of last. Unchanged endpoints are taken from last.
// Each other one gets an Index from place, and its passwords are read if secrets is true. The error names the
// endpoint.
func (r *Registry) Adopt(last *Registry, stays func(id string) bool, place func() int, secrets bool) (*Registry, error) {
	adopted := *r
	adopted.family = last.family
	adopted.endpoints, adopted.endpointByID = make([]*Endpoint, len(r.endpoints)), make(map[string]*Endpoint, len(r.endpoints))
	for i, e := range r.endpoints {
		own := last.endpointByID[e.ID]
		if own == nil || !stays(e.ID) {
			made := *e
			made.Index = place()
			if secrets {
				if err := made.readSecrets(); err != nil {
					return nil, err
				}
			}
			own = &made
		}
		adopted.endpoints[i], adopted.endpointByID[e.ID] = own, own
	}
	return &adopted, nil
}

// SharesEndpoints reports whether an engine that has the endpoints of one registry may run plans of the other:
// WithEndpointsOf or Adopt has connected the two, or they are the same.
func (r *Registry) SharesEndpoints(other *Registry) bool {
	return r == other || r.family != nil && r.family == other.family
}

// Has reports whether the endpoint is one of r.
func (r *Registry) Has(e *Endpoint) bool { return r.endpointByID[e.ID] == e }

// EndpointAt returns the endpoint with that Index, nil if r has none.
func (r *Registry) EndpointAt(index int) *Endpoint {
	for _, e := range r.endpoints {
		if e.Index == index {
			return e
		}
	}
	return nil
}
