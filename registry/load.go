package registry

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/fileio"
)

//go:embed tables/*.toml
var defaultTables embed.FS

// environments lists the known environments.
var environments = [...]string{"dev", "test", "prod"}

// Names appear in requests and responses as names of members.
var validName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Limits of the tables. They catch mistakes, such as seconds in place of milliseconds or a digit too many.
const (
	maxInflightLimit = 1 << 20
	connectionsLimit = 1024
	timeoutLimit     = time.Hour
	cacheBytesLeast  = 1 << 20
	cacheBytesLimit  = 1 << 38
	databaseLimit    = 1 << 16
	tableMaxBytes    = 1 << 20 // of one file
)

// problemsShown bounds how many problems an error lists. The error counts the rest.
const problemsShown = 20

// idName is the name of the row id in responses.
const idName = "id"

// BuiltIn is the name of the registry of the built-in tables.
const BuiltIn = "the built-in registry"

// Default returns the registry of the built-in tables for env.
func Default(env string) (*Registry, error) {
	r, err := Load(DefaultTables(), env)
	if err != nil {
		return nil, err
	}
	return r.Named(BuiltIn), nil
}

// DefaultTables returns the folder of the built-in tables.
func DefaultTables() fs.FS {
	tables, err := fs.Sub(defaultTables, "tables")
	if err != nil {
		panic(err) // The name is a valid one.
	}
	return tables
}

// Load reads keys.toml, params.toml, endpoints.<env>.toml and, if they are there, entities.toml and params.<env>.toml from the folder tables. env is "dev",
// "test" or "prod". The error joins all problems, one per line, each with file and entry.
func Load(tables fs.FS, env string) (*Registry, error) {
	if !slices.Contains(environments[:], env) {
		return nil, fmt.Errorf("registry: unknown environment %s, expected one of %s",
			errtext.Quote(env), strings.Join(environments[:], ", "))
	}
	l := loader{tables: tables}
	r := &Registry{env: env, family: new(int)}
	l.readLock()
	l.keys(r)
	l.params(r)
	l.constants(r)
	for _, p := range r.params {
		if p.Default != nil {
			r.defaults = append(r.defaults, p)
		}
	}
	l.readEntities(r)
	l.endpoints(r)
	if err := l.failure(); err != nil {
		return nil, err
	}
	return r, nil
}

// failure joins the problems.
func (l *loader) failure() error {
	if more := l.found - len(l.problems); more > 0 {
		l.problems = append(l.problems, fmt.Errorf("and %d more problems", more))
	}
	return errors.Join(l.problems...)
}

// InFolder returns an error of Load whose lines each begin with a name of the folder.
func InFolder(folder string, err error) error {
	joined, several := err.(interface{ Unwrap() []error })
	if !several {
		return fmt.Errorf("%s: %w", folder, err)
	}
	problems := slices.Clone(joined.Unwrap())
	for i, problem := range problems {
		problems[i] = fmt.Errorf("%s: %w", folder, problem)
	}
	return errors.Join(problems...)
}

// loader gathers the problems of all files.
type loader struct {
	tables   fs.FS
	found    int     // problems
	problems []error // the first problemsShown of them
	lock     lockFile
	locking  bool // gives ids to rows without one in the lock
}

func (l *loader) problem(file, entry, format string, args ...any) {
	if l.found++; l.found > problemsShown {
		return
	}
	where := errtext.Name(file)
	if entry != "" {
		where += ": " + entry
	}
	l.problems = append(l.problems, fmt.Errorf("%s: "+format, append([]any{where}, args...)...))
}

// decode reads file into rows, a pointer to a struct, and returns the text. It returns false after it has reported a problem.
func (l *loader) decode(file string, rows any) (text []byte, ok bool) {
	text, err := fileio.Read(l.tables, file, tableMaxBytes)
	if err != nil {
		l.problem(file, "", "%w", err)
		return nil, false
	}
	return text, l.unmarshal(file, text, rows)
}

