package registry

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/rankd/rankd/internal/errtext"
)

// KeyID identifies a column. Ids are stable and never reused. Zero means none.
type KeyID uint32

// IDKey is the key of the row id itself, which is not a column.
const IDKey KeyID = 1

// ParamID identifies a request parameter. Zero means none.
type ParamID uint32

// Type is the type of a key or a parameter.
type Type uint8

// The types of keys and parameters. Only a key can be a FeatureBundle, a StringSet or a Vector, only a parameter an
// IntList, a FloatList or a StringList.
const (
	Int   Type = iota + 1 // int64
	Float                 // float64, finite
	String
	Bool
	FeatureBundle // a type of the original engine, which no task fills
	StringSet
	IntList
	StringList
	Vector    // of float32, as many as Key.Dims
	FloatList // of float64 with nulls
)

// Bounds of what a key or a parameter has.
const (
	// VectorDimsMax is the most numbers that a vector has.
	VectorDimsMax = 4096
	// ListItemsMax is the most items of a list that a request brings: enough for what a user has seen, but not for a catalog.
	ListItemsMax = 1 << 16
)

// typeNames are the names of the types in the tables.
var typeNames = [...]string{
	Int: "int", Float: "float", String: "string", Bool: "bool", FeatureBundle: "feature_bundle", StringSet: "string_set",
	IntList: "int_list", StringList: "string_list", Vector: "vector", FloatList: "float_list",
}

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
		return fmt.Errorf("unknown type %s", errtext.Quote(string(name)))
	}
	*t = Type(i)
	return nil
}

// Key describes one column. Immutable once built; any goroutine.
type Key struct {
	ID       KeyID  `json:"key_id"`
	Name     string `json:"name"`
	Type     Type   `json:"type"`
	Dims     int    `json:"dims,omitempty"` // of a Vector: how many numbers each has, 1 to VectorDimsMax
	Nullable bool   `json:"nullable"`
	Writable bool   `json:"writable"`
	// Private says that the log of served rows leaves the column out, unless a plan lists it.
	Private bool `json:"private,omitempty"`
	// Field is the field of a Redis hash that has the value, or its place in a JSON document: a member's name, or a
	// JSON pointer if it begins with "/". It is the key's name unless the table has another one. The row id has none.
	Field string `json:"field,omitempty"`
	// Default is the value that a task writes for a missing field, if its node says so: an int64, a float64, a
	// string, a bool or a []string, as Type says. Nil means that there is none.
	Default any `json:"default"`
}

// TypeName returns the key's type as its table has it: "int", "vector(64)".
func (k *Key) TypeName() string { return typeName(k.Type, k.Dims) }

// TypeName returns the parameter's type as its table has it.
func (p *Param) TypeName() string { return typeName(p.Type, p.Dims) }

func typeName(t Type, dims int) string {
	if t == Vector {
		return fmt.Sprintf("vector(%d)", dims)
	}
	return t.String()
}

// Param describes one request parameter. Immutable once built; any goroutine.
type Param struct {
	ID       ParamID `json:"param_id"`
	Name     string  `json:"name"`
	Type     Type    `json:"type"`
	Dims     int     `json:"dims,omitempty"` // of a Vector, as in Key
	Nullable bool    `json:"nullable"`
	// Context says that the context of a request may set the value, and Override that param_overrides may set it. At
	// least one of them is true.
	Context  bool `json:"context"`
	Override bool `json:"override"`
	// Default is the value in a request without one: an int64, a float64, a string or a bool. Nil: the value is then
	// null.
	Default any `json:"default,omitempty"`
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
	Index    int // for tables indexed by endpoint: the position in Endpoints(), unless the engine has reloaded its tables
	ID       string
	Name     string
	Kind     EndpointKind
	Host     string  // empty for a unix socket
	Port     int     // 0 for a unix socket
	Socket   string  // the path of a unix socket; empty for TCP
	Cluster  bool    // the server is a node of a Redis Cluster
	Others   string  // further nodes, or sentinels, as "host:port" separated by commas
	Master   string  // the name of the master, if host, port and Others are sentinels; empty: they are not
	TLS      *TLS    // nil: plain
	Embedded bool    // dev only: served by the Redis inside the process unless overridden
	Service  Service // of kind http
	Policy   Policy
}

