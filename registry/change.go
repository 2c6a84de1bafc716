package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"reflect"
)

// Equal reports whether two registries have the same tables, the environment and the name included. Tables say the same if their passwords come from
// the same places.
func (r *Registry) Equal(other *Registry) bool { return reflect.DeepEqual(r, other) }

// Digest returns the hex SHA-256 of what the tables say, without passwords.
func (r *Registry) Digest() string {
	text, _ := r.MarshalJSON() // Tables that were read have nothing that JSON lacks.
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// ChangedEndpoint returns the id of an endpoint that r and older do not have alike, "" if there is none.
func (r *Registry) ChangedEndpoint(older *Registry) string {
	for _, e := range r.endpoints {
		if before, _ := older.Endpoint(e.ID); !reflect.DeepEqual(before, e) {
			return e.ID
		}
	}
	for _, e := range older.endpoints {
		if _, there := r.Endpoint(e.ID); !there {
			return e.ID
		}
	}
	return ""
}

// WithEndpointsOf returns a copy of r that shares the endpoints of other, and has none of its own.
func (r *Registry) WithEndpointsOf(other *Registry) *Registry {
	changed := *r
	changed.endpoints, changed.endpointByID = other.endpoints, other.endpointByID
	return &changed
}

// SharesEndpoints reports whether both are one registry, or WithEndpointsOf has given them the same endpoints. An engine has its
// connections by them.
func (r *Registry) SharesEndpoints(other *Registry) bool {
	return r == other || len(r.endpoints) == len(other.endpoints) && (len(r.endpoints) == 0 || &r.endpoints[0] == &other.endpoints[0])
}
