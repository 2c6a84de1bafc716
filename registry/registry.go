// Package registry holds what plans refer to by number or id: keys (columns),
// params (values that a request may override) and endpoints (where I/O goes).
// The tables are TOML files; the defaults are embedded in the binary.
package registry

import "time"

// KeyID identifies a column. Stable, never reused. Zero is no key.
type KeyID uint32

// IDKey is the key of the row id itself, which is not a column.
const IDKey KeyID = 1

// ParamID identifies a request parameter. Zero is no parameter.
type ParamID uint32

// Type is the type of a key or a parameter.
type Type uint8

// The types of keys and parameters.
const (
	Int Type = iota + 1
	Float
	String
	Bool
	FeatureBundle
)

// Key describes one column. Immutable once built.
type Key struct {
	ID       KeyID
	Name     string
	Type     Type
	Nullable bool
	Writable bool
	Default  float64 // of a float key that is not nullable
}

// Param describes one request parameter. Immutable once built.
type Param struct {
	ID       ParamID
	Name     string
	Type     Type
	Nullable bool
}

// EndpointKind says which protocol an endpoint speaks.
type EndpointKind string

// The kinds of endpoint.
const (
	Redis EndpointKind = "redis"
	HTTP  EndpointKind = "http"
)

// Endpoint is where I/O goes. Immutable once built.
type Endpoint struct {
	Index    int // position in Endpoints(), for tables indexed by endpoint
	ID       string
	Name     string
	Kind     EndpointKind
	Host     string
	Port     int
	Embedded bool // dev only: served by the Redis inside the process unless overridden
	Policy   Policy
}

// Policy bounds the use of an endpoint.
type Policy struct {
	MaxInflight    int           // commands sent and unanswered, per endpoint
	Connections    int           // connections of one client
	ConnectTimeout time.Duration // of one connection attempt
	RequestTimeout time.Duration // of one command, from the call to its reply
	Username       string        // AUTH, with Password
	Password       string        // AUTH; empty means none
	Database       int           // SELECT; 0 means none
}

// A Registry holds the three tables of one environment. Immutable once built;
// any goroutine.
type Registry struct{}

// Key returns the key with that id.
func (r *Registry) Key(id KeyID) (*Key, bool) { panic("stub") }

// KeyByName returns the key with that name.
func (r *Registry) KeyByName(name string) (*Key, bool) { panic("stub") }

// Keys returns all keys, ascending by id. Not to be changed.
func (r *Registry) Keys() []*Key { panic("stub") }

// Param returns the parameter with that id.
func (r *Registry) Param(id ParamID) (*Param, bool) { panic("stub") }

// ParamByName returns the parameter with that name, case-sensitive.
func (r *Registry) ParamByName(name string) (*Param, bool) { panic("stub") }

// Params returns all parameters, ascending by id. Not to be changed.
func (r *Registry) Params() []*Param { panic("stub") }

// Endpoint returns the endpoint with that id.
func (r *Registry) Endpoint(id string) (*Endpoint, bool) { panic("stub") }

// Endpoints returns all endpoints, ascending by id; position i has Index i.
func (r *Registry) Endpoints() []*Endpoint { panic("stub") }