// Addr returns "host:port", with brackets around an IPv6 host, or "unix:/path" for a unix socket. For a Redis Cluster
// it is a list, "host:port,host:port".
func (e *Endpoint) Addr() string { return withOthers(addr(e.Host, e.Port, e.Socket), e.Others) }

// ClusterProblem returns why the endpoint cannot be a Redis Cluster, or a master that sentinels know. It returns nil
// if the endpoint is neither, or may be one. It also reports settings for replicas and sentinels that do not fit.
func (e *Endpoint) ClusterProblem() error {
	switch {
	case e.Policy.Sentinel != Sentinel{} && e.Master == "":
		return errSentinel
	case e.Policy.Replicas != Replicas{} && !e.Cluster:
		return errReplicas
	case e.Policy.Replicas.ReadFrom != ReadMaster && e.Policy.Cache.Mode.Tracked():
		return errTrackedRead
	case e.Master != "" && (e.Kind != Redis || e.Socket != "" || e.Embedded || e.Cluster || !validMaster(e.Master)):
		return errors.New("a master that sentinels know is of kind redis, without a unix socket, and neither embedded nor a Redis Cluster; its name has letters, digits, dots, - and _")
	case !e.Cluster:
		return nil
	case e.Kind != Redis || e.Socket != "" || e.Embedded:
		return errors.New("a Redis Cluster is of kind redis, has no unix socket, and is not embedded")
	case e.Policy.Database != 0:
		return errCluster
	}
	return nil
}

// move makes s the server of the endpoint. It keeps the endpoint's user and password if s names
// neither, and its database if s names none.
func (e *Endpoint) move(s Server) {
	e.Host, e.Port, e.Socket, e.Cluster, e.Others, e.Master, e.TLS = s.Host, s.Port, s.Socket, s.Cluster, s.Others, s.Master, s.TLS
	if s.Username != "" || !s.Password.IsZero() {
		e.Policy.Username, e.Policy.Password = s.Username, s.Password
	}
	if s.HasDatabase {
		e.Policy.Database = s.Database
	}
	if (s.Replicas != Replicas{}) {
		e.Policy.Replicas = s.Replicas
	}
	if (s.Sentinel != Sentinel{}) {
		e.Policy.Sentinel = s.Sentinel
	}
}

// Policy bounds the use of an endpoint. Immutable once built; any goroutine.
type Policy struct {
	MaxInflight    int           // commands or HTTP requests sent and unanswered, per endpoint
	Connections    int           // connections of one client
	ConnectTimeout time.Duration // of one connection attempt
	RequestTimeout time.Duration // of an HTTP request; for Redis, of the time without a byte while it owes replies
	OnError        string        // "fail": no plan's policy makes its nodes lenient; empty: the policy decides
	TimeoutPercent int           // in place of the share that a plan's policy gives its lenient nodes; 0: none
	Username       string        // AUTH, with Password
	Password       Secret        // AUTH; Registry.ReadSecrets fills it in
	Database       int           // SELECT; 0 means none
	Cache          Cache
	Replicas       Replicas
	Sentinel       Sentinel // of a master that sentinels know
}

// Cache says whether an engine keeps in memory what it read from a Redis. Immutable once built; any goroutine.
type Cache struct {
	Mode     CacheMode
	MaxBytes int           // of all that is kept, with its index
	MaxAge   time.Duration // after which a value is read again
	// Of modes that are Tracked alone:
	MaxSilence time.Duration // after which a silent server is no longer trusted
	Required   bool          // nothing is kept unless the server reports changes
}

// CacheMode says how long values that were read may be reused.
type CacheMode string

// The modes of a cache.
const (
	CacheOff CacheMode = ""    // each request reads; "off" in a table
	CacheTTL CacheMode = "ttl" // until MaxAge has passed, whatever happens to the key meanwhile
	// CacheBroadcast: until MaxAge has passed, or the server reports that the key has changed. See resp.Tracker.
	CacheBroadcast CacheMode = "broadcast"
	// CacheTrack: the same, but the server reports only keys that this engine has read. See resp.Tracker.TrackReads.
	CacheTrack CacheMode = "track"
)