// unmarshal is decode for a text that has been read.
func (l *loader) unmarshal(file string, text []byte, rows any) bool {
	before := l.found
	atLine := func(line int, format string, args ...any) {
		l.problem(file, fmt.Sprintf("line %d", line), format, args...)
	}
	checkShape(text, rows, atLine)
	if l.found > before {
		return false
	}
	err := toml.Unmarshal(text, rows)
	var malformed *toml.DecodeError
	switch {
	case errors.As(err, &malformed):
		line, _ := malformed.Position()
		atLine(line, "%s", errtext.Text(strings.TrimPrefix(malformed.Error(), "toml: ")))
	case err != nil:
		l.problem(file, "", "%w", err)
	}
	return err == nil
}

// entries checks ids and names, which the entries of every table have: each must be present, well
// formed and unique.
type entries[ID comparable] struct {
	*loader
	file  string
	what  string // "key", "param", "endpoint"
	ids   map[ID]bool
	names map[string]bool
}

func newEntries[ID comparable](l *loader, file, what string) *entries[ID] {
	return &entries[ID]{l, file, what, make(map[ID]bool), make(map[string]bool)}
}

// label names an entry by its id, or by its position if the id is missing.
func (e *entries[ID]) label(i int, id *ID) string {
	if id == nil {
		return fmt.Sprintf("%s at position %d", e.what, i+1)
	}
	return e.what + " " + errtext.Text(fmt.Sprint(*id))
}

// identify checks id and name. It returns true if the id is new.
func (e *entries[ID]) identify(label string, id *ID, name string) bool {
	switch {
	case name == "":
		e.problem(e.file, label, "name is missing")
	case !validName.MatchString(name):
		e.problem(e.file, label, "name %s must consist of letters, digits and _", errtext.Quote(name))
	case e.names[name]:
		e.problem(e.file, label, "name %s is taken already", errtext.Quote(name))
	}
	e.names[name] = true

	switch {
	case id == nil:
		e.problem(e.file, label, "id is missing")
		return false
	case e.ids[*id]:
		e.problem(e.file, label, "id is taken already")
		return false
	}
	e.ids[*id] = true
	return true
}

// numericID checks the range of a key or param id.
func (l *loader) numericID(file, label string, id *int64) {
	if id != nil && (*id < 1 || *id > math.MaxUint32) {
		l.problem(file, label, "id must be 1 to %d", uint32(math.MaxUint32))
	}
}

// typeOf returns one of the allowed types, and for vector(64) also the number, or 0 after reporting a problem.
func (l *loader) typeOf(file, label, name string, allowed ...Type) (_ Type, dims int) {
	if text, ok := strings.CutPrefix(name, "vector("); ok {
		text, ok = strings.CutSuffix(text, ")")
		n, err := strconv.Atoi(text)
		if !ok || err != nil || n < 1 || n > VectorDimsMax {
			l.problem(file, label, "type %s: a vector has 1 to %d numbers, as in vector(64)", errtext.Quote(name), VectorDimsMax)
			return 0, 0
		}
		return Vector, n
	}
	return l.typeNamed(file, label, name, allowed...), 0
}

// typeNamed returns the type with that name, or 0 after reporting a problem.
func (l *loader) typeNamed(file, label, name string, allowed ...Type) Type {
	known := make([]string, len(allowed))
	for i, t := range allowed {
		known[i] = t.String()
		if t == Vector { // whose name is not whole
			known[i] += "(n)"
		} else if known[i] == name {
			return t
		}
	}
	l.problem(file, label, "unknown type %s, expected one of %s", errtext.Quote(name), strings.Join(known, ", "))
	return 0
}

// endpoints reads the endpoints of every environment that has a file and compares them. It keeps
// the endpoints of r's environment.
func (l *loader) endpoints(r *Registry) {
	files, err := fs.Glob(l.tables, "endpoints.*.toml")
	if err != nil {
		l.problem("endpoints.*.toml", "", "%w", err)
		return
	}
	own := endpointsFile(r.env)
	if !slices.Contains(files, own) {
		l.problem(own, "", "no such file")
		return
	}
	tables := make(map[string][]*Endpoint)
	for _, file := range files {
		env := strings.TrimSuffix(strings.TrimPrefix(file, "endpoints."), ".toml")
		if !slices.Contains(environments[:], env) {
			l.problem(file, "", "unknown environment %s, expected one of %s",
				errtext.Quote(env), strings.Join(environments[:], ", "))
			continue
		}
		if list, ok := l.endpointTable(file, env); ok {
			tables[env] = list
		}
	}
	list, ok := tables[r.env]
	if !ok {
		return
	}
	for _, env := range environments {
		if other, ok := tables[env]; ok && env != r.env {
			l.agree(own, list, endpointsFile(env), other)
		}
	}
	r.endpoints = list
	r.endpointByID = make(map[string]*Endpoint, len(list))
	for i, endpoint := range list {
		endpoint.Index = i
		r.endpointByID[endpoint.ID] = endpoint
	}
}

