package registry

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/rankd/rankd/internal/excerpt"
)

// KeyID identifies a column. Ids are stable and never reused. Zero means none.
type KeyID uint32

// IDKey is the key of the row id itself, which is not a column.
const IDKey KeyID = 1

// ParamID identifies a request parameter. Zero means none.
type ParamID uint32

// Type is the type of a key or a parameter.
type Type uint8

// The types of keys and parameters. Only a key can be a FeatureBundle.
const (
	Int Type = iota + 1
	Float
	String
	Bool
	FeatureBundle
)

// typeNames are the names of the types in the tables.
var typeNames = [...]string{Int: "int", Float: "float", String: "string", Bool: "bool", FeatureBundle: "feature_bundle"}

// String returns the type's name in the tables: "int", "feature_bundle".
func (t Type) String() string {
	if t == 0 || int(t) >= len(typeNames) {
		return "type " + strconv.Itoa(int(t))
	}
	return typeNames[t]
}

// MarshalText implements encoding.TextMarshaler.
func (t Type) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *Type) UnmarshalText(name []byte) error {
	i := slices.Index(typeNames[:], string(name))
	if i < 1 {
		return fmt.Errorf("unknown type %s", excerpt.Quote(string(name)))
	}
	*t = Type(i)
	return nil
}

// Key describes one column. Immutable once built; any goroutine.
type Key struct {
	ID       KeyID   `json:"key_id"`
	Name     string  `json:"name"`
	Type     Type    `json:"type"`
	Nullable bool    `json:"nullable"`
	Writable bool    `json:"writable"`
	Default  float64 `json:"default"` // of a float key that is not nullable; otherwise 0
}

// Param describes one request parameter. Immutable once built; any goroutine.
type Param struct {
	ID       ParamID `json:"param_id"`
	Name     string  `json:"name"`
	Type     Type    `json:"type"`
	Nullable bool    `json:"nullable"`
}

// EndpointKind says which protocol an endpoint speaks.
type EndpointKind string

// The kinds of endpoint.
const (
	Redis EndpointKind = "redis"
	HTTP  EndpointKind = "http"
)

// Endpoint is where I/O goes. Immutable once built; any goroutine.
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

// Addr returns "host:port", with brackets around an IPv6 host.
func (e *Endpoint) Addr() string { return net.JoinHostPort(e.Host, strconv.Itoa(e.Port)) }

// Policy bounds the use of an endpoint. Immutable once built; any goroutine.
type Policy struct {
	MaxInflight    int           // commands sent and unanswered, per endpoint
	Connections    int           // connections of one client
	ConnectTimeout time.Duration // of one connection attempt
	RequestTimeout time.Duration // of one command, from the call to its reply
	Username       string        // AUTH, with Password
	Password       string        // AUTH; empty means none
	Database       int           // SELECT; 0 means none
}

// The policy of an endpoint whose table leaves fields out.
const (
	DefaultMaxInflight    = 1024
	DefaultConnections    = 1
	DefaultConnectTimeout = time.Second
	DefaultRequestTimeout = time.Second
)

// A Registry holds the three tables of one environment. Immutable once built;
// any goroutine.
type Registry struct {
	env       string
	keys      []*Key      // ascending by id
	params    []*Param    // ascending by id
	endpoints []*Endpoint // ascending by id; endpoints[i].Index == i

	keyByID      map[KeyID]*Key
	keyByName    map[string]*Key
	paramByID    map[ParamID]*Param
	paramByName  map[string]*Param
	endpointByID map[string]*Endpoint
}

// Env returns the environment: "dev", "test" or "prod".
func (r *Registry) Env() string { return r.env }

// Key returns the key with that id.
func (r *Registry) Key(id KeyID) (*Key, bool) { return lookup(r.keyByID, id) }

// KeyByName returns the key with that name, case-sensitive.
func (r *Registry) KeyByName(name string) (*Key, bool) { return lookup(r.keyByName, name) }

// Keys returns all keys, ascending by id. Callers must not change the slice.
func (r *Registry) Keys() []*Key { return r.keys }

// Param returns the parameter with that id.
func (r *Registry) Param(id ParamID) (*Param, bool) { return lookup(r.paramByID, id) }

// ParamByName returns the parameter with that name, case-sensitive.
func (r *Registry) ParamByName(name string) (*Param, bool) { return lookup(r.paramByName, name) }

// Params returns all parameters, ascending by id. Callers must not change the slice.
func (r *Registry) Params() []*Param { return r.params }

// Endpoint returns the endpoint with that id.
func (r *Registry) Endpoint(id string) (*Endpoint, bool) { return lookup(r.endpointByID, id) }

// Endpoints returns all endpoints, ascending by id. Position i has Index i. Callers must not change
// the slice.
func (r *Registry) Endpoints() []*Endpoint { return r.endpoints }

// WithRedis returns a copy of r that has every endpoint of kind redis at host:port and none
// embedded. Policies stay. Only plans loaded with the copy use the new address.
func (r *Registry) WithRedis(host string, port int) *Registry {
	return r.withAddr(host, port, func(e *Endpoint) bool { return e.Kind == Redis })
}

// WithEmbedded returns a copy of r that has every embedded endpoint at host:port, the address of
// the Redis inside the process. The other endpoints stay.
func (r *Registry) WithEmbedded(host string, port int) *Registry {
	return r.withAddr(host, port, func(e *Endpoint) bool { return e.Embedded })
}

// HasEmbedded reports whether some endpoint uses the Redis inside the process.
func (r *Registry) HasEmbedded() bool {
	for _, e := range r.endpoints {
		if e.Embedded {
			return true
		}
	}
	return false
}

func (r *Registry) withAddr(host string, port int, moves func(*Endpoint) bool) *Registry {
	moved := *r
	moved.endpoints = make([]*Endpoint, len(r.endpoints))
	moved.endpointByID = make(map[string]*Endpoint, len(r.endpoints))
	for i, e := range r.endpoints {
		if moves(e) {
			there := *e
			there.Host, there.Port, there.Embedded = host, port, false
			e = &there
		}
		moved.endpoints[i], moved.endpointByID[e.ID] = e, e
	}
	return &moved
}

func lookup[K comparable, V any](m map[K]*V, k K) (*V, bool) {
	v, ok := m[k]
	return v, ok
}