// Tracked reports whether the server reports changes in this mode.
func (m CacheMode) Tracked() bool { return m == CacheBroadcast || m == CacheTrack }

// The policy of an endpoint whose table leaves fields out.
const (
	DefaultMaxInflight     = 1024
	DefaultConnections     = 1  // of kind redis: one connection carries many commands at once
	DefaultHTTPConnections = 16 // of kind http: one connection carries one request at a time
	DefaultConnectTimeout  = time.Second
	DefaultRequestTimeout  = time.Second
	DefaultCacheMaxBytes   = 64 << 20
	DefaultCacheMaxAge     = time.Second // of CacheTTL
	DefaultBroadcastMaxAge = time.Minute // of modes that are Tracked
	DefaultMaxSilence      = time.Second
)

// A Registry holds the three tables of one environment. Immutable once built;
// any goroutine.
type Registry struct {
	env       string
	name      string      // says in errors where the tables are
	keys      []*Key      // ascending by id
	params    []*Param    // ascending by id
	defaults  []*Param    // those with a default
	endpoints []*Endpoint // ascending by id
	family    *int        // the same in each registry whose endpoints an engine may have together: see SharesEndpoints
	entities  []*Entity   // ascending by name
	user      *Entity     // the one of UserEntity; nil: undeclared

	keyByID      map[KeyID]*Key
	keyByName    map[string]*Key
	paramByID    map[ParamID]*Param
	paramByName  map[string]*Param
	endpointByID map[string]*Endpoint
}

// Env returns the environment: "dev", "test" or "prod".
func (r *Registry) Env() string { return r.env }

// Name says where the tables are, as in "the built-in registry". Empty means unknown.
func (r *Registry) Name() string { return r.name }

// Named returns a copy of r with that name, for errors.
func (r *Registry) Named(name string) *Registry {
	named := *r
	named.name = name
	return &named
}

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

// Defaults returns the parameters that have a default, ascending by id. Callers must not change the slice.
func (r *Registry) Defaults() []*Param { return r.defaults }

// Endpoint returns the endpoint with that id.
func (r *Registry) Endpoint(id string) (*Endpoint, bool) { return lookup(r.endpointByID, id) }

// Endpoints returns all endpoints, ascending by id. Callers must not change
// the slice.
func (r *Registry) Endpoints() []*Endpoint { return r.endpoints }

// WithRedis returns a copy of r that has every endpoint of kind redis at the server and none embedded. Settings that
// the server does not name stay: user and password together, the database, all bounds. Settings for replicas and
// sentinels go if the server has none. Only plans loaded with the
// copy use the new server. RedisProblem says which servers an engine refuses.
func (r *Registry) WithRedis(s Server) *Registry {
	return r.change(func(e *Endpoint) {
		if e.Kind == Redis {
			e.move(s)
			e.Embedded = false
			if !s.Cluster {
				e.Policy.Replicas = Replicas{}
			}
			if s.Master == "" {
				e.Policy.Sentinel = Sentinel{}
			}
		}
	})
}

// RedisProblem returns why an engine refuses the server as that of WithRedis: an endpoint would send a password in clear
// text that its table sends through TLS. A password that the server itself names, or a unix socket, is not refused.
func (r *Registry) RedisProblem(s Server) error {
	for _, e := range r.endpoints {
		if whose := e.exposed(s); whose != "" {
			return fmt.Errorf("endpoint %s: the table sends %s through TLS, and the address of --redis has no TLS: "+
				"it must begin with rediss, or name a password itself", errtext.Text(e.ID), whose)
		}
	}
	return nil
}

// RedisElsewhere returns how the tables contradict a server that is meant for all environments: they have an endpoint of
// kind redis at another address, or in another database. It returns nil if they agree.
func (r *Registry) RedisElsewhere(s Server) error {
	for _, e := range r.endpoints {
		moved := *e
		moved.move(s)
		if here, there := e.place(), moved.place(); e.Kind == Redis && here != there {
			return fmt.Errorf("%s is not where endpoints.%s.toml has endpoint %s, which is %s; a Redis for all environments must agree with the tables: "+
				"put it under [env.dev], or choose one with [env.%s] or --redis", there, r.env, errtext.Text(e.ID), here, r.env)
		}
	}
	return nil
}