func endpointsFile(env string) string { return "endpoints." + env + ".toml" }

// endpointRow is one [[endpoint]]. Pointers tell 0 from absent.
type endpointRow struct {
	ID            *string     `toml:"id"`
	Name          string      `toml:"name"`
	Kind          string      `toml:"kind"`
	URL           *string     `toml:"url"`
	Host          *string     `toml:"host"`
	Port          *int64      `toml:"port"`
	Embedded      bool        `toml:"embedded"`
	Cluster       bool        `toml:"cluster"`
	Master        string      `toml:"master"`
	TLS           bool        `toml:"tls"`
	TLSCA         string      `toml:"tls_ca"`
	TLSCert       string      `toml:"tls_cert"`
	TLSKey        string      `toml:"tls_key"`
	TLSServerName string      `toml:"tls_server_name"`
	SentinelTLS   *bool       `toml:"sentinel_tls"`
	Header        []headerRow `toml:"header"`
	Policy        struct {
		MaxInflight      *int64 `toml:"max_inflight"`
		Connections      *int64 `toml:"connections"`
		ConnectTimeoutMS *int64 `toml:"connect_timeout_ms"`
		RequestTimeoutMS *int64 `toml:"request_timeout_ms"`
		Username         string `toml:"username"`
		Password         string `toml:"password"`
		PasswordFile     string `toml:"password_file"`
		PasswordEnv      string `toml:"password_env"`
		Database         *int64 `toml:"database"`
		Cache            string `toml:"cache"`
		CacheMaxBytes    *int64 `toml:"cache_max_bytes"`
		CacheMaxAgeMS    *int64 `toml:"cache_max_age_ms"`
		CacheRequire     bool   `toml:"cache_require"`
		MaxSilenceMS     *int64 `toml:"tracking_max_silence_ms"`
		ReadFrom         string `toml:"read_from"`
		ReplicaMaxLag    *int64 `toml:"replica_max_lag_bytes"`

		SentinelUsername     string `toml:"sentinel_username"`
		SentinelPassword     string `toml:"sentinel_password"`
		SentinelPasswordFile string `toml:"sentinel_password_file"`
		SentinelPasswordEnv  string `toml:"sentinel_password_env"`

		BearerToken     string `toml:"bearer_token"`
		BearerTokenFile string `toml:"bearer_token_file"`
		BearerTokenEnv  string `toml:"bearer_token_env"`
		MaxRequestBytes *int64 `toml:"max_request_bytes"`
		MaxAnswerBytes  *int64 `toml:"max_answer_bytes"`
	} `toml:"policy"`
}

// endpointTable reads one file and returns its endpoints, ascending by id. It returns false if the file cannot be
// decoded. It reports problems of single entries; the other entries can still be compared.
func (l *loader) endpointTable(file, env string) ([]*Endpoint, bool) {
	var table struct {
		Endpoint []endpointRow `toml:"endpoint"`
	}
	if _, ok := l.decode(file, &table); !ok {
		return nil, false
	}
	e := newEntries[string](l, file, "endpoint")
	var list []*Endpoint
	for i := range table.Endpoint {
		row := &table.Endpoint[i]
		label := e.label(i, row.ID)
		server := l.server(file, label, row)
		l.checkEndpoint(file, label, env, row, &server)
		endpoint := &Endpoint{
			Name: row.Name, Kind: EndpointKind(row.Kind), Embedded: row.Embedded,
			Service: l.service(file, label, row), Policy: l.policy(file, label, row),
		}
		endpoint.move(server)
		endpoint.Cluster, endpoint.Master = endpoint.Cluster || row.Cluster, cmp.Or(row.Master, endpoint.Master)
		endpoint.TLS = l.tls(file, label, row, endpoint)
		l.replicas(file, label, row, endpoint)
		l.sentinel(file, label, row, endpoint)
		if err := endpoint.ClusterProblem(); err != nil {
			field := "cluster"
			if endpoint.Master != "" {
				field = "master"
			}
			l.problem(file, label, field+": %w", err)
		}
		if e.identify(label, row.ID, row.Name) {
			endpoint.ID = *row.ID
			list = append(list, endpoint)
		}
	}
	slices.SortFunc(list, func(a, b *Endpoint) int { return cmp.Compare(a.ID, b.ID) })
	return list, true
}

// tls returns how the endpoint is reached through TLS, nil without TLS.
func (l *loader) tls(file, label string, row *endpointRow, e *Endpoint) *TLS {
	given := TLS{CA: row.TLSCA, Cert: row.TLSCert, Key: row.TLSKey, ServerName: row.TLSServerName}
	t := e.TLS
	switch {
	case !row.TLS && t == nil && given != TLS{}:
		l.problem(file, label, "tls_ca, tls_cert, tls_key and tls_server_name need tls = true")
	case !row.TLS && t == nil:
		return nil
	case t != nil && *t != TLS{} && given != TLS{}:
		l.problem(file, label, "tls: the url has such fields, too")
	case e.Kind != Redis || e.Socket != "" || e.Embedded:
		l.problem(file, label, "tls is only for kind %s, without a unix socket and not embedded", Redis)
	case t == nil || *t == TLS{}:
		t = &given
	}
	if err := t.check(); err != nil {
		l.problem(file, label, "%w", err)
	}
	return t
}

// replicas reads which nodes of a Redis Cluster answer reads.
func (l *loader) replicas(file, label string, row *endpointRow, e *Endpoint) {
	given, r := &row.Policy, &e.Policy.Replicas
	if given.ReadFrom != "" {
		if r.ReadFrom != ReadMaster {
			l.problem(file, label, "policy.read_from: the url has it, too")
		}
		var err error
		if r.ReadFrom, err = parseReadFrom(given.ReadFrom); err != nil {
			l.problem(file, label, "policy.%w", err)
		}
	}
	if lag := given.ReplicaMaxLag; lag != nil {
		if r.MaxLagBytes > 0 {
			l.problem(file, label, "policy.replica_max_lag_bytes: the url has it, too")
		}
		if r.MaxLagBytes = *lag; *lag < 1 || *lag > replicaLagLimit {
			l.problem(file, label, "policy.%w", errReplicaLag)
		}
	}
	if err := r.check(); err != nil {
		l.problem(file, label, "policy.%w", err)
	}
}

// sentinel reads how sentinels are reached.
func (l *loader) sentinel(file, label string, row *endpointRow, e *Endpoint) {
	given, s := &row.Policy, &e.Policy.Sentinel
	if given.SentinelUsername != "" {
		if s.Username != "" {
			l.problem(file, label, "policy.sentinel_username: the url names one, too")
		}
		s.Username = given.SentinelUsername
	}
	for _, secret := range []Secret{NewSecret(given.SentinelPassword), {File: given.SentinelPasswordFile}, {Env: given.SentinelPasswordEnv}} {
		if err := s.setPassword(secret); err != nil {
			l.problem(file, label, "policy.sentinel_password: %w", err)
		}
	}
	if through := row.SentinelTLS; through != nil {
		err := errSentinel
		if e.Master != "" {
			err = s.setTLS(*through, e.TLS != nil)
		}
		if err != nil {
			l.problem(file, label, "%w", err)
		}
	}
	if err := s.check(); err != nil {
		l.problem(file, label, "%w", err)
	}
}