// place returns where a Redis is, with the database.
func (e *Endpoint) place() string {
	if e.Policy.Database == 0 {
		return e.ShownAddr()
	}
	return fmt.Sprintf("%s database %d", e.ShownAddr(), e.Policy.Database)
}

// exposed names the password that would leave in clear text if the endpoint moved to s. It is empty if none would.
func (e *Endpoint) exposed(s Server) string {
	switch {
	case e.TLS == nil || s.TLS != nil || s.Socket != "":
	case !e.Policy.Password.IsZero() && s.Password.IsZero():
		return "its password"
	case s.Master != "" && !e.Policy.Sentinel.Plain && !e.Policy.Sentinel.Password.IsZero() && s.Sentinel == Sentinel{}:
		return "the password of its sentinels"
	}
	return ""
}

// WithCache returns a copy of r whose Redis endpoints all have that cache, with the defaults of its mode.
func (r *Registry) WithCache(mode CacheMode) *Registry {
	return r.change(func(e *Endpoint) {
		if e.Kind == Redis {
			e.Policy.Cache = defaultCache(mode)
		}
	})
}

// defaultCache returns the cache of an endpoint whose table has only the mode.
func defaultCache(mode CacheMode) Cache {
	switch mode {
	case CacheTTL:
		return Cache{Mode: mode, MaxBytes: DefaultCacheMaxBytes, MaxAge: DefaultCacheMaxAge}
	case CacheBroadcast, CacheTrack:
		return Cache{Mode: mode, MaxBytes: DefaultCacheMaxBytes, MaxAge: DefaultBroadcastMaxAge, MaxSilence: DefaultMaxSilence}
	default:
		return Cache{}
	}
}

// WithEmbedded returns a copy of r that has every embedded endpoint at the server, which is the
// Redis inside the process. The other endpoints stay.
func (r *Registry) WithEmbedded(s Server) *Registry {
	return r.change(func(e *Endpoint) {
		if e.Embedded {
			e.move(s)
			e.Embedded = false
		}
	})
}

// ReadSecrets returns a copy of r whose passwords, bearer tokens and headers are read from their files and environment
// variables.
// The error names the endpoint and the source of the first that cannot be read.
func (r *Registry) ReadSecrets() (*Registry, error) {
	var failed error
	read := r.change(func(e *Endpoint) {
		if err := e.readSecrets(); err != nil && failed == nil {
			failed = err
		}
	})
	return read, failed
}

// readSecrets reads passwords, bearer tokens and headers, and looks at the files of certificates. The error names the endpoint and the source.
func (e *Endpoint) readSecrets() error {
	password, err := e.Policy.Password.Read()
	e.Policy.Password = password
	if err == nil {
		e.Policy.Sentinel.Password, err = e.Policy.Sentinel.Password.read("sentinel_password")
	}
	if err == nil {
		err = e.Service.readSecrets()
	}
	if err == nil {
		err = e.TLS.Check()
	}
	if err != nil {
		return fmt.Errorf("endpoint %s: %w", errtext.Text(e.ID), err)
	}
	return nil
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

// change returns a copy of r whose endpoints are copies, too, changed by a function.
func (r *Registry) change(endpoint func(*Endpoint)) *Registry {
	changed := *r
	changed.family = new(int) // An engine knows either all copies or none.
	changed.endpoints = make([]*Endpoint, len(r.endpoints))
	changed.endpointByID = make(map[string]*Endpoint, len(r.endpoints))
	for i, e := range r.endpoints {
		e := *e
		endpoint(&e)
		changed.endpoints[i], changed.endpointByID[e.ID] = &e, &e
	}
	return &changed
}

func lookup[K comparable, V any](m map[K]*V, k K) (*V, bool) {
	v, ok := m[k]
	return v, ok
}