func (l *loader) checkEndpoint(file, label, env string, row *endpointRow, server *Server) {
	if row.ID != nil && (!strings.HasPrefix(*row.ID, "ep_") || !validName.MatchString(*row.ID)) {
		l.problem(file, label, `id must start with "ep_" and consist of letters, digits and _`)
	}
	kind := EndpointKind(row.Kind)
	if kind != Redis && kind != HTTP {
		l.problem(file, label, "unknown kind %s, expected one of %s, %s", errtext.Quote(row.Kind), Redis, HTTP)
	}
	login := server.Username != "" || !server.Password.IsZero()
	if kind != Redis && (login || server.HasDatabase) {
		l.problem(file, label, "policy.username, password and database are only for kind %s", Redis)
	}
	if row.Embedded {
		switch {
		case env != "dev":
			l.problem(file, label, "only dev has an embedded Redis")
		case kind != Redis:
			l.problem(file, label, "only kind %s can be embedded", Redis)
		case login || server.Database != 0:
			l.problem(file, label, "the embedded Redis has neither password nor databases")
		}
	}
}

// server returns where the endpoint is and who logs in there: from url, or else from host, port and policy. A value
// that both give is a problem. No problem quotes a text that may hold a password.
func (l *loader) server(file, label string, row *endpointRow) (s Server) {
	switch {
	case row.URL == nil:
		s.Host, s.Port = l.hostPort(file, label, row)
	case EndpointKind(row.Kind) == HTTP:
		u, err := parseServiceURL(*row.URL)
		if err != nil {
			l.problem(file, label, "url: %w", err)
		}
		s.Host, s.Port = u.host, u.port
	default:
		var err error
		switch s, err = ParseServer(*row.URL); {
		case err != nil:
			l.problem(file, label, "url: %w", err)
		case !strings.Contains(*row.URL, ":/"):
			l.problem(file, label, "url begins with redis://, redis+cluster://, redis+sentinel:// or unix://, with rediss for TLS; host and port are fields of their own")
		}
	}
	if row.URL != nil && (row.Host != nil || row.Port != nil || row.Embedded) {
		l.problem(file, label, "url excludes host, port and embedded")
	}
	policy := &row.Policy
	if policy.Username != "" {
		if s.Username != "" {
			l.problem(file, label, "policy.username: the url names a user, too")
		}
		s.Username = policy.Username
	}
	for _, given := range []struct {
		field  string
		secret Secret
	}{
		{"password", NewSecret(policy.Password)}, {"password_file", Secret{File: policy.PasswordFile}},
		{"password_env", Secret{Env: policy.PasswordEnv}},
	} {
		if given.secret.IsZero() {
			continue
		}
		if !s.Password.IsZero() {
			l.problem(file, label, "policy.%s: the password is given twice", given.field)
		}
		s.Password = given.secret
	}
	if s.Username != "" && s.Password.IsZero() {
		l.problem(file, label, "policy.username needs a policy.password, password_file or password_env")
	}
	if database := policy.Database; database != nil {
		if s.HasDatabase {
			l.problem(file, label, "policy.database: the url names a database, too")
		}
		if *database < 0 || *database > databaseLimit {
			l.problem(file, label, "policy.database must be 0 to %d, not %d", databaseLimit, *database)
		}
		s.Database, s.HasDatabase = int(*database), true
	}
	return s
}

// hostPort checks the fields host and port.
func (l *loader) hostPort(file, label string, row *endpointRow) (host string, port int) {
	if row.Host != nil {
		host = *row.Host
	}
	switch {
	case strings.ContainsAny(host, "@/"): // a URL, which may hold a password
		l.problem(file, label, "host must be a host name or an IP address; a URL belongs in url")
	case !ValidHost(host):
		l.problem(file, label, "host %s must be a host name or an IP address", errtext.Quote(host))
	}
	number := int64(0)
	if row.Port != nil {
		number = *row.Port
	}
	if number < 1 || number > math.MaxUint16 {
		l.problem(file, label, "port must be 1 to 65535, not %d", number)
	}
	return host, int(number)
}

// policy fills in the defaults and checks the bounds.
func (l *loader) policy(file, label string, row *endpointRow) Policy {
	within := func(field string, given *int64, ifAbsent, least, limit int64) int64 {
		if given == nil {
			return ifAbsent
		}
		if *given < least || *given > limit {
			l.problem(file, label, "policy.%s must be %d to %d, not %d", field, least, limit, *given)
		}
		return *given
	}
	bounded := func(field string, given *int64, ifAbsent, limit int64) int64 {
		return within(field, given, ifAbsent, 1, limit)
	}
	timeout := func(field string, given *int64, ifAbsent time.Duration) time.Duration {
		return time.Duration(bounded(field, given, ifAbsent.Milliseconds(), timeoutLimit.Milliseconds())) * time.Millisecond
	}
	given, connections := &row.Policy, int64(DefaultConnections)
	if EndpointKind(row.Kind) == HTTP {
		connections = DefaultHTTPConnections
	}
	return Policy{
		Cache:          l.cache(file, label, row, within, timeout),
		MaxInflight:    int(bounded("max_inflight", given.MaxInflight, DefaultMaxInflight, maxInflightLimit)),
		Connections:    int(bounded("connections", given.Connections, connections, connectionsLimit)),
		ConnectTimeout: timeout("connect_timeout_ms", given.ConnectTimeoutMS, DefaultConnectTimeout),
		RequestTimeout: timeout("request_timeout_ms", given.RequestTimeoutMS, DefaultRequestTimeout),
	}
}

// cache reads which values an engine may keep.
func (l *loader) cache(file, label string, row *endpointRow, within func(field string, given *int64, ifAbsent, least, limit int64) int64,
	timeout func(field string, given *int64, ifAbsent time.Duration) time.Duration) Cache {
	given, mode := &row.Policy, CacheMode(row.Policy.Cache)
	if mode == "off" {
		mode = CacheOff
	}
	switch {
	case mode == CacheOff && (given.CacheMaxBytes != nil || given.CacheMaxAgeMS != nil):
		l.problem(file, label, "policy.cache_max_bytes and cache_max_age_ms need a policy.cache")
	case !mode.Tracked() && (given.CacheRequire || given.MaxSilenceMS != nil):
		l.problem(file, label, "policy.cache_require and tracking_max_silence_ms are only for policy.cache %s and %s", CacheBroadcast, CacheTrack)
	case mode != CacheOff && EndpointKind(row.Kind) == HTTP:
		l.problem(file, label, "policy.cache is only for kind %s", Redis)
	}
	cache := defaultCache(mode)
	switch {
	case mode == CacheOff:
		return cache
	case cache.Mode == CacheOff:
		l.problem(file, label, "unknown policy.cache %s, expected one of off, %s, %s, %s", errtext.Quote(given.Cache), CacheTTL, CacheBroadcast, CacheTrack)
		cache = defaultCache(CacheTTL)
	}
	cache.MaxBytes = int(within("cache_max_bytes", given.CacheMaxBytes, int64(cache.MaxBytes), cacheBytesLeast, cacheBytesLimit))
	cache.MaxAge = timeout("cache_max_age_ms", given.CacheMaxAgeMS, cache.MaxAge)
	if mode.Tracked() {
		cache.MaxSilence, cache.Required = timeout("tracking_max_silence_ms", given.MaxSilenceMS, cache.MaxSilence), given.CacheRequire
	}
	return cache
}

// agree reports where the endpoints of two environments differ in id, name or kind.
func (l *loader) agree(file string, list []*Endpoint, otherFile string, other []*Endpoint) {
	byID := func(list []*Endpoint) map[string]*Endpoint {
		m := make(map[string]*Endpoint, len(list))
		for _, endpoint := range list {
			m[endpoint.ID] = endpoint
		}
		return m
	}
	mine, theirs := byID(list), byID(other)
	for _, endpoint := range list {
		label := "endpoint " + errtext.Text(endpoint.ID)
		there, ok := theirs[endpoint.ID]
		switch {
		case !ok:
			l.problem(otherFile, label, "is missing, but %s has it", file)
		case there.Name != endpoint.Name:
			l.problem(otherFile, label, "is named %s, but %s in %s",
				errtext.Quote(there.Name), errtext.Quote(endpoint.Name), file)
		case there.Kind != endpoint.Kind:
			l.problem(otherFile, label, "has kind %s, but %s in %s",
				errtext.Quote(string(there.Kind)), errtext.Quote(string(endpoint.Kind)), file)
		}
	}
	for _, endpoint := range other {
		if mine[endpoint.ID] == nil {
			l.problem(file, "endpoint "+errtext.Text(endpoint.ID), "is missing, but %s has it", otherFile)
		}
	}
}
